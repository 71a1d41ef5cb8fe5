"""Tree completion in the twin: exact, against what service times alone say where nothing waits."""

import numpy as np
import pytest

from foretide.apps import App, Service, app
from foretide.load import Load
from foretide.model import Snapshot
from foretide.sim.environment import Simulation, SimulationSettings
from foretide.topology import Operator, Topology


def seen(of: App, mode: str = "events", rate: float = 4.0, seconds: int = 2000) -> Snapshot:
    """One long window in which nothing ever waits for a replica."""
    replicas = {o.name: o.max_replicas for o in of.topology.operators}
    settings = SimulationSettings(mode=mode, window_s=float(seconds))  # type: ignore[arg-type]
    load = Load("level", np.full(seconds - 50, rate))
    return Simulation(of, load, settings, replicas=replicas).read(float(seconds))


def fixed(edges: dict[str, tuple[str, ...]], shares: dict[tuple[str, str], float]) -> App:
    operators = tuple(
        Operator(n, inputs, max_replicas=40, source=n == "first") for n, inputs in edges.items()
    )
    service = {n: Service(0.1 * (i + 1)) for i, n in enumerate(edges)}
    return App("test", "", "", Topology(operators), service, shares, arrivals="poisson")


def test_without_branches_completion_is_the_latency_and_the_sum_of_sojourns() -> None:
    snapshot = seen(fixed({"first": (), "second": ("first",)}, {}))
    assert snapshot.completion is not None
    assert snapshot.latency is not None
    assert snapshot.completion.count == snapshot.latency.count
    assert snapshot.completion.mean_ms == pytest.approx(300.0)
    assert snapshot.latency.mean_ms == pytest.approx(300.0, rel=1e-4)
    assert snapshot.sojourn_sum_s == pytest.approx(0.3)


def test_branches_side_by_side_are_complete_with_the_slower_one() -> None:
    snapshot = seen(fixed({"first": (), "left": ("first",), "right": ("first",)}, {}))
    assert snapshot.completion is not None
    assert snapshot.latency is not None
    assert snapshot.completion.mean_ms == pytest.approx(100.0 + 300.0)
    assert snapshot.completion.count == pytest.approx(snapshot.latency.count / 2)
    assert snapshot.sojourn_sum_s == pytest.approx(0.1 + 0.2 + 0.3), "work, not time"


def test_loops_are_part_of_the_tree() -> None:
    loop = fixed({"first": ("second",), "second": ("first",)}, {("second", "first"): 0.25})
    snapshot = seen(loop, seconds=20_000)
    assert snapshot.completion is not None
    rounds = 1 / (1 - 0.25)
    assert snapshot.completion.mean_ms == pytest.approx(300.0 * rounds, rel=0.02)
    assert snapshot.sojourn_sum_s == pytest.approx(0.3 * rounds, rel=0.02)


@pytest.mark.parametrize("mode", ["events", "batch"])
@pytest.mark.parametrize("name", ["vld", "fpd", "two-paths", "loop-back", "opinion"])
def test_every_input_is_completed_once(name: str, mode: str) -> None:
    snapshot = seen(app(name), mode, rate=2.0, seconds=400)
    offered = sum(s.offered or 0.0 for s in snapshot.samples.values())
    assert snapshot.completion is not None
    assert snapshot.completion.count == offered
