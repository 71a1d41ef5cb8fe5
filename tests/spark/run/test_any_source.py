"""Sources that are not ours, on real Spark: arrivals while a batch runs, large batches in pieces, a
restart that goes on with what was learned.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from foretide.errors import NotReady
from foretide.spark import Pipeline, Running
from foretide.spark.control.executors import ExecutorPool
from foretide.spark.control.live import LiveRun
from foretide.spark.control.probe import PipelineProbe
from foretide.systems import system

pytestmark = pytest.mark.spark

LINES = 1200
WAIT_S = 0.02
LIMIT_S = 120.0


def waiting(
    source: Callable[[SparkSession], DataFrame],
    schema: str,
    wait_s: float,
    stamp: str | None = None,
) -> Pipeline:
    """One operator on ``source`` that waits for every event."""
    p = Pipeline("external", trigger_s=1.0)
    p.source("events", source, stamp=stamp)

    @p.operator(inputs="events", schema=schema, max_replicas=12)
    def work(event: dict[str, Any]) -> dict[str, Any]:
        time.sleep(wait_s)
        return {"value": event["value"]}

    p.sink("out", inputs="work")
    return p


def until(running: Running, test: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT_S
    while not test():
        running.check()
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_a_constant_load_on_a_rate_source_settles_within_three_windows_and_stays(
    spark: SparkSession, tmp_path: Path
) -> None:
    per_s, wait_s, window_s = 60, 0.03, 4.0
    p = waiting(
        lambda s: s.readStream.format("rate").option("rowsPerSecond", per_s).load(),
        "value long",
        wait_s,
    )
    run = LiveRun(p, system("ds2"), tmp_path, mode="act", window_s=window_s, short_run=True)
    _, decisions = run.go(steps=11, spark=spark)
    samples = [d.snapshot.samples["work"] for d in decisions if d.snapshot is not None]
    arrived = [s.arrived for s in samples]
    assert all(abs(a - per_s * window_s) <= 2 * per_s for a in arrived), arrived
    assert abs(sum(arrived) / len(arrived) - per_s * window_s) < 0.15 * per_s * window_s, arrived
    need = per_s * wait_s / 0.7
    plans = [d.plan.replicas["work"] for d in decisions if d.plan is not None]
    assert len(plans) >= 4, [d.error for d in decisions]
    assert all(abs(n - need) <= 1 for n in plans[2:]), plans
    assert [s.backlog > 0 for s in samples] == [True] * len(samples), "a batch is always at work"


@pytest.mark.long
def test_a_constant_load_is_within_its_target_after_a_minute(
    spark: SparkSession, tmp_path: Path
) -> None:
    """100 events/s at 30 ms each under the defaults. Whether it keeps the target depends on how
    busy the machine is, so this runs with make slow only.
    """
    per_s, wait_s, target_s = 100, 0.03, 10.0
    p = waiting(
        lambda s: s.readStream.format("rate").option("rowsPerSecond", per_s).load(),
        "value long",
        wait_s,
        stamp="timestamp",
    )
    run = LiveRun(
        p,
        system("foretide"),
        tmp_path,
        mode="act",
        window_s=5.0,
        target_latency_s=target_s,
        share=0.99,
        short_run=True,
    )
    _, decisions = run.go(steps=20, spark=spark)
    seen = [d.snapshot for d in decisions if d.snapshot is not None]
    later = [s for s in seen if s.at - seen[0].at >= 60 and s.latency is not None]
    p90_s = [s.latency.p90_ms / 1e3 for s in later if s.latency is not None]
    assert len(p90_s) >= 4, p90_s
    assert max(p90_s) <= target_s, p90_s
    replicas = [s.samples["work"].replicas for s in later]
    assert abs(min(replicas) - per_s * wait_s) <= 2, f"back near the need: {replicas}"


def test_a_first_batch_of_all_that_waits_runs_in_pieces_on_the_replicas_of_the_moment(
    spark: SparkSession, tmp_path: Path
) -> None:
    inputs = tmp_path / "in"
    inputs.mkdir()
    (inputs / "a.txt").write_text("\n".join(f"line {i}" for i in range(LINES)))
    p = waiting(lambda s: s.readStream.text(str(inputs)), "value string", WAIT_S)
    run = tmp_path / "run"
    with Running(p, spark, run) as running:
        probe = PipelineProbe(running, ExecutorPool(spark))
        with pytest.raises(NotReady):
            probe.read(1.0)
        until(running, lambda: running.accounts.done("work") > 0)
        sample = probe.read(2.0).samples["work"]
        assert running.accounts.latest("work").batch == -1, "the first batch still runs"
        assert sample.backlog == LINES - sample.processed, "the running batch included"
        assert sample.busy_s is not None
        assert sample.busy_s / sample.processed == pytest.approx(WAIT_S, rel=0.3)
        running.set_replicas({"work": 6})
        running.wait()
        (batch,) = [d for d in running.accounts.take()["work"].deliveries if d.events]
        assert batch.events == LINES
        assert {r.replica for r in batch.reports} == set(range(6)), "more replicas in mid-batch"
        assert sorted(r["value"] for r in running.read("out").collect()) == sorted(
            f"line {i}" for i in range(LINES)
        )
        learned_s, limit = running.limits.service_time_s("work"), running.limits.of("work")
        assert learned_s == pytest.approx(WAIT_S, rel=0.3)
    with Running(p, spark, run) as running:
        assert running.replicas == {"work": 6}
        assert running.service_times_s() == {"work": running.limits.service_time_s("work")}
        assert running.limits.service_time_s("work") == pytest.approx(learned_s, rel=0.25)
        assert running.limits.of("work") == pytest.approx(limit, rel=0.3)
        assert running.backlog("work") == 0
        (inputs / "b.txt").write_text("one more")
        assert running.backlog("work") == 1, "a file counts before any batch takes it"
        running.wait()
        assert running.accounts.consumed("work") == LINES + 1


def test_a_backlog_without_new_input_is_worked_off_with_more_replicas(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Everything waits before the start: a minute's work for one replica."""
    inputs = tmp_path / "in"
    inputs.mkdir()
    (inputs / "a.txt").write_text("\n".join(f"line {i}" for i in range(3000)))
    p = waiting(lambda s: s.readStream.text(str(inputs)), "value string", WAIT_S)
    run = LiveRun(
        p,
        system("foretide"),
        tmp_path / "run",
        mode="act",
        window_s=4.0,
        target_latency_s=10.0,
        short_run=True,
        until_idle=True,
    )
    _, decisions = run.go(steps=20, spark=spark)
    samples = [d.snapshot.samples["work"] for d in decisions if d.snapshot is not None]
    story = [(s.arrived, s.processed, s.backlog, s.replicas) for s in samples]
    assert max(s.replicas for s in samples) >= 3, story
    assert len(decisions) < 20, f"the run ends when nothing waits: {story}"
    assert [d.error for d in decisions if d.outcome == "failed"] == []
