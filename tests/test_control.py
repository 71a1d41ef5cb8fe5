"""The mode switch: what the loop reads, what a dashboard writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from foretide.control import ModeSwitch, ask_mode, asked_mode, control_path
from foretide.errors import JournalError, NobodyListens
from foretide.model import Decision
from foretide.systems import system
from foretide.testing import ScriptedEnvironment
from foretide.topology import Operator, Topology


def test_the_loop_follows_the_switch_and_each_decision_says_what_held(tmp_path: Path) -> None:
    topology = Topology((Operator("a"),))
    world = ScriptedEnvironment(topology, {"a": 0.1}, lambda at: 10 + at)
    with ModeSwitch(tmp_path / "control.json", "advise") as switch:
        loop = system("srea").autoscaler(topology, world, world, mode=switch)
        first = loop.step(10)
        ask_mode(switch.path, "act")
        second = loop.step(20)
        ask_mode(switch.path, "advise")
        third = loop.step(30)
    assert [(d.mode, d.outcome) for d in (first, second, third)] == [
        ("advise", "advised"),
        ("act", "applied"),
        ("advise", "advised"),
    ]
    assert second.plan is not None
    assert world.replicas == second.plan.replicas


def test_a_switch_that_fails_is_a_failed_step_that_changes_nothing() -> None:
    def broken() -> str:
        raise OSError("the switch is gone")

    topology = Topology((Operator("a"),))
    world = ScriptedEnvironment(topology, {"a": 0.1}, lambda at: 100.0)
    seen: list[Decision] = []
    system("srea").autoscaler(topology, world, world, mode=broken, record=seen.append).step(10)  # type: ignore[arg-type]
    assert (seen[0].outcome, seen[0].mode, seen[0].error) == (
        "failed",
        "advise",
        "mode: OSError: the switch is gone",
    )
    assert world.replicas == {"a": 1}


@pytest.mark.parametrize("content", [b"", b"{", b'{"mode": "destroy"}', b"[]", b"\xff\xfe"])
def test_a_file_that_cannot_be_understood_keeps_the_last_mode(
    tmp_path: Path, content: bytes
) -> None:
    with ModeSwitch(tmp_path / "control.json", "act") as switch:
        switch.path.write_bytes(content)
        assert switch() == "act"
        switch.path.unlink()
        assert switch() == "act"


def test_what_an_earlier_run_left_behind_never_decides(tmp_path: Path) -> None:
    path = control_path(tmp_path / "journal.jsonl")
    path.write_text('{"mode":"act"}')
    with ModeSwitch(path) as switch:
        assert switch() == "advise"
        assert asked_mode(path) == "advise"
    assert asked_mode(path) is None


def test_nobody_listens_after_the_run(tmp_path: Path) -> None:
    with pytest.raises(NobodyListens, match="this run is over"):
        ask_mode(tmp_path / "control.json", "act")
    assert not (tmp_path / "control.json").exists()


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="choose a folder"):
        ModeSwitch(tmp_path / "file" / "control.json")
