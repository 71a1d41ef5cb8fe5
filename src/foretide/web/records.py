"""What the API answers: one record per answer. The OpenAPI document is made from these, so the two
cannot disagree.

Rates are events/s, backlogs events, instants UTC seconds; what was not measured is null.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from foretide.model import Mode, Outcome

Range = Literal["recent", "whole"]


class OperatorInfo(msgspec.Struct):
    """One operator as it was declared."""

    name: str
    inputs: tuple[str, ...]
    source: bool
    stateful: bool
    min_replicas: int
    max_replicas: int


class RunInfo(msgspec.Struct):
    """What ran: the journal's first line. ``share`` of the events is promised to be within the
    target. With ``shared_slots`` all operators use the task slots of one application. ``spark_ui``
    is the address of Spark's own page.
    """

    name: str
    system: str
    window_s: float
    started_at: float
    target_latency_ms: float | None
    operators: list[OperatorInfo]
    share: float | None = None
    shared_slots: bool = False
    spark_ui: str | None = None


class OperatorNow(msgspec.Struct):
    """One operator in the newest measured window. ``feeds`` are events/s on each outgoing edge;
    ``processed`` are events/s; ``batches`` ended in the window and took ``batch_s`` each on
    average.
    """

    replicas: int
    planned: int | None
    need: int | None
    utilization: float | None
    backlog: float
    rate: float
    feeds: dict[str, float]
    processed: float
    batches: float | None = None
    batch_s: float | None = None
    state_rows: float | None = None
    state_bytes: float | None = None
    watermark_at: float | None = None


class LatencyNow(msgspec.Struct):
    """End-to-end latency in the newest window that measured it; ``within_share`` of all events so
    far met the target (dropped ones did not).
    """

    p50_ms: float
    p90_ms: float
    p99_ms: float
    within_share: float | None


class LoadOutlook(msgspec.Struct):
    """The load forecast for the windows that come next; ``upper`` is a high quantile where the
    forecaster knows one.
    """

    mean: list[float]
    upper: list[float] | None


class Cost(msgspec.Struct):
    """Paid so far, what static peak provisioning would have cost, and the share of that which was
    saved (negative when more was paid). ``saved_share`` is null when the run ran short; ``short``
    then says by how much.
    """

    paid: float
    static_peak: float | None
    saved_share: float | None
    short: str | None = None


class ChoicesNow(msgspec.Struct):
    """What shares of the events within the target would have cost on the load so far, rising, and
    the planner's sentence about them; as of ``at``.
    """

    at: float
    sentence: str
    shares: list[float]
    costs: list[float]


class Now(msgspec.Struct, kw_only=True):
    """Where the run stands. ``mode`` held in the last step; ``asked_mode`` is what the switch says,
    null when no loop is listening.
    """

    at: float | None = None
    windows: int = 0
    seconds: float = 0.0
    decisions: int = 0
    outcome: Outcome | None = None
    error: str | None = None
    mode: Mode = "advise"
    asked_mode: Mode | None = None
    live: bool = False
    read_share: float = 1.0
    skipped_lines: int = 0
    load: float | None = None
    replicas: int | None = None
    need: int | None = None
    planned: int | None = None
    backlog: float | None = None
    processed: float | None = None
    executors: int | None = None
    executors_planned: int | None = None
    model_error: float | None = None
    slots: int | None = None
    lead_s: float | None = None
    latency: LatencyNow | None = None
    outlook: LoadOutlook | None = None
    choices: ChoicesNow | None = None
    cost: Cost
    outcomes: dict[str, int] = {}
    operators: dict[str, OperatorNow] = {}


class State(msgspec.Struct):
    """The run and where it stands; ``run`` is null until the journal's first line is there."""

    run: RunInfo | None
    now: Now


class Columns(msgspec.Struct):
    """A series in columns: ``at`` and one list of the same length per channel. A point covers
    ``windows_per_point`` windows.
    """

    range: Range
    operator: str | None
    windows_per_point: int
    at: list[float]
    channels: dict[str, list[float | None]]


class OperatorChange(msgspec.Struct):
    """One operator in a decision: what ran, what the planner proposed, what the guards left of it,
    and both sentences.
    """

    operator: str
    running: int | None
    proposed: int
    planned: int
    reason: str
    guards: str | None


class DecisionView(msgspec.Struct):
    """One decision for reading. ``changes`` holds the operators that were to change or that guards
    held back.
    """

    seq: int
    at: float
    outcome: Outcome
    mode: Mode
    note: str | None
    error: str | None
    changes: list[OperatorChange]


class Decisions(msgspec.Struct):
    """A page of decisions, oldest first. ``next_since`` asks for what comes after; ``first`` is the
    oldest still known.
    """

    decisions: list[DecisionView]
    next_since: int
    first: int
    total: int


class ModeAnswer(msgspec.Struct):
    """The mode asked for; the loop follows in its next step."""

    asked_mode: Mode


class ModeRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Ask the loop to advise or to act."""

    mode: Mode


class Problem(msgspec.Struct):
    """Why a request was refused: a sentence."""

    error: Annotated[str, msgspec.Meta(min_length=1)]


class Health(msgspec.Struct):
    """The server answers; ``read_share`` of the journal has been read."""

    ok: bool
    read_share: float
