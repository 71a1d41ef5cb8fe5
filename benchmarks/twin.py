"""The simulator as a twin of real Spark runs: calibrated on the first half of a run, asked for the
second half, on five apps at several loads.

python benchmarks/twin.py [--apps chain,split,loop,stateful,hosts] [--loads 5,10,20] [--seconds 60]
python benchmarks/twin.py --system static     replicas that stay, so that only latency is compared
python benchmarks/twin.py --apps waves        four operators under a load in waves, six replicas
python benchmarks/twin.py --from FOLDER       the same with runs recorded before (--keep FOLDER)

Every app runs live under one system. The twin of its first half replays the load and the replicas
of the second one, from what waited at its beginning: mean latency end to end. Beside it the error
of a twin of the second half itself: what is left when no chance lies between calibration and use.
The same system, run in the twin under the load as it came, chooses replicas, compared with those it
chose on Spark. About 90 s for an app at a load; needs Java.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from _chain import chain
from pyspark.sql import SparkSession

from foretide.apps import App, Service
from foretide.apps import app as app_named
from foretide.errors import ForetideError
from foretide.journal import read
from foretide.load import Load
from foretide.model import Snapshot
from foretide.sim.calibrate import Twin, fitted, load_of
from foretide.spark import session
from foretide.spark.control.live import LiveRun
from foretide.spark.declare.described import described
from foretide.spark.declare.pipeline import Pipeline
from foretide.spark.run.running import Running
from foretide.systems import System, system
from foretide.topology import Operator, Topology

COLD_S = 40.0
SEEDS = 8
"""Replays whose mean is what the twin foretells: service times are drawn."""
BUSY = 0.5
"""Share of the time that replicas which stay are busy."""


def stateful() -> App:
    """A chain whose second operator is grouped by key, with unequal keys."""
    chain = app_named("chain")
    operators = (Operator("first"), Operator("second", inputs=("first",), stateful=True))
    service = {"first": Service(0.05), "second": Service(0.08)}
    return replace(chain, name="by-key", topology=Topology(operators), service=service)


APPS = {
    "chain": lambda: app_named("chain"),
    "split": lambda: app_named("two-paths"),
    "loop": lambda: app_named("loop-back"),
    "stateful": stateful,
    "hosts": lambda: app_named("vld"),
}


@dataclass(frozen=True)
class Settings:
    """How every case runs: its system and its lengths in seconds."""

    system: str = "ds2"
    seconds: float = 60.0
    trigger_s: float = 2.0
    window_s: float = 3.0
    warm_up_s: float = 24.0

    @property
    def warm_up_windows(self) -> int:
        return round(self.warm_up_s / self.window_s)

    @property
    def windows(self) -> int:
        return self.warm_up_windows + round(self.seconds / self.window_s)

    def chooser(self, name: str, rate: float) -> System:
        """The system of a run: for ``static`` as many replicas as the load keeps ``BUSY``."""
        if self.system != "static":
            return system(self.system)
        if name == "waves":
            return system("static", planner_constants={"replicas": 6})
        app = APPS[name]()
        load = rate / max(app.visits().values())
        replicas = {
            n: math.ceil(load * v * app.service_s(n) / BUSY) for n, v in app.visits().items()
        }
        return system("static", planner_constants={"replicas": replicas})


@dataclass(frozen=True)
class Row:
    """One app at one load: seconds on Spark, foretold, and by a twin of the same windows; replicas
    on Spark and in the twin.
    """

    name: str
    rate: float
    real_s: float
    foretold_s: float
    own_s: float
    real: dict[str, int]
    chosen: dict[str, int]

    @property
    def error(self) -> float:
        return self.foretold_s / self.real_s - 1

    @property
    def own_error(self) -> float:
        return self.own_s / self.real_s - 1

    @property
    def apart(self) -> int:
        return max(abs(self.real[n] - self.chosen[n]) for n in self.real)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--apps", default=",".join(APPS), help="or waves")
    parser.add_argument("--loads", default="5,10,20", help="events/s at the busiest operator")
    parser.add_argument("--cases", help="as chain:10,split:8 instead of every app at every load")
    parser.add_argument("--system", default="ds2")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each run, past the warm-up")
    parser.add_argument("--trigger", type=float, default=2.0)
    parser.add_argument("--window", type=float, default=3.0)
    parser.add_argument("--warm-up", type=float, default=24.0)
    parser.add_argument("--keep", type=Path, help="keep the journals of the runs here")
    parser.add_argument("--from", dest="recorded", type=Path, help="take the journals kept here")
    given = parser.parse_args()
    settings = Settings(given.system, given.seconds, given.trigger, given.window, given.warm_up)
    pairs = [(name, rate) for name in given.apps.split(",") for rate in given.loads.split(",")]
    if given.cases:
        pairs = [
            (name, rate) for name, _, rate in (c.partition(":") for c in given.cases.split(","))
        ]
    cases = [(name, float(rate)) for name, rate in pairs]
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.recorded or given.keep or Path(scratch)
        ready = cases if given.recorded else recorded(cases, folder, settings)
        report(ready, folder, settings)


def journal_of(folder: Path, name: str, rate: float) -> Path:
    return folder / f"{name}-{rate:g}" / "journal.jsonl"


def recorded(
    cases: Sequence[tuple[str, float]], folder: Path, settings: Settings
) -> Iterator[tuple[str, float]]:
    """Every case once it has run, in one session: Java compiles in the first half minute."""
    spark = session("twin", master="local[32]", short_run=True)
    with tempfile.TemporaryDirectory() as scratch:
        cold = replace(settings, seconds=COLD_S, warm_up_s=0.0)
        record_one(*cases[0], Path(scratch), cold, spark)
    for name, rate in cases:
        record_one(name, rate, journal_of(folder, name, rate).parent, settings, spark)
        yield name, rate
    spark.stop()


def record_one(
    name: str, rate: float, place: Path, settings: Settings, spark: SparkSession
) -> None:
    """One run; what Spark reports of its batches is kept beside the journal."""

    def ended(running: Running) -> None:
        progress = {
            q.name: [json.loads(p.json) for p in q.query.recentProgress]
            for q in running.queries.values()
            if q.query is not None
        }
        (place / "progress.json").write_text(json.dumps(progress))

    live = LiveRun(
        pipeline_of(name, rate, settings),
        settings.chooser(name, rate),
        place,
        "act",
        settings.window_s,
    )
    live.go(steps=settings.windows, spark=spark, ended=ended)


def pipeline_of(name: str, rate: float, settings: Settings) -> Pipeline:
    seconds = np.arange(int(settings.warm_up_s + settings.seconds + 60))
    if name == "waves":
        waves = Load("waves", rate * (1 + 0.55 * np.sin(2 * np.pi * seconds / 90)))
        return chain(waves, trigger_s=settings.trigger_s)
    app = APPS[name]()
    load = Load("level", np.full(seconds.size, rate / max(app.visits().values())))
    return described(app, load, trigger_s=settings.trigger_s)


def report(cases: Iterable[tuple[str, float]], folder: Path, settings: Settings) -> None:
    columns = f"{'Spark s':>9}{'twin s':>8}{'error':>8}{'own':>7}"
    print(f"{'app':10}{'load/s':>8}{columns}   replicas Spark / twin")
    rows = []
    for name, rate in cases:
        if not journal_of(folder, name, rate).exists():
            continue
        try:
            row = compared(name, rate, journal_of(folder, name, rate), settings)
        except ForetideError as error:
            print(f"{name:10}{rate:8g}   not comparable: {error}", flush=True)
            continue
        rows.append(row)
        replicas = " ".join(f"{n} {k}/{row.chosen[n]}" for n, k in row.real.items())
        latency = f"{row.real_s:9.2f}{row.foretold_s:8.2f}{row.error:+8.0%}{row.own_error:+7.0%}"
        print(f"{name:10}{rate:8g}{latency}   {replicas}", flush=True)
    if rows:
        near = sum(abs(r.error) <= 0.15 for r in rows)
        same = sum(r.apart <= 1 for r in rows)
        print(
            f"{near} of {len(rows)} within 15 %, median error "
            f"{np.median([abs(r.error) for r in rows]):.0%}; by twins of the same windows "
            f"{np.median([abs(r.own_error) for r in rows]):.0%}; replicas within 1 in {same}"
        )


def compared(name: str, rate: float, journal: Path, settings: Settings) -> Row:
    run, decisions = read(journal)
    seen = [d.snapshot for d in decisions if d.snapshot is not None]
    seen = seen[settings.warm_up_windows :]
    before, after = seen[: len(seen) // 2], seen[len(seen) // 2 :]
    twin, own = (fitted(run.topology, part, settings.trigger_s) for part in (before, after))
    foretold, same = (
        [w for seed in range(1, SEEDS + 1) for w in t.replay(after, seed)] for t in (twin, own)
    )
    chosen = chosen_in(twin, seen, settings.chooser(name, rate))
    real = {n: usual([s.samples[n].replicas for s in after]) for n in run.topology.names}
    return Row(
        name, rate, *(mean_s(run.topology, w) for w in (after, foretold, same)), real, chosen
    )


def chosen_in(twin: Twin, seen: Sequence[Snapshot], chooser: System) -> dict[str, int]:
    """The replicas that the system usually has in the second half when it runs in the twin."""
    names = twin.app.topology.names
    first = {n: max(1, seen[0].samples[n].replicas) for n in names}
    load = load_of(twin.app.topology, seen)
    environment = twin.environment(load, replicas=first)
    loop = chooser.autoscaler(twin.app.topology, environment, environment)
    kept = []
    for i in range(1, len(seen) + 1):
        snapshot = loop.step(i * load.interval_s).snapshot
        if snapshot is not None and i > len(seen) // 2:
            kept.append(snapshot)
    return {n: usual([s.samples[n].replicas for s in kept]) for n in names}


def usual(counts: Sequence[int]) -> int:
    return int(np.median(counts))


def mean_s(topology: Topology, windows: Sequence[Snapshot]) -> float:
    """Mean latency end to end: age of events when they are done at the last operators. In a loop no
    operator is the last, so there it is the completion of inputs.
    """
    last = [s.samples[n].latency for s in windows for n in topology.sinks]
    known = [x for x in last or [s.completion for s in windows] if x]
    return sum(x.mean_ms * x.count for x in known) / sum(x.count for x in known) / 1e3


if __name__ == "__main__":
    main()
