"""FUGU's figures: what they are computed from, and the order that the paper reports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foretide.model import Decision, Host, Latency, Plan, Sample, Snapshot
from foretide.papers.fugu import HostFigures, HostRun, averaged, host_figures, run, tables
from foretide.papers.paper import Bench


def decision(
    at: float, placement: dict[str, tuple[str, ...]], levels: dict[str, float], ms: float
) -> Decision:
    latency = Latency(1, ms, ms, ms, ms)
    samples = {"feed": Sample(1, 1, 0, 1), "q1a": Sample(1, 1, 0, 1, latency=latency)}
    snapshot = Snapshot(at, 5.0, samples, tuple(Host(n, u) for n, u in levels.items()))
    return Decision(
        at, "applied", "act", snapshot, plan=Plan({"feed": 1, "q1a": 1}, placement=placement)
    )


def test_host_figures_by_hand() -> None:
    decisions = [
        decision(5.0, {"q1a": ("h1",)}, {"h1": 0.2, "h2": 0.6}, 100.0),
        decision(10.0, {"q1a": ("h2",)}, {"h1": 0.4, "h2": 0.8}, 300.0),
        decision(15.0, {"q1a": ("h2",)}, {"h2": 0.9}, 200.0),
    ]
    figures = host_figures(decisions)
    assert figures.lowest == pytest.approx((0.2 + 0.4 + 0.9) / 3)
    assert figures.mean == pytest.approx((0.4 + 0.6 + 0.9) / 3)
    assert figures.highest == pytest.approx((0.6 + 0.8 + 0.9) / 3)
    assert figures.p50_ms == 200.0
    assert figures.hosts == pytest.approx(5 / 3)
    assert figures.changes == 1.0
    assert averaged([figures]).mean == figures.mean
    assert averaged([figures, replace(figures, hosts=3.0)]).hosts == pytest.approx((5 / 3 + 3) / 2)


def test_the_same_case_gives_the_same_figures() -> None:
    case = HostRun("rl", seconds=120)
    first = run(case)
    assert isinstance(first, HostFigures)
    assert run(case) == first


@pytest.mark.slow
def test_utilization_of_rl_is_above_local_above_global() -> None:
    """Default configuration, Day1, one hour; the p90 latency is reported by the benchmark
    (docs/papers/fugu.md).
    """
    figures = {
        t: averaged([run(HostRun(t, seed=s)) for s in (1, 2)]) for t in ("rl", "local", "global")
    }
    assert figures["rl"].mean > figures["local"].mean > figures["global"].mean
    assert figures["local"].p90_ms < figures["global"].p90_ms


@pytest.mark.slow
def test_every_figure_has_its_table() -> None:
    published = tables(Bench(seeds=1, processes=1), seconds=60)
    keys = ["table-i", *(f"figure-{n}" for n in range(4, 9)), "figure-8-fill", "figure-9"]
    assert [t.key for t in published] == keys
    assert all(t.rows and t.claims for t in published)
