"""Paging through decisions, and what a person reads in one."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.journal import Journal, Run
from foretide.model import Decision, Plan, Sample, Snapshot
from foretide.topology import Operator, Topology
from foretide.web.decisions import Index, read_at, view
from foretide.web.tail import Tail

NUMBERS = st.one_of(st.none(), st.integers(0, 40))


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.booleans(), max_size=30),
    NUMBERS,
    NUMBERS,
    st.integers(1, 10),
    st.booleans(),
    st.integers(2, 40),
)
def test_pages_are_slices_of_the_plain_list(
    notable: list[bool],
    since: int | None,
    end: int | None,
    limit: int,
    changes: bool,
    remembered: int,
) -> None:
    index = Index(remembered)
    for i, n in enumerate(notable):
        index.append(i * 100, n)
    known = [i for i, n in enumerate(notable) if i >= index.first and (n or not changes)]
    assert index.total == len(notable)
    assert index.total - index.first <= 2 * remembered
    wanted = [n for n in known if (since is None or n >= since)]
    if since is not None:
        expected = [n for n in wanted[:limit] if end is None or n < end]
    else:
        expected = [n for n in wanted if end is None or n < end][-limit:]
    found = index.page(since, end, limit, changes)
    assert found == expected
    assert [index.offset(n) for n in found] == [n * 100 for n in found]


def test_a_decision_is_read_again_whole_by_its_offset(tmp_path: Path) -> None:
    made = [Decision(float(i), "failed", "act", error=f"read: number {i}") for i in range(5)]
    with Journal(tmp_path / "j", Run("r", "s", Topology((Operator("a"),)), 1.0, 0.0)) as journal:
        for d in made:
            journal.append(d)
    tail = Tail(tmp_path / "j")
    tail.advance()
    assert [
        read_at(tail.path, tail.index.offset(n)) for n in tail.index.page(1, None, 3, changes=True)
    ] == made[1:4]
    assert read_at(tail.path, 0) is None  # the run's own line
    assert read_at(tail.path, 10**6) is None


def test_a_view_holds_both_sentences() -> None:
    samples = {n: Sample(1, 1, 0, r) for n, r in (("a", 2), ("b", 3), ("c", 1), ("d", 4))}
    proposed = Plan(
        {"a": 4, "b": 2, "c": 1, "d": 9},
        {"a": "load rises", "b": "load falls", "c": "fits", "d": "much"},
    )
    plan = proposed.but({"b": 3}, "held: patience").but({"d": 8}, "9 is above its maximum of 8")
    seen = view(
        7, Decision(10.0, "applied", "act", Snapshot(10.0, 1.0, samples), {}, proposed, plan)
    )
    assert [
        (c.operator, c.running, c.proposed, c.planned, c.reason, c.guards) for c in seen.changes
    ] == [
        ("a", 2, 4, 4, "load rises", None),
        ("b", 3, 2, 3, "load falls", "held: patience"),
        ("d", 4, 9, 8, "much", "9 is above its maximum of 8"),
    ]
    assert (seen.seq, seen.outcome, seen.note) == (7, "applied", None)
    assert view(0, Decision(1.0, "waiting", "advise", error="read: soon")).changes == []
