"""One system on one described app, live on a standalone cluster of Spark on loopback.

A master and two workers run as processes and offer four executors with ``--cores`` slots each;
operators wait their service time. The journal is kept; printed are the summary, what was lost by
the timeout, and replicas over time. With ``--pool`` slots for so many replicas of every operator
are kept ready. Beside the figures of the run stand those of the same system in the run's twin: the
simulator, calibrated on the whole run, under the load as it came; and, in a line of its own, the
mean latency of the twin when it is given the replicas of the run.

    python benchmarks/live_systems.py dabs-storm --load erratic --minutes 5 --set beta=0.1
    python benchmarks/live_systems.py drs --keep FOLDER ...    and again, without Spark:
    python benchmarks/live_systems.py drs --from FOLDER ...
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

import numpy as np
from standalone import standalone

from foretide.apps import App
from foretide.apps import app as app_named
from foretide.cli.pretrained import with_file
from foretide.cli.screen import summary
from foretide.journal import Run, read
from foretide.load import load as load_named
from foretide.model import Decision, Snapshot
from foretide.sim.calibrate import fitted, load_of
from foretide.spark.control.live import LiveRun
from foretide.spark.declare.described import described
from foretide.systems import System, system

CLUSTER = {
    "spark.executor.memory": "640m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
APP_OF = {"dabs-storm": "sensitive", "pa-sps": "twitter-linear", "bgelasor": "chain"}
SHOWN = 24
SEEDS = 4
EXECUTORS = 4


def lines(run: Run, decisions: Sequence[Decision]) -> list[str]:
    """Losses, and about two dozen rows of replicas over time."""
    windows = [d for d in decisions if d.snapshot is not None]
    samples = [s for d in windows if d.snapshot for s in d.snapshot.samples.values()]
    dropped = sum(s.dropped or 0.0 for s in samples)
    offered = sum(s.offered or 0.0 for s in samples)
    share = 100 * dropped / offered if offered else 0.0
    names = run.topology.names
    said = [f"lost by the timeout: {dropped:,.0f} of {offered:,.0f} events ({share:.1f} %)"]
    for name in names:
        phases = [p for d in windows if d.snapshot for p in d.snapshot.samples[name].phases]
        cycle = [p for p, _ in groupby(phases)]
        if cycle:
            said.append(
                f"phases of {name}: {' '.join(cycle[:12])} ..., "
                f"{cycle.count('RUN')} times RUN, {cycle.count('SEND_ALL')} times SEND_ALL"
            )
    said.append("second  events/s  " + "  ".join(names))
    for decision in windows[:: max(1, len(windows) // SHOWN)]:
        assert decision.snapshot is not None
        came = sum(s.offered or 0.0 for s in decision.snapshot.samples.values())
        row = [f"{decision.at - run.started_at:6.0f}", f"{came / decision.snapshot.window_s:8.1f}"]
        row += [f"{decision.snapshot.samples[n].replicas:{len(n)}d}" for n in names]
        said.append("  ".join(row))
    return said


def in_twin(app: App, chosen: System, seen: Sequence[Snapshot], target_s: float) -> list[Snapshot]:
    """The windows of the same system in the twin of these, beginning with the same replicas; with
    the app's hosts where the system places operators on hosts.
    """
    twin = fitted(app.topology, seen)
    hosts = app.hosts if chosen.places_operators else None
    changed = replace(twin.app, hosts=hosts, host_cores=app.host_cores, timeout_s=app.timeout_s)
    twin = replace(twin, app=changed)
    load = load_of(app.topology, seen)
    first = {n: max(1, s.replicas) for n, s in seen[0].samples.items()}
    environment = twin.environment(load, replicas=first, target_latency_s=target_s)
    loop = chosen.autoscaler(app.topology, environment, environment, stand_in=True)
    steps = [loop.step((i + 1) * load.interval_s) for i in range(len(seen))]
    return [d.snapshot for d in steps if d.snapshot is not None]


def figures(windows: Sequence[Snapshot]) -> dict[str, str]:
    """What is compared of a run and its twin."""
    done = [w.latency for w in windows if w.latency is not None]
    events = sum(x.count for x in done)
    replicas = [{n: s.replicas for n, s in w.samples.items()} for w in windows]
    totals = [sum(r.values()) for r in replicas]
    used_s = sum(t * w.window_s for t, w in zip(totals, windows, strict=True))
    samples = [s for w in windows for s in w.samples.values()]
    hosts = [len(w.hosts) for w in windows if w.hosts is not None]
    return {
        "mean latency s": f"{mean_s(windows):.1f}",
        "within the target %": f"{100 * sum(x.within or 0.0 for x in done) / events:.1f}",
        "replica-seconds": f"{used_s:.0f}",
        "most replicas": f"{max(totals)}",
        "windows with changes": f"{sum(a != b for a, b in pairwise(replicas))}",
        "lost by the timeout": f"{sum(s.dropped or 0.0 for s in samples):.0f}",
        "executors, mean": f"{np.mean(hosts):.2f}" if hosts else "-",
        "operators moved": f"{sum(1 for w in windows for m in w.moves if m.source)}",
    }


def beside(live: Sequence[Snapshot], twin: Sequence[Snapshot]) -> str:
    mine, its = figures(live), figures(twin)
    its["operators moved"] = "-"  # the simulator moves them and does not say so
    rows = [f"| {name} | {mine[name]} | {its[name]} |" for name in mine]
    return "\n".join(["| | live | twin |", "|---|---|---|", *rows])


def mean_s(windows: Sequence[Snapshot]) -> float:
    done = [w.latency for w in windows if w.latency is not None]
    return sum(x.mean_ms * x.count for x in done) / sum(x.count for x in done) / 1e3


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("system")
    options.add_argument("--app", default=None, help="a described app; see: foretide apps")
    options.add_argument("--load", default=None)
    options.add_argument("--scale", type=float, default=1.0)
    options.add_argument("--speed", type=float, default=None, help="rows of the load per second")
    options.add_argument("--minutes", type=float, default=5.0)
    options.add_argument("--window", type=float, default=5.0)
    options.add_argument("--target", type=float, default=10.0)
    options.add_argument("--pretrained", type=Path, default=None)
    options.add_argument("--pool", type=int, default=None)
    options.add_argument("--cores", type=int, default=8, help="slots of an executor")
    options.add_argument("--most", type=int, default=12, help="replicas of an operator at most")
    options.add_argument("--fixed", default=None, help="an allocation that stays, as 10:11:1")
    options.add_argument("--keep", type=Path, default=None, help="the run's folder")
    options.add_argument("--from", dest="recorded", type=Path, help="a run's folder, kept before")
    options.add_argument(
        "--set", action="append", default=[], metavar="KEY=NUMBER", help="a planner's constant"
    )
    given = options.parse_args()
    constants = {k: float(v) for k, v in (item.split("=") for item in given.set)}
    chosen = system(given.system).promised(given.target)
    chosen = replace(chosen, planner_constants={**chosen.planner_constants, **constants})
    past = None
    if given.pretrained is not None:
        chosen, trained = with_file(chosen, given.pretrained, given.window)
        past = trained.past
    app = app_named(given.app or APP_OF.get(given.system, "chain"))
    load = load_named(given.load or app.load, given.speed, given.scale).first(60 * given.minutes)
    pipeline = described(app, load)
    pipeline.limit_replicas(given.most)
    if given.fixed is not None:
        for name, n in zip(pipeline.steps, map(int, given.fixed.split(":")), strict=True):
            pipeline.steps[name] = replace(pipeline.steps[name], min_replicas=n, max_replicas=n)
    keep = given.recorded or given.keep or Path(tempfile.mkdtemp(prefix="foretide-live-"))
    if given.recorded is None:
        keep.mkdir(parents=True, exist_ok=True)
        with standalone(keep, cores=16) as master:
            live = LiveRun(
                pipeline,
                chosen,
                keep,
                "act",
                given.window,
                given.target,
                master,
                short_run=True,
                preload=("foretide.spark.declare.described",),
                spark_settings={
                    **CLUSTER,
                    "spark.executor.cores": str(given.cores),
                    "spark.cores.max": str(EXECUTORS * given.cores),
                },
                pool=given.pool,
                past=past,
            )
            live.go(steps=round(60 * given.minutes / given.window))
    run, decisions = read(keep / "journal.jsonl")
    run = replace(run, target_latency_s=given.target)
    print(summary(run, decisions))
    print("\n".join(lines(run, decisions)))
    seen = [d.snapshot for d in decisions if d.snapshot is not None]
    app = replace(app, topology=run.topology, hosts=EXECUTORS, host_cores=given.cores)
    print(beside(seen, in_twin(app, chosen, seen, given.target)))
    twin = fitted(run.topology, seen)
    again = [w for seed in range(1, SEEDS + 1) for w in twin.replay(seen, seed)]
    print(
        f"with the replicas of the run: mean {mean_s(seen):.1f} s live, {mean_s(again):.1f} s twin"
    )
    print(f"journal: {keep / 'journal.jsonl'}")


if __name__ == "__main__":
    main()
