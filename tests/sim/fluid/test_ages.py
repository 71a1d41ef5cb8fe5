"""Ages of a fluid: first in, first out, and as old as the events of the event engine."""

from dataclasses import replace

import numpy as np
import pytest
from networks import single

from foretide.apps import App, Service
from foretide.load import Load
from foretide.model import Plan
from foretide.sim.environment import Simulation
from foretide.sim.fluid.ages import Ages, latency_of
from foretide.topology import Operator, Topology


def test_an_event_is_as_old_as_the_queue_before_it():
    """Ten come in each of ten seconds, five are served: what leaves after t seconds is the 5t-th
    and came at t / 2. Then none come, and ten are served.
    """
    ages = Ages(least_s=0.1, batch_s=0.0)
    t = np.arange(1.0, 11.0)
    rows = np.stack([t, 10 * t, 5 * t, 0 * t, np.full(10, 5.0)], axis=1)
    ages_s, events = ages.left(rows, 0.0)
    assert events.sum() == pytest.approx(50)
    assert np.average(ages_s, weights=events) == pytest.approx(0.1 + 2.5)
    assert ages_s.max() == pytest.approx(0.1 + 5, abs=0.2)
    # the 50 that wait came in the last 5 s of the 10, and leave in the next 5
    rows = np.stack([t[:5] + 10, np.full(5, 100), 50 - 10 * t[:5], 0 * t[:5], np.full(5, 10.0)], 1)
    ages_s, events = ages.left(rows, 0.0)
    assert np.average(ages_s, weights=events) == pytest.approx(0.1 + 5, abs=0.1)
    assert latency_of(ages_s, events, 4.0).within == 0
    ages_s, events = ages.left(np.array([[16.0, 110, 0, 0, 10]]), 0.3)
    ages_s, events = ages.left(np.array([[17.0, 120, 0, 0, 10]]), 0.3)
    assert np.average(ages_s, weights=events) == pytest.approx(0.1 + 0.3)


def chain(arrivals: str) -> App:
    operators = (Operator("a"), Operator("b", ("a",)), Operator("c", ("b",)))
    service = {
        "a": Service(0.005, "exponential"),
        "b": Service(0.01, "exponential"),
        "c": Service(0.0075, "exponential"),
    }
    return App("chain", "", "", Topology(operators), service, arrivals=arrivals)


def split() -> App:
    operators = (Operator("a"), Operator("b", ("a",)), Operator("c", ("a",)))
    service = {n: Service(0.01, "exponential") for n in "abc"}
    shares = {("a", "b"): 0.5, ("a", "c"): 0.5}
    return App(
        "split", "", "", Topology(operators), service, shares, frozenset("a"), arrivals="poisson"
    )


CASES = {
    "one operator": (single(1, Service(0.01, "exponential")), {"a": (8, 24)}),
    "a chain": (chain("poisson"), {"a": (5, 12), "b": (9, 24), "c": (7, 18)}),
    "a chain, a second at once": (chain("batch"), {"a": (5, 12), "b": (9, 24), "c": (7, 18)}),
    "a split, both branches behind": (split(), {"a": (30, 30), "b": (5, 12), "c": (5, 12)}),
}


@pytest.mark.parametrize("name", CASES)
def test_events_of_a_burst_are_as_old_as_in_the_event_engine(name):
    """A burst for two windows that the replicas cannot serve, and more of them a window later."""
    found, replicas = CASES[name]
    found = replace(found, target_latency_s=1.5)
    load = Load("burst", np.repeat([600.0, 1500.0, 1500.0, 600.0, 600.0, 600.0, 600.0], 5))
    runs = []
    for mode in ("events", "fluid"):
        environment = Simulation(
            found, load, mode=mode, window_s=5.0, seed=3, grouping="shared",
            replicas={n: k[0] for n, k in replicas.items()},
        )  # fmt: skip
        windows = []
        for at in range(1, 8):
            windows.append(environment.read(5.0 * at).latency)
            if at == 2:
                environment.apply(Plan({n: k[1] for n, k in replicas.items()}))
        count = sum(w.count for w in windows)
        mean_s = sum(w.count * w.mean_ms for w in windows) / count / 1e3
        runs.append(
            (sum(w.within for w in windows) / count, mean_s, max(w.p99_ms for w in windows) / 1e3)
        )
    (share, mean_s, p99_s), fluid = runs
    assert fluid[0] == pytest.approx(share, abs=0.04)
    assert fluid[1] == pytest.approx(mean_s, rel=0.1, abs=0.1)
    assert fluid[2] == pytest.approx(p99_s, rel=0.15)
