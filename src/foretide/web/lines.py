"""The journal's lines as the dashboard needs them: the same names as the records, without what it
never draws.

msgspec skips the fields that are not named here without building them, which makes a day's journal
of fifty operators several times faster to read than whole records. What a person wants to see whole
(a decision's sentences) is read again by its offset.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from foretide.journal import Run
from foretide.model import Choice, Latency, Mode, Outcome

Count = Annotated[float, msgspec.Meta(ge=0)]


class SampleLine(msgspec.Struct, gc=False):
    """A Sample, as far as the page needs it."""

    arrived: Count
    processed: Count
    backlog: Count
    replicas: Annotated[int, msgspec.Meta(ge=0)]
    emitted: dict[str, float] = {}
    busy_s: Count | None = None
    offered: Count | None = None
    dropped: Count | None = None
    latency: Latency | None = None
    batches: Count | None = None
    batch_s: Count | None = None
    state_rows: Count | None = None
    state_bytes: Count | None = None
    watermark_at: float | None = None


class HostLine(msgspec.Struct, gc=False):
    """A Host, as far as the page needs it."""

    name: str


class SnapshotLine(msgspec.Struct, gc=False):
    """A Snapshot, as far as the page needs it."""

    window_s: Annotated[float, msgspec.Meta(gt=0)]
    samples: dict[str, SampleLine]
    latency: Latency | None = None
    hosts: tuple[HostLine, ...] | None = None
    lead_s: Count | None = None
    slots: int | None = None


class ForecastLine(msgspec.Struct, gc=False):
    """A Forecast."""

    mean: tuple[float, ...]
    upper: tuple[float, ...] | None = None


class PlanLine(msgspec.Struct, gc=False):
    """A Plan, as far as the page needs it; ``reasons`` are read only where they are shown."""

    replicas: dict[str, int]
    executors: int | None = None
    model_error: Count | None = None
    choices: tuple[Choice, ...] = ()
    reasons: msgspec.Raw = msgspec.Raw(b"{}")


class DecisionLine(msgspec.Struct, gc=False):
    """A Decision, as far as the page needs it."""

    at: float
    outcome: Outcome
    mode: Mode
    snapshot: SnapshotLine | None = None
    forecasts: dict[str, ForecastLine] = {}
    proposed: PlanLine | None = None
    plan: PlanLine | None = None
    error: str | None = None

    @property
    def notable(self) -> bool:
        """Something a person wants to read: replicas were to change, guards held a change back, or
        a stage failed.
        """
        if self.outcome in ("advised", "applied", "failed"):
            return True
        return (
            self.proposed is not None
            and self.plan is not None
            and self.proposed.replicas != self.plan.replicas
        )


class JournalLine(msgspec.Struct):
    """One line of a journal: a run's start or a decision."""

    run: Run | None = None
    decision: DecisionLine | None = None


_decoder = msgspec.json.Decoder(JournalLine)


def decode(line: bytes) -> Run | DecisionLine | None:
    """What a journal line holds; None when it is torn or empty."""
    try:
        record = _decoder.decode(line)
    except (msgspec.DecodeError, ValueError):
        return None
    return record.run or record.decision
