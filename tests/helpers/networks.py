"""Small networks for the simulator's tests."""

import os
from pathlib import Path

import numpy as np

from foretide.apps import App, Service, Values
from foretide.load import Load, read_csv
from foretide.sim.environment import Simulation, SimulationSettings
from foretide.topology import Operator, Topology


def single(replicas: int, service: Service, **app: object) -> App:
    """One operator with Poisson arrivals."""
    return App(
        "single",
        "one operator",
        "test",
        Topology((Operator("a", min_replicas=replicas, max_replicas=max(32, replicas)),)),
        {"a": service},
        **{"values": Values(1), "arrivals": "poisson", **app},
    )


def jackson() -> App:
    """a splits to b (60 %) and c (40 %); b sends 30 % back to a; both feed d. Exponential service
    everywhere.
    """
    operators = (
        Operator("a", inputs=("b",), source=True, min_replicas=3),
        Operator("b", inputs=("a",), min_replicas=2),
        Operator("c", inputs=("a",), min_replicas=1),
        Operator("d", inputs=("b", "c"), min_replicas=4),
    )
    return App(
        "jackson",
        "split, join and loop",
        "test",
        Topology(operators),
        {
            n: Service(s, "exponential")
            for n, s in (("a", 0.2), ("b", 0.2), ("c", 0.15), ("d", 0.3))
        },
        selectivity={("a", "b"): 0.6, ("a", "c"): 0.4, ("b", "a"): 0.3, ("b", "d"): 0.7},
        splits=frozenset({"a", "b"}),
        values=Values(1),
        arrivals="poisson",
    )


def run(app: App, rate: float, seconds: float, **settings: object):
    """One window over the whole load; the environment and its snapshot."""
    load = Load("constant", np.array([rate * seconds]), seconds)
    environment = Simulation(
        app, load, SimulationSettings(**{"window_s": seconds, "grouping": "shared", **settings})
    )
    return environment, environment.read(seconds)


TRACES = Path(os.environ.get("FORETIDE_TRACES", Path(__file__).parents[3] / "shared" / "traces"))


def traces(name: str) -> Load:
    """A recorded trace from the folder beside the repository; tests that need it skip where it is
    absent.
    """
    return read_csv(TRACES / name)
