import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from foretide.errors import JournalError
from foretide.figures.replay import replay
from foretide.guards import bounds, patience
from foretide.journal import Journal, Run, read, read_lines
from foretide.model import Decision, Latency, Sample, Snapshot
from foretide.systems import system
from foretide.testing import ScriptedEnvironment
from foretide.topology import Operator, Topology

CHAIN = Topology((Operator("parse"), Operator("store", inputs=("parse",))))
RUN = Run("test", "srea", CHAIN, 10.0, 0.0, mode="act", target_latency_s=2.5, settings={"seed": 1})


def a_run(path: Path, steps: int = 40) -> list[Decision]:
    """A real loop's decisions, written to a journal."""
    ends = ScriptedEnvironment(
        CHAIN, {"parse": 0.02, "store": 0.05}, lambda at: 50 + 40 * ((at // 50) % 3), 10.0
    )
    with Journal(path, RUN) as journal:
        scaler = system("srea", guards={"patience": {"windows": 3}}).autoscaler(
            CHAIN, ends, ends, "act", journal.append
        )
        return [scaler.step(10.0 * i) for i in range(1, steps + 1)]


def test_what_is_written_is_read_back_equal(tmp_path: Path) -> None:
    written = a_run(tmp_path / "journal.jsonl")
    run, decisions = read(tmp_path / "journal.jsonl")
    assert run == RUN
    assert decisions == written


def test_every_field_survives(tmp_path: Path) -> None:
    full = Decision(1.5, "failed", "advise", error="read: ConnectionError: é")
    with Journal(tmp_path / "j", RUN) as journal:
        journal.append(full)
    assert read(tmp_path / "j")[1] == [full]
    assert Latency(1, 2, 3, 4, 5).within is None


def test_lead_time_slots_parallelism_and_the_promise_survive(tmp_path: Path) -> None:
    sample = Sample(1, 1, 0, 1, max_parallelism=8)
    seen = Snapshot(10.0, 10.0, {"parse": sample, "store": sample}, lead_s=12.5, slots=4)
    line = Decision(10.0, "observed", "act", seen)
    run = replace(RUN, share=0.99)
    with Journal(tmp_path / "j", run) as journal:
        journal.append(line)
    assert read(tmp_path / "j") == (run, [line])


def test_a_torn_last_line_is_skipped_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written = a_run(path)
    os.truncate(path, path.stat().st_size - 20)
    with pytest.warns(UserWarning, match="unfinished"):
        _, decisions = read(path)
    assert decisions == written[:-1]


def test_many_torn_lines_are_one_warning(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written = a_run(path, 5)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"{torn\n", *lines[3:], b"and again\n", b"unfinished"]))
    with pytest.warns(UserWarning, match="skipped") as warned:
        _, decisions = read(path)
    assert decisions == written
    first = len(b"".join(lines[:3])) + len(b"{torn\n")
    assert [str(w.message).partition(": ")[2] for w in warned] == [
        "the last line is unfinished and was skipped (a crash, or still being written)",
        f"2 torn lines were skipped; the first ends at byte {first}",
    ]


def test_a_new_life_goes_on_after_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    first = a_run(path, 10)
    os.truncate(path, path.stat().st_size - 20)
    second = a_run(path, 5)
    with pytest.warns(UserWarning, match="torn"):
        _, decisions = read(path)
    assert decisions == first[:-1] + second


def test_reading_goes_on_from_an_offset(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    a_run(path, 10)
    offsets = [offset for offset, _ in read_lines(path)]
    rest = [record for _, record in read_lines(path, offsets[5])]
    assert len(rest) == 5
    assert all(isinstance(record, Decision) for record in rest)


def test_errors_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="cannot read the journal"):
        read(tmp_path / "missing")
    (tmp_path / "empty").touch()
    with pytest.raises(JournalError, match="holds no run"):
        read(tmp_path / "empty")
    with pytest.raises(JournalError, match="choose a folder you can write to"):
        Journal(tmp_path, RUN)


@pytest.mark.parametrize(
    "lines",
    [pytest.param(1, marks=pytest.mark.slow), 17, pytest.param(300, marks=pytest.mark.slow)],
)
def test_kill_9_during_a_run_leaves_a_journal_that_opens(tmp_path: Path, lines: int) -> None:
    """A process that writes decisions as fast as it can is killed once it has written some; every
    whole line is there.
    """
    path = tmp_path / "journal.jsonl"
    script = (
        "import sys, itertools\n"
        "from foretide.journal import Journal\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_journal import CHAIN, RUN\n"
        "from foretide.systems import system\n"
        "from foretide.testing import ScriptedEnvironment\n"
        "times = {'parse': 0.02, 'store': 0.05}\n"
        "ends = ScriptedEnvironment(CHAIN, times, lambda at: at % 97, 10.0)\n"
        "journal = Journal(sys.argv[1], RUN)\n"
        "scaler = system('srea').autoscaler(CHAIN, ends, ends, 'act', journal.append)\n"
        "for i in itertools.count(1):\n"
        "    scaler.step(10.0 * i)\n"
        "    print(i, flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        reported = 0
        for line in process.stdout:
            reported = int(line)
            if reported >= lines:
                process.send_signal(signal.SIGKILL)
                break
    run, decisions = read(path)
    assert run.topology == CHAIN
    assert len(decisions) >= reported, "no step that was reported done is missing"
    assert [d.at for d in decisions] == [10.0 * i for i in range(1, len(decisions) + 1)]


def test_replay_through_the_same_planner_gives_the_same_plans(tmp_path: Path) -> None:
    a_run(tmp_path / "j", 60)
    run, decisions = read(tmp_path / "j")
    again = list(
        replay(run.topology, decisions, system("srea").new_planner(), (patience(3), bounds()))
    )
    assert again == decisions
    other = list(replay(run.topology, decisions, system("static").new_planner()))
    assert {d.plan.replicas["store"] for d in other if d.plan} == {4}, (
        "another planner answers for itself"
    )
