"""Following a file that grows, tears, is cut and is replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from foretide.journal import Journal, Run, encode
from foretide.model import Decision, Sample, Snapshot
from foretide.topology import Operator, Topology
from foretide.web import tail as module
from foretide.web.tail import Tail

RUN = Run("r", "srea", Topology((Operator("a"),)), 10.0, 0.0)


def decision(at: float, name: str = "a") -> Decision:
    return Decision(
        at, "unchanged", "advise", Snapshot(at, 10.0, {name: Sample(1, 1, 0, 1, busy_s=1)})
    )


def test_it_reads_what_is_new_and_only_that(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "journal.jsonl")
    assert tail.advance() == 0  # not there yet
    with Journal(tail.path, RUN) as journal:
        assert tail.advance() == 0
        assert tail.state is not None
        journal.append(decision(10))
        journal.append(decision(20))
        assert tail.advance() == 2
        assert tail.advance() == 0
        journal.append(decision(30))
        assert tail.advance() == 1
    assert tail.state.columns("recent").at == [10, 20, 30]
    assert tail.index.total == 3


def test_a_line_still_being_written_waits(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "journal.jsonl")
    with Journal(tail.path, RUN):
        line = encode(decision(10)) + b"\n"
        with open(tail.path, "ab", buffering=0) as f:
            f.write(line[:20])
            assert tail.advance() == 0
            f.write(line[20:])
            assert tail.advance() == 1
    assert tail.skipped == 0


def test_a_torn_line_and_a_strange_one_are_skipped_and_counted(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "journal.jsonl")
    with Journal(tail.path, RUN) as journal, open(tail.path, "ab", buffering=0) as f:
        f.write(encode(decision(10))[:30] + b"\n\n")
        f.write(encode(decision(20, name="unknown")) + b"\n")
        journal.append(decision(30))
        assert tail.advance() == 1
    assert tail.skipped == 2
    assert tail.state is not None
    assert tail.state.columns("recent").at == [30]


def test_a_second_life_of_the_same_run_goes_on_and_another_topology_starts_anew(
    tmp_path: Path,
) -> None:
    tail = Tail(tmp_path / "journal.jsonl")
    for at in (10, 20):
        with Journal(tail.path, RUN) as journal:
            journal.append(decision(at))
    tail.advance()
    assert tail.state is not None
    assert tail.state.columns("recent").at == [10, 20]
    with Journal(tail.path, Run("r", "srea", Topology((Operator("b"),)), 10.0, 0.0)) as journal:
        journal.append(decision(30, name="b"))
    tail.advance()
    assert tail.state.columns("recent").at == [30]
    assert tail.index.total == 3


@pytest.mark.parametrize("replaced", [True, False])
def test_a_file_that_was_replaced_or_cut_is_read_from_its_start(
    tmp_path: Path, replaced: bool
) -> None:
    tail = Tail(tmp_path / "journal.jsonl")
    with Journal(tail.path, RUN) as journal:
        for at in (10, 20, 30):
            journal.append(decision(at))
    tail.advance()
    if replaced:
        with Journal(tmp_path / "new", RUN) as journal:
            for at in (1, 2, 3, 4, 5):
                journal.append(decision(at))
        (tmp_path / "new").replace(tail.path)
    else:
        tail.path.write_bytes(b"")
        with Journal(tail.path, RUN) as journal:
            journal.append(decision(1))
    tail.advance()
    assert tail.state is not None
    assert tail.state.columns("recent").at == ([1, 2, 3, 4, 5] if replaced else [1])


def test_a_long_journal_comes_in_slices_and_a_line_longer_than_a_slice_still_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SLICE_BYTES", 100)
    tail = Tail(tmp_path / "journal.jsonl")
    with Journal(tail.path, RUN) as journal:
        for at in range(20):
            journal.append(decision(at))
    seen = []
    while tail.index.total < 20:
        tail.advance()
        seen.append(tail.read_share)
    assert seen == sorted(seen)
    assert seen[0] < 1
    assert seen[-1] == 1.0
    assert not tail.behind
