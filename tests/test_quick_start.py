"""The quick start cannot rot: a newcomer's ten minutes, block after block, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from foretide.apps import App, Service
from foretide.journal import Journal, Run
from foretide.load import Load
from foretide.sim.environment import Simulation
from foretide.sim.events.batch import BatchCosts
from foretide.systems import system
from foretide.topology import Operator, Topology

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "quick-start.md").read_text()


def commands() -> list[tuple[str, str]]:
    """Every command of the page's console blocks, with what it prints."""
    pairs: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", PAGE, flags=re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            more = [line for line in lines[1:] if line.startswith("> ")]
            command = "\n".join([lines[0], *(line[2:] for line in more)])
            pairs.append((command, "\n".join(lines[1 + len(more) :])))
    return pairs


def matches(expected: str, printed: str) -> bool:
    """Whether a text is as expected; ``...`` stands for anything, blanks for any blanks."""
    words = [re.escape(part) for part in " ".join(expected.split()).split("...")]
    return re.fullmatch(".*?".join(words), " ".join(printed.split()), re.DOTALL) is not None


def test_the_page_walks_the_whole_path() -> None:
    walked = [command.split()[1] for command, _ in commands() if command.startswith("foretide ")]
    assert walked == [
        "demo", "examples", "examples", "run", "run", "report", "calibrate", "compare",
    ]  # fmt: skip


def test_the_function_shown_is_the_example_s() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert code in (ROOT / "src" / "foretide" / "examples" / "files.py").read_text()


def test_what_differs_is_left_out() -> None:
    assert matches("a ... c\n...\ne", "a  b c\n d\n e")
    assert not matches("a ... c", "a b d")


def a_run(journal: Path) -> None:
    """The run of the page on a simulated pipeline: 60 events/s for three minutes."""
    topology = Topology((Operator("score", max_replicas=8),))
    app = App("files", "", "", topology, {"score": Service(0.03)})
    load = Load("feed", np.full(180, 60.0))
    batches = BatchCosts(1.0, overheads_s={"score": 0.4})
    pipeline = Simulation(
        app, load, mode="batch", batch=batches, window_s=5.0, target_latency_s=10.0
    )
    run = Run("files", "foretide", topology, 5.0, 1.7e9, "act", 10.0, share=0.99)
    with Journal(journal, run) as book:
        scaler = system("foretide").promised(10.0, 0.99)
        loop = scaler.autoscaler(topology, pipeline, pipeline, "act", book.append)
        for window in range(1, 37):
            loop.step(5.0 * window)


class Newcomer:
    """Types the page's commands in one folder, and leaves no process behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYSPARK_PYTHON": sys.executable,
        }
        self.beside: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Newcomer":
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.beside:
            process.kill()
            process.wait()

    def types(self, command: str, expected: str) -> None:
        """Run a command and compare what it prints with the page."""
        if command.endswith(" &"):
            words = command[:-2].split()
            self.beside.append(subprocess.Popen(words, cwd=self.folder, env=self.environment))
            return
        done = subprocess.run(
            command, shell=True, cwd=self.folder, env=self.environment, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        assert matches(expected, done.stdout), f"{command}\n{done.stdout}\n{done.stderr}"


def blocks(*starts: str) -> list[tuple[str, str]]:
    return [pair for pair in commands() if pair[0].startswith(starts)]


@pytest.mark.slow
def test_the_blocks_about_a_recorded_run_print_what_the_page_says(tmp_path: Path) -> None:
    """Report, twin and frontier, on a run like that of the page."""
    (tmp_path / "runs" / "files").mkdir(parents=True)
    a_run(tmp_path / "runs" / "files" / "journal.jsonl")
    steps = blocks(
        "foretide examples", "foretide report", "foretide calibrate", "python -c",
        "foretide compare",
    )  # fmt: skip
    assert len(steps) == 6
    with Newcomer(tmp_path) as newcomer:
        for command, expected in steps:
            newcomer.types(command, expected)
    compile((tmp_path / "mine.py").read_text(), "mine.py", "exec")
    assert (tmp_path / "runs" / "files" / "report.html").stat().st_size > 10_000
    assert (tmp_path / "frontier.html").stat().st_size > 10_000


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_demo_block_prints_what_the_page_says(tmp_path: Path) -> None:
    (step,) = blocks("foretide demo")
    with Newcomer(tmp_path) as newcomer:
        newcomer.types(*step)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_blocks_from_own_files_to_the_frontier_print_what_the_page_says(tmp_path: Path) -> None:
    with Newcomer(tmp_path) as newcomer:
        for command, expected in commands():
            if not command.startswith("foretide demo"):
                newcomer.types(command, expected)
    assert (tmp_path / "frontier.html").stat().st_size > 10_000
