from dataclasses import replace

import numpy as np
import pytest

from foretide.apps import APPS, App, Service, Values, app
from foretide.errors import InvalidConfig
from foretide.load import load
from foretide.topology import Operator, Topology

NAMES = {
    "twitter-linear", "twitter-complex", "dns", "logs", "insensitive", "sensitive", "opinion",
    "vld", "fpd", "chain", "two-paths",
    "loop-back", "ticks",
}  # fmt: skip


def test_every_app_of_the_papers_is_there() -> None:
    assert set(APPS) == NAMES
    with pytest.raises(InvalidConfig, match="did you mean 'two-paths'"):
        app("two-path")


@pytest.mark.parametrize("a", APPS.values(), ids=lambda a: a.name)
def test_its_default_load_never_needs_more_than_its_replicas(a: App) -> None:
    peak = load(a.load).rates(a.window_s).max()
    for name, visits in a.visits().items():
        assert peak * visits * a.service_s(name) <= a.topology[name].max_replicas, name


def test_visits_solve_splits_joins_and_loops() -> None:
    assert app("twitter-complex").visits() == pytest.approx(
        {
            "parse": 1,
            "spam": 1,
            "user": 0.2,
            "news": 0.8,
            "notify": 0.2,
            "sentiment": 0.72,
            "topic": 0.8,
            "store": 1,
        }
    )
    assert app("fpd").visits() == pytest.approx({"generate": 1, "detect": 3 / 0.8, "report": 0.75})
    assert app("loop-back").visits() == pytest.approx({"first": 1.25, "second": 1.25})


def test_the_worked_example_of_pa_sps_figure_6() -> None:
    t = Topology(
        (
            Operator("o1"),
            Operator("o2", ("o1",)),
            Operator("o3", ("o1",)),
            Operator("o4", ("o2", "o3")),
        )
    )
    shares = {("o1", "o2"): 0.7, ("o1", "o3"): 0.3, ("o2", "o4"): 0.4}
    figure_6 = App("figure-6", "", "", t, dict.fromkeys(t.names, Service(0.001)), shares)
    assert figure_6.visits() == pytest.approx({"o1": 1, "o2": 0.7, "o3": 0.3, "o4": 0.58})


def test_costs_of_the_linear_app_are_those_of_the_authors_code() -> None:
    linear = app("twitter-linear")
    assert [linear.service_s(n) * 1000 for n in linear.topology.names] == pytest.approx(
        [0.66, 1.32, 0.99, 0.66]
    )


def test_service_by_value_averages_over_the_values() -> None:
    by_value = Service(1.0, "by-value", by_value_s=(0.01, 0.03))
    assert by_value.average_s(Values(4)) == pytest.approx(0.02)
    assert by_value.average_s(Values(2, zipf=1.0)) == pytest.approx((2 * 0.01 + 0.03) / 3)
    assert np.isclose(Values(1000, zipf=1.5).probabilities().sum(), 1)


def test_impossible_apps_are_refused() -> None:
    t = Topology((Operator("a"), Operator("b", ("a",)), Operator("c", ("a",))))
    times = dict.fromkeys(t.names, Service(0.1))
    with pytest.raises(InvalidConfig, match="disagree about c"):
        App("x", "", "", t, {"a": Service(0.1), "b": Service(0.1)})
    with pytest.raises(InvalidConfig, match="b -> a: no such edge"):
        App("x", "", "", t, times, {("b", "a"): 0.5})
    with pytest.raises(InvalidConfig, match="must sum to 1"):
        App("x", "", "", t, times, splits=frozenset({"a"}))
    with pytest.raises(
        InvalidConfig,
        match="app 'loop-back': a loop of the topology sends back at least as many events as enter "
        "it",
    ):
        replace(app("loop-back"), selectivity={("second", "first"): 1.2})
    with pytest.raises(InvalidConfig, match="by value needs by_value_s"):
        Service(0.1, "by-value")
    with pytest.raises(InvalidConfig, match="must be > 0"):
        Service(0.0)


def _best(rates: list[float], times: list[float], total: int) -> list[int]:
    """DRS algorithm 1, written apart from the planner: greedy on M/M/k sojourn times."""

    def sojourn(rate: float, time: float, k: int) -> float:
        load_, b = rate * time, 1.0
        for n in range(1, k + 1):
            b = load_ * b / (n + load_ * b)
        return time + b / (1 - load_ / k * (1 - b)) / (k / time - rate)

    ks = [int(r * t) + 1 for r, t in zip(rates, times, strict=True)]
    while sum(ks) < total:
        gains = [
            r * (sojourn(r, t, k) - sojourn(r, t, k + 1))
            for r, t, k in zip(rates, times, ks, strict=True)
        ]
        ks[int(np.argmax(gains))] += 1
    return ks


@pytest.mark.parametrize(
    ("name", "rate", "total", "best"),
    [("vld", 13, 22, [10, 11, 1]), ("vld", 5, 7, [3, 3, 1]), ("fpd", 320, 22, [6, 13, 3])],
)
def test_drs_apps_have_the_published_best_allocations(
    name: str, rate: float, total: int, best: list[int]
) -> None:
    a = app(name)
    assert (
        _best(
            [rate * v for v in a.visits().values()],
            [a.service_s(n) for n in a.topology.names],
            total,
        )
        == best
    )
