"""The simulator as a twin of a real Spark run: calibrated on the first half of a recorded run,
asked for the second half's latency.

python benchmarks/twin.py [--keep JOURNAL]    about four minutes; needs Java
python benchmarks/twin.py --from JOURNAL      the same with a run recorded before
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from _chain import chain

from foretide.journal import Run, read
from foretide.load import Load
from foretide.model import Decision, Snapshot
from foretide.sim.calibrate import fitted
from foretide.spark.control.live import LiveRun
from foretide.systems import system

TRIGGER_S, WINDOW_S, WARM_UP_S = 2.0, 10.0, 40.0


def mean_latency_ms(windows: Sequence[Snapshot]) -> float:
    left = [s.latency for s in windows if s.latency]
    return sum(x.mean_ms * x.count for x in left) / sum(x.count for x in left)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--keep", type=Path, help="keep the journal of the run here")
    parser.add_argument(
        "--from", dest="recorded", type=Path, help="do not run Spark: take this journal"
    )
    given = parser.parse_args()
    recorded, decisions = (
        read(given.recorded) if given.recorded else run_on_spark(given.minutes, given.keep)
    )
    report(recorded, decisions)


def run_on_spark(minutes: float, keep: Path | None) -> tuple[Run, list[Decision]]:
    windows = int(minutes * 60 / WINDOW_S)
    seconds = np.arange(int(WARM_UP_S + windows * WINDOW_S) + 60)
    load = Load("two waves", 45 + 25 * np.sin(2 * np.pi * seconds / 90))
    chosen = system("static", planner_constants={"replicas": 6})
    with tempfile.TemporaryDirectory() as folder:
        run = LiveRun(
            chain(load, trigger_s=TRIGGER_S),
            chosen,
            Path(folder),
            mode="act",
            window_s=WINDOW_S,
            short_run=True,
        )
        found = run.go(steps=windows + int(WARM_UP_S / WINDOW_S))
        if keep is not None:
            shutil.copy(run.journal, keep)
    return found


def report(recorded: Run, decisions: Sequence[Decision]) -> None:
    seen = [d.snapshot for d in decisions if d.snapshot is not None][int(WARM_UP_S / WINDOW_S) :]
    half = len(seen) // 2
    first, second = seen[:half], seen[half:]
    twin = fitted(recorded.topology, first, TRIGGER_S)
    print(
        f"{len(seen)} windows of {WINDOW_S:.0f} s on Spark, six replicas per operator, after "
        f"{WARM_UP_S:.0f} s of warm-up"
    )
    for name, service in twin.app.service.items():
        print(
            f"  {name:8} {1e3 * service.mean_s:7.2f} ms per event, "
            f"{twin.costs.overheads_s[name]:.2f} s per batch"
        )
    real, foretold = mean_latency_ms(second), mean_latency_ms(twin.replay(seen)[half:])
    print(
        f"second half, mean latency: {real:.0f} ms on Spark, {foretold:.0f} ms foretold: "
        f"{foretold / real - 1:+.1%} (target: within 25 %)"
    )


if __name__ == "__main__":
    main()
