"""One queueing network in three simulators: ours, simpy and ciw.

Events come at 8/s to ``a`` (3 replicas), which sends 60 % to ``b`` (2) and 40 % to ``c`` (1); ``b``
sends 30 % back to ``a`` and the rest to ``d`` (4), as does ``c``. Service is exponential. Each
function gives the mean seconds at every operator, the services done and the CPU seconds the run
took.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

RATE = 8.0
NAMES = "abcd"
REPLICAS = (3, 2, 1, 4)
SERVICE_S = (0.2, 0.2, 0.15, 0.3)
ROUTING = ((0.0, 0.6, 0.4, 0.0), (0.3, 0.0, 0.0, 0.7), (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 0.0))


@dataclass(frozen=True)
class Outcome:
    sojourn_s: dict[str, float]
    services: float
    took_s: float

    @property
    def per_second(self) -> float:
        return self.services / self.took_s


def in_foretide(seconds: float, seed: int = 1) -> Outcome:
    import numpy as np

    from foretide.apps import App, Service, Values
    from foretide.load import Load
    from foretide.sim.environment import Simulation
    from foretide.topology import Operator, Topology

    inputs = {
        c: tuple(NAMES[p] for p in range(4) if ROUTING[p][i] > 0) for i, c in enumerate(NAMES)
    }
    app = App(
        "jackson",
        "split, join and loop",
        "benchmark",
        Topology(
            tuple(
                Operator(n, inputs[n], min_replicas=k, source=n == "a")
                for n, k in zip(NAMES, REPLICAS, strict=True)
            )
        ),
        {n: Service(s, "exponential") for n, s in zip(NAMES, SERVICE_S, strict=True)},
        selectivity={
            (NAMES[p], NAMES[c]): ROUTING[p][c]
            for p in range(4)
            for c in range(4)
            if ROUTING[p][c] > 0
        },
        splits=frozenset(NAMES),
        values=Values(1),
        arrivals="poisson",
    )
    load = Load("constant", np.array([RATE * seconds]), seconds)
    environment = Simulation(app, load, grouping="shared", window_s=seconds, seed=seed)
    environment.read(1.0)  # compiles, or loads what was compiled before
    began = time.process_time()
    seen = environment.read(seconds).samples
    took_s = time.process_time() - began
    return Outcome(
        {n: s.sojourn_s or 0.0 for n, s in seen.items()},
        sum(s.processed for s in seen.values()),
        took_s,
    )


def in_simpy(seconds: float, seed: int = 1) -> Outcome:
    import simpy

    draw = random.Random(seed)
    env = simpy.Environment()
    replicas = [simpy.Resource(env, capacity=k) for k in REPLICAS]
    stayed, done = [0.0] * 4, [0] * 4

    def event():
        op: int | None = 0
        while op is not None:
            came = env.now
            with replicas[op].request() as turn:
                yield turn
                yield env.timeout(draw.expovariate(1 / SERVICE_S[op]))
            stayed[op] += env.now - came
            done[op] += 1
            u = draw.random()
            following: int | None = None
            for consumer, share in enumerate(ROUTING[op]):
                if u < share:
                    following = consumer
                    break
                u -= share
            op = following

    def load():
        while True:
            yield env.timeout(draw.expovariate(RATE))
            env.process(event())

    env.process(load())
    began = time.process_time()
    env.run(until=seconds)
    took_s = time.process_time() - began
    return Outcome({n: stayed[i] / done[i] for i, n in enumerate(NAMES)}, sum(done), took_s)


def in_ciw(seconds: float, seed: int = 1) -> Outcome:
    import ciw

    ciw.seed(seed)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate=RATE), None, None, None],
        service_distributions=[ciw.dists.Exponential(rate=1 / s) for s in SERVICE_S],
        routing=[list(row) for row in ROUTING],
        number_of_servers=list(REPLICAS),
    )
    simulation = ciw.Simulation(network)
    began = time.process_time()
    simulation.simulate_until_max_time(seconds)
    took_s = time.process_time() - began
    stayed, done = [0.0] * 4, [0] * 4
    for record in simulation.get_all_records():
        stayed[record.node - 1] += record.exit_date - record.arrival_date
        done[record.node - 1] += 1
    return Outcome({n: stayed[i] / done[i] for i, n in enumerate(NAMES)}, sum(done), took_s)
