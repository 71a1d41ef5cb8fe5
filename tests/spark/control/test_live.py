"""Finding a user's pipeline; running the example under the loop; the screen's lines and summary."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from foretide.errors import InvalidConfig
from foretide.journal import read
from foretide.spark.control.live import Ending, find_pipeline

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "src" / "foretide" / "examples" / "words.py"


def test_a_pipeline_is_found_by_file_and_name() -> None:
    assert find_pipeline(f"{EXAMPLE}:pipeline").topology().edges == (("spell", "measure"),)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("words", "write MODULE:NAME or FILE.py:NAME"),
        ("nowhere.py:pipeline", "there is no file nowhere.py"),
        ("no_such_module_at_all:pipeline", "cannot import no_such_module_at_all"),
        (f"{EXAMPLE}:pipelin", "no pipeline named 'pipelin'; pipelines there: pipeline"),
    ],
)
def test_what_is_not_a_pipeline_is_a_sentence(target: str, message: str) -> None:
    with pytest.raises(InvalidConfig, match=message):
        find_pipeline(target)


@pytest.mark.spark
def test_the_example_runs_under_the_loop_until_ctrl_c(tmp_path: Path) -> None:
    command = [
        "run",
        f"{EXAMPLE}:pipeline",
        "--mode",
        "act",
        "--window",
        "3",
        "--folder",
        str(tmp_path),
    ]
    journal = tmp_path / "journal.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-c", f"from foretide.cli import app; app({command})"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 240
    while (
        time.monotonic() < until
        and process.poll() is None
        and (not journal.exists() or journal.read_bytes().count(b"\n") < 9)
    ):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "replica-seconds used" in out
    assert "static peak provisioning" in out
    run, decisions = read(journal)
    assert (run.name, run.mode, run.topology.names) == ("words", "act", ("spell", "measure"))
    assert len(decisions) >= 8
    assert [d.error for d in decisions if d.outcome == "failed"] == []
    assert (tmp_path / "spark.log").exists()


def test_a_run_until_idle_ends_only_after_a_window_that_began_idle() -> None:
    """What ends between the window's measuring and the question is in no figure yet."""
    pipeline = Mock(has_failed=False)
    pipeline.idle.side_effect = [False, True, False, True, True]
    ending = Ending(pipeline, until_idle=True)
    assert [ending() for _ in range(5)] == [False, False, False, False, True]
    assert not Ending(pipeline, until_idle=False)()
