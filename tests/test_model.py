import math

import numpy as np
import pytest

from foretide.errors import InvalidRecord
from foretide.model import Forecast, Host, Latency, Plan, Prices, Sample, Snapshot, WindowPrices
from foretide.topology import Operator, Topology

GOOD = {"arrived": 1.0, "processed": 1.0, "backlog": 0.0, "replicas": 1}


@pytest.mark.parametrize(
    "field",
    ["arrived", "processed", "backlog", "busy_s", "offered", "dropped", "sojourn_s", "scv_service"],
)
@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_samples_refuse_impossible_counts(field: str, bad: float) -> None:
    with pytest.raises(InvalidRecord, match=f"Sample.{field}"):
        Sample(**{**GOOD, field: bad})  # type: ignore[arg-type]


def test_samples_refuse_negative_edges_and_replicas() -> None:
    with pytest.raises(InvalidRecord, match="emitted\\['b'\\]"):
        Sample(1, 1, 0, 1, emitted={"b": -1})
    with pytest.raises(InvalidRecord, match="replicas"):
        Sample(1, 1, 0, -1)


def test_not_measured_is_none_not_zero() -> None:
    sample = Sample(1, 1, 0, 1)
    assert sample.busy_s is None
    assert sample.latency is None
    assert sample.max_parallelism is None
    assert (Snapshot(0.0, 1.0, {}).lead_s, Snapshot(0.0, 1.0, {}).slots) == (None, None)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Snapshot(math.nan, 1.0, {}),
        lambda: Snapshot(0.0, 0.0, {}),
        lambda: Snapshot(0.0, 1.0, {}, lead_s=-1.0),
        lambda: Snapshot(0.0, 1.0, {}, lead_s=math.nan),
        lambda: Snapshot(0.0, 1.0, {}, slots=-1),
        lambda: Sample(1, 1, 0, 1, max_parallelism=0),
        lambda: Host("h", -0.1),
        lambda: Latency(1, math.nan, 1, 1, 1),
        lambda: Forecast(()),
        lambda: Forecast((math.nan,)),
        lambda: Forecast((-1.0,)),
        lambda: Forecast((1.0,), (1.0, 2.0)),
        lambda: Plan({"a": 0}),
        lambda: Plan({"a": 1}, executors=-1),
        lambda: Prices(up=-1),
    ],
)
def test_impossible_records(build) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidRecord):
        build()


def test_a_snapshot_must_speak_of_the_topologys_operators() -> None:
    topology = Topology((Operator("a"), Operator("b", inputs=("a",))))
    with pytest.raises(InvalidRecord, match="disagree about b"):
        Snapshot(0.0, 1.0, {"a": Sample(**GOOD)}).check(topology)  # type: ignore[arg-type]


def test_forecast_of_any_model_output_is_never_negative_and_upper_never_below_mean() -> None:
    forecast = Forecast.of(np.array([-2.0, 3.0]), np.array([1.0, 2.0]))
    assert forecast.mean == (0.0, 3.0)
    assert forecast.upper == (1.0, 3.0)
    assert forecast.horizon == 2


def test_a_changed_plan_adds_its_reason_and_an_unchanged_one_is_itself() -> None:
    plan = Plan({"a": 3, "b": 2}, {"a": "load"})
    assert plan.but({"a": 3}, "why") is plan
    changed = plan.but({"a": 2, "b": 2}, "budget")
    assert changed.replicas == {"a": 2, "b": 2}
    assert changed.reasons == {"a": "load; budget"}
    assert changed.total == 4


@pytest.mark.parametrize("window_s", [1.0, 5.0, 10.0, 30.0, 60.0, 300.0])
def test_published_prices_convert_exactly(window_s: float) -> None:
    published = WindowPrices()
    assert published.per_second(window_s).per_window(window_s) == published
    assert Prices().per_window(30.0) == published


def test_a_replica_costs_as_much_as_a_restart_after_the_break_even_time() -> None:
    assert Prices(replica_second=2.0, up=5.0, down=3.0).break_even_s == 4.0
    assert math.isinf(Prices(replica_second=0.0).break_even_s)
