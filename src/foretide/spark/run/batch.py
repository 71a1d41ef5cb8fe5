"""One batch of an operator: what it takes, and what its finished pieces measured and wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from foretide.spark.edge.protocol import File, Piece
from foretide.spark.run.accounts import NOTHING, Partial
from foretide.spark.run.runners import Outcome
from foretide.spark.worker.meter import Progress, Report, read_progress


@dataclass(frozen=True)
class Intake:
    """What a batch takes: files per producer, and events per source (None: unknown beforehand).
    Spark logged it at ``logged_at``.
    """

    batch: int
    logged_at: float
    pieces: Mapping[str, list[Piece]]
    sources: Mapping[str, int | None]

    @property
    def files(self) -> list[Piece]:
        return [p for pieces in self.pieces.values() for p in pieces]

    @property
    def counted(self) -> dict[str, int]:
        """Events per input, where they are known beforehand."""
        by_producer = {p: sum(f.events for f in files) for p, files in self.pieces.items()}
        return by_producer | {s: n for s, n in self.sources.items() if n is not None}

    @property
    def size(self) -> int | None:
        """Events in all; None when some source does not say."""
        return None if None in self.sources.values() else sum(self.counted.values())

    def waited_s(self, now: float) -> float:
        """Seconds between delivery and ``now``, summed over the events from operators."""
        return sum(f.events * (now - f.delivered_at) for f in self.files)


@dataclass
class BatchRun:
    """A batch that runs: what its finished pieces measured and wrote, and where the running one
    reports its progress.
    """

    staging: Path
    outcomes: list[Outcome] = field(default_factory=list)
    files: dict[str, tuple[File, ...]] = field(default_factory=dict)
    done: Partial = NOTHING
    reporting: str | None = None
    phases: list[str] = field(default_factory=list)

    def finish(self, outcome: Outcome, files: Mapping[str, tuple[File, ...]]) -> None:
        """A piece is done."""
        self.outcomes.append(outcome)
        for folder, held in files.items():
            self.files[folder] = (*self.files.get(folder, ()), *held)
        emitted = {folder: sum(n for _, n in held) for folder, held in self.files.items()}
        reports = {r.replica: Progress(r.processed, r.busy_s) for r in outcome.reports}
        by_replica = _plus(self.done.by_replica, reports)
        late = self.done.late + sum(r.late for r in outcome.reports)
        events = self.done.events + (outcome.events or 0)
        self.done, self.reporting = Partial(events, by_replica, emitted, late), None

    def progress(self) -> Partial:
        """What is done so far, also by tasks that still run; called on other threads."""
        done, reporting = self.done, self.reporting
        running = read_progress(reporting) if reporting is not None else {}
        if not running:
            return done
        events = done.events + sum(p.processed for p in running.values())
        return Partial(events, _plus(done.by_replica, running), done.emitted, done.late)

    @property
    def events(self) -> int | None:
        """Events that the batch held; None where its runner cannot count them."""
        counts = [o.events for o in self.outcomes]
        return None if None in counts else sum(n or 0 for n in counts)

    @property
    def longest_s(self) -> tuple[float, ...]:
        """Busy seconds of the slowest task of each piece; empty where some task does not report."""
        each = [[r.busy_s for r in o.reports] for o in self.outcomes]
        return tuple(map(max, each)) if all(each) else ()

    @property
    def reports(self) -> list[Report]:
        return [r for o in self.outcomes for r in o.reports]


def _plus(one: Mapping[int, Progress], other: Mapping[int, Progress]) -> dict[int, Progress]:
    """Replica by replica sums."""
    none = Progress(0, 0.0)
    pairs = {i: (one.get(i, none), other.get(i, none)) for i in (*one, *other)}
    return {
        i: Progress(a.processed + b.processed, a.busy_s + b.busy_s) for i, (a, b) in pairs.items()
    }
