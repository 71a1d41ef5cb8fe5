"""Cores and latency of a four-operator chain at 500 events/s and a 2 s trigger, two replicas each,
after warm-up.

Usage: python benchmarks/four_operators.py [EVENTS PER SECOND] [WARM-UP SECONDS] [MEASURED SECONDS]
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _chain import SHARES, chain
from _processes import cpu_s

from foretide.errors import NotReady
from foretide.load import Load
from foretide.spark import Running, session
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.control.probe import PipelineProbe


def main() -> None:
    rate, warm_up_s, measured_s = (
        float(sys.argv[i]) if len(sys.argv) > i else d
        for i, d in ((1, 500.0), (2, 60.0), (3, 60.0))
    )
    load = Load("flat", np.full(round(warm_up_s + measured_s + 120), rate))
    with tempfile.TemporaryDirectory() as folder:
        spark = session("four-operators")
        with Running(chain(load, trigger_s=2.0, cost_s=0.0005), spark, Path(folder)) as running:
            running.set_replicas(dict.fromkeys(SHARES, 2))
            probe = PipelineProbe(running, ExecutorPool(spark))
            time.sleep(warm_up_s)
            with contextlib.suppress(NotReady):  # the first read only opens the window
                probe.read(time.time())
            spent_s, started = cpu_s(), time.monotonic()
            time.sleep(measured_s)
            cores = (cpu_s() - spent_s) / (time.monotonic() - started)
            snapshot = probe.read(time.time())
        spark.stop()
    assert snapshot.latency is not None
    left = snapshot.samples["store"].processed / snapshot.window_s
    print(
        f"{rate:.0f} events/s offered, {left:.0f}/s left the chain (a tenth is dropped as spam); "
        f"machine has {os.cpu_count()} cores"
    )
    print(f"cores used: {cores:.2f}; load average {os.getloadavg()[0]:.1f}")
    print(
        f"end to end latency: p50 {snapshot.latency.p50_ms / 1e3:.1f} s, p90 "
        f"{snapshot.latency.p90_ms / 1e3:.1f} s, "
        f"p99 {snapshot.latency.p99_ms / 1e3:.1f} s over {snapshot.latency.count:.0f} events"
    )
    print("backlogs: " + ", ".join(f"{n} {s.backlog:.0f}" for n, s in snapshot.samples.items()))


if __name__ == "__main__":
    main()
