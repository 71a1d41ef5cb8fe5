"""Three published systems scale the four-operator chain on real Spark, for a minute each."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _chain import chain
from pyspark.sql import SparkSession

from foretide.apps import app
from foretide.autoscaler import Cadence
from foretide.balance.osg import OnlineShuffle
from foretide.errors import MissingExtra
from foretide.forecast.pretrained import train
from foretide.forecast.state_file import decoded
from foretide.journal import read
from foretide.learned import forecasts_path
from foretide.load import Load
from foretide.spark.control.live import LiveRun
from foretide.spark.declare.described import described
from foretide.spark.run.running import Running
from foretide.systems import System, system

MINUTE_S = 60
SMALL_NET = {"lookback": 8, "horizon": 3, "hidden": 8, "rounds": 3}

CASES = {
    "pa-sps": (
        replace(system("pa-sps"), cadence=Cadence(horizon=10, plan_every=10, lookback=100)),
        1.0,
    ),
    "bgelasor": (
        replace(
            system("bgelasor"),
            forecaster_constants=SMALL_NET,
            cadence=Cadence(horizon=3, fit_every=24, scope="operators"),
        ),
        2.0,
    ),
    "drs": (
        replace(
            system("drs"),
            planner_constants={"t_max_s": 12.0, "t_min_s": 4.0, "reallocate_after_s": 10.0},
        ),
        2.0,
    ),
}


@pytest.mark.spark
@pytest.mark.parametrize("name", CASES)
def test_a_published_system_scales_the_chain_live(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    chosen, window_s = CASES[name]
    skip_without_its_extra(chosen)
    pipeline = chain(Load("rising sevenfold", np.linspace(10, 70, MINUTE_S)))
    run = LiveRun(
        pipeline,
        chosen,
        tmp_path,
        mode="act",
        window_s=window_s,
        target_latency_s=10.0,
        short_run=True,
    )
    told, decisions = run.go(steps=int(MINUTE_S / window_s), spark=spark)
    assert told.system == name
    assert [d.error for d in decisions if d.outcome == "failed"] == []
    plans = [d.plan for d in decisions if d.plan is not None]
    assert plans, decisions[-1].error
    for plan in plans:
        assert set(plan.replicas) == set(told.topology.names)
        assert all(any(c.isdigit() for c in plan.reasons[n]) for n in told.topology.names)
    assert any(d.outcome == "applied" for d in decisions), (
        "it never changed a replica under a load that rises sevenfold"
    )
    assert (
        sum(s.processed for d in decisions if d.snapshot for s in d.snapshot.samples.values()) > 0
    )
    assert len(read(run.journal)[1]) == len(decisions)


@pytest.mark.spark
def test_dabs_storm_changes_degrees_learns_costs_and_counts_what_it_loses(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The sensitive chain under a load for two replicas: AUTOSCALE+ scales out, the grouping leaves
    round-robin for learned costs, and every event left or was lost to the timeout and counted.
    """
    used = replace(
        system("dabs-storm"),
        planner_constants={"weight": 0.3, "beta": 0.1, "combine": "max", "settle_s": 4.0},
    )
    patient = replace(app("sensitive"), timeout_s=600.0)  # or a busy machine drops nearly all
    pipeline = described(patient, Load("a quarter of a minute", np.full(15, 60.0)))
    pipeline.limit_replicas(6)
    run = LiveRun(
        pipeline,
        used,
        tmp_path,
        "act",
        window_s=1.0,
        short_run=True,
        until_idle=True,
        profile={"source": 0.0005, "work": 0.03, "finish": 0.002},
    )
    seen: dict[str, Any] = {}

    def ended(running: Running) -> None:
        totals = {n: running.accounts.latest(n).delivered for n in running.topology.names}
        seen["costs"] = running.queries["work"].grouping
        seen["consumed"] = running.accounts.consumed("source")
        seen["left"] = totals["finish"].get("sink.out-finish", 0)
        seen["dead"] = sum(delivered.get("dead", 0) for delivered in totals.values())

    _, decisions = run.go(steps=600, spark=spark, ended=ended)
    assert [d.error for d in decisions if d.outcome == "failed"] == []
    assert max(d.plan.replicas["work"] for d in decisions if d.plan is not None) > 1
    assert isinstance(seen["costs"], OnlineShuffle)
    assert seen["costs"].sketch.events > 0, "what values cost came back from the replicas"
    assert len(seen["costs"].correction_s) > 0, "estimates were used and corrected"
    phases = [p for d in decisions if d.snapshot for p in d.snapshot.samples["work"].phases]
    assert phases[0] == "ROUND_ROBIN"
    assert "SEND_ALL" in phases, "the scheduler asked its replicas"
    assert seen["left"] + seen["dead"] == seen["consumed"] == 900
    samples = [s for d in decisions if d.snapshot for s in d.snapshot.samples.values()]
    assert sum(s.dropped or 0 for s in samples) <= seen["dead"]


@pytest.mark.spark
def test_a_restarted_run_forecasts_with_its_network_in_its_first_window(
    spark: SparkSession, tmp_path: Path
) -> None:
    used = replace(CASES["bgelasor"][0], cadence=Cadence(horizon=3, scope="operators"))
    skip_without_its_extra(used)
    load = Load("past", np.linspace(10, 40, 400))
    trained = train(load, "bigru", 1.0, **SMALL_NET)
    used = used.with_pretrained(trained)
    pipeline = chain(Load("steady", np.full(120, 40.0)))
    run = LiveRun(pipeline, used, tmp_path, window_s=1.0, short_run=True, past=trained.past)
    _, before = run.go(steps=12, spark=spark)
    _, after = run.go(steps=12, spark=spark)
    for decisions in (before, after):
        first = next(d for d in decisions if d.snapshot is not None)
        assert set(first.forecasts) == {"parse"}, first.error
    learned = decoded(forecasts_path(run.journal, "bigru").read_bytes())
    windows, rates = learned["history"]["windows"], learned["history"]["rates"]["parse"]
    assert windows[0] <= before[0].at + 1e-6, "the rates of both runs"
    assert windows[-1] == pytest.approx(after[-1].at)
    measured = [d.snapshot.samples["parse"].arrived for d in before if d.snapshot is not None]
    np.testing.assert_allclose(rates[: len(before)][np.isfinite(rates[: len(before)])], measured)


def skip_without_its_extra(chosen: System) -> None:
    try:
        chosen.new_forecaster()
    except MissingExtra as error:
        pytest.skip(str(error))
