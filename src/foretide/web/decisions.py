"""Decisions for reading: where each lies in the journal, and its sentences."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from foretide.journal import decode
from foretide.model import Decision, Plan
from foretide.web.records import DecisionView, OperatorChange

REMEMBERED = 500_000


class Index:
    """The byte offset of every decision, numbered from 0, and whether it is notable; the oldest are
    forgotten beyond ``limit``.

    >>> index = Index()
    >>> for offset, notable in ((0, False), (90, True), (180, True), (270, False)):
    ...     index.append(offset, notable)
    >>> list(index.after(1, changes=False)), list(index.after(0, changes=True))
    ([1, 2, 3], [1, 2])
    >>> list(index.before(2, changes=True))
    [1]
    """

    def __init__(self, limit: int = REMEMBERED) -> None:
        self.limit = limit
        self.first = 0
        self._offsets = array("Q")
        self._notable = bytearray()

    @property
    def total(self) -> int:
        """Decisions seen so far: the number the next one gets."""
        return self.first + len(self._offsets)

    def append(self, offset: int, notable: bool) -> None:
        if len(self._offsets) >= 2 * self.limit:
            del self._offsets[: self.limit]
            del self._notable[: self.limit]
            self.first += self.limit
        self._offsets.append(offset)
        self._notable.append(notable)

    def offset(self, seq: int) -> int:
        return self._offsets[seq - self.first]

    def after(self, since: int, changes: bool) -> Iterator[int]:
        """Numbers from ``since`` on, oldest first; only notable ones when ``changes``."""
        at = max(0, since - self.first)
        while at < len(self._offsets) and (at := self._notable.find(1, at) if changes else at) >= 0:
            yield self.first + at
            at += 1

    def before(self, end: int, changes: bool) -> Iterator[int]:
        """Numbers below ``end``, newest first; only notable ones when ``changes``."""
        at = min(end - self.first, len(self._offsets))
        while at > 0 and (at := (self._notable.rfind(1, 0, at) if changes else at - 1)) >= 0:
            yield self.first + at

    def page(self, since: int | None, end: int | None, limit: int, changes: bool) -> list[int]:
        """At most ``limit`` numbers, oldest first: from ``since`` on, or else the newest ones below
        ``end``.
        """
        if since is not None:
            return [n for n in islice(self.after(since, changes), limit) if end is None or n < end]
        return list(islice(self.before(self.total if end is None else end, changes), limit))[::-1]


def read_at(path: Path, offset: int) -> Decision | None:
    """The whole decision whose line starts at ``offset``; None when the file no longer has it
    there.
    """
    try:
        with open(path, "rb") as f:
            f.seek(offset)
            record = decode(f.readline())
    except OSError:
        return None
    return record if isinstance(record, Decision) else None


def view(seq: int, decision: Decision, shared_slots: bool = False) -> DecisionView:
    """A decision for reading: the operators it was to change and those that guards held back, each
    with both sentences. With ``shared_slots`` it changes executors, not operators.
    """
    plan = decision.plan
    changes = _executors(decision)
    if not shared_slots:
        changes = [*_replicas(decision), *changes]
    return DecisionView(
        seq,
        decision.at,
        decision.outcome,
        decision.mode,
        plan.reasons.get("") if plan and not _executors(decision) else None,
        decision.error,
        changes,
    )


def _replicas(decision: Decision) -> list[OperatorChange]:
    plan, proposed = decision.plan, decision.proposed
    if plan is None or proposed is None:
        return []
    samples = decision.snapshot.samples if decision.snapshot else {}
    changes = []
    for name, planned in plan.replicas.items():
        sample = samples.get(name)
        running = sample.replicas if sample else None
        wanted = proposed.replicas.get(name, planned)
        if not running == wanted == planned:
            changes.append(
                OperatorChange(name, running, wanted, planned, *_sentences(name, proposed, plan))
            )
    return changes


def _executors(decision: Decision) -> list[OperatorChange]:
    """The change of executors, where the plan decides them and they are known."""
    plan, proposed, snapshot = decision.plan, decision.proposed, decision.snapshot
    if plan is None or proposed is None or snapshot is None or snapshot.hosts is None:
        return []
    if plan.executors is None or plan.executors == len(snapshot.hosts):
        return []
    wanted = plan.executors if proposed.executors is None else proposed.executors
    running = len(snapshot.hosts)
    return [
        OperatorChange(
            "executors", running, wanted, plan.executors, *_sentences("", proposed, plan)
        )
    ]


def _sentences(name: str, proposed: Plan, plan: Plan) -> tuple[str, str | None]:
    """The planner's sentence, and what the guards added to it."""
    planner, final = proposed.reasons.get(name, ""), plan.reasons.get(name, "")
    if final == planner:
        return planner, None
    return planner, final.removeprefix(planner).removeprefix("; ")
