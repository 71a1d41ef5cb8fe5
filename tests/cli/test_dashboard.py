"""``foretide dashboard`` as a person starts it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from foretide.cli import app
from foretide.errors import InvalidConfig
from foretide.journal import Journal, Run
from foretide.topology import Operator, Topology

START = [sys.executable, "-c", "from foretide.cli import app; app()", "dashboard"]


def run_folder(folder: Path) -> Path:
    with Journal(
        folder / "journal.jsonl", Run("over", "srea", Topology((Operator("a"),)), 10.0, 0.0)
    ):
        return folder


@pytest.mark.timeout(60)
def test_it_opens_a_finished_run_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    command = [*START, str(run_folder(tmp_path)), "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        address = re.search(r"http://\S+", server.stdout.readline())
        token = server.stdout.readline().strip().rpartition(" ")[2]
        assert address is not None
        assert len(token) == 32
        answer = httpx.get(f"{address[0]}/healthz")
        assert answer.json()["ok"] is True
        refused = httpx.put(
            f"{address[0]}/api/mode",
            json={"mode": "act"},
            headers={"Authorization": f"Bearer {token}"},
        )
        assert refused.status_code == 409  # the token is right, but nobody listens
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=120)
    assert server.returncode == 0
    assert err == ""
    assert token not in out


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_it_waits_for_a_run_that_has_not_started(tmp_path: Path) -> None:
    command = [*START, str(tmp_path / "runs" / "mine"), "--port", "0", "--read-only"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert "does not exist yet" in server.stdout.readline()
        address = re.search(r"http://\S+", server.stdout.readline())
        assert address is not None
        assert httpx.get(f"{address[0]}/readyz").status_code == 503
        with httpx.stream("GET", f"{address[0]}/api/stream", timeout=120) as answer:
            states = (
                json.loads(line.removeprefix("data: "))
                for line in answer.iter_lines()
                if line.startswith("data: ")
            )
            assert next(states)["run"] is None
            run_folder(tmp_path / "runs" / "mine")
            assert next(s for s in states if s["run"])["run"]["name"] == "over"
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=120)
    assert server.returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_token_from_a_file_is_not_printed(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("the-token-in-the-file\n")
    command = [
        *START,
        str(run_folder(tmp_path)),
        "--port",
        "0",
        "--token-file",
        str(tmp_path / "token"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        shown = [server.stdout.readline() for _ in range(2)]
        server.send_signal(signal.SIGTERM)
        rest, _ = server.communicate(timeout=120)
    assert server.returncode == 0
    assert shown[1] == "Press Ctrl-C to stop.\n"
    assert "the-token-in-the-file" not in "".join([*shown, rest])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [([".", "--token-file", "missing"], "cannot read the token")],
)
def test_mistakes_are_sentences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(run_folder(tmp_path))
    with pytest.raises(InvalidConfig, match=words):
        CliRunner().invoke(app, ["dashboard", *arguments], catch_exceptions=False)


def test_a_file_that_is_no_journal_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "load.csv").write_text("timestamp,rate\n0,1\n")
    with pytest.raises(InvalidConfig, match="is not a Foretide journal"):
        CliRunner().invoke(app, ["dashboard", str(tmp_path / "load.csv")], catch_exceptions=False)
