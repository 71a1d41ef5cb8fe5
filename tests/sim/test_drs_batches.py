"""DRS drives a simulated pipeline in micro-batches: a load that rises and falls again."""

import numpy as np
import pytest

from foretide.apps import app
from foretide.load import Load
from foretide.sim.environment import Simulation, SimulationSettings
from foretide.sim.events.batch import BatchCosts
from foretide.systems import system

LOW, HIGH = 6.0, 30.0
LOW_S, HIGH_S, SETTLED_S = 500, 1500, 500
WINDOW_S, TARGET_S = 10.0, 6.0


@pytest.mark.parametrize("name", ["chain", "two-paths", "loop-back"])
def test_replicas_rise_with_the_load_meet_the_target_and_fall_again(name: str) -> None:
    rates = np.repeat([LOW, HIGH, LOW], [LOW_S, HIGH_S, LOW_S])
    settings = SimulationSettings(mode="batch", window_s=WINDOW_S, batch=BatchCosts(overhead_s=0.4))
    first = dict.fromkeys(app(name).topology.names, 2)
    pipeline = Simulation(app(name), Load("up and down", rates), settings, replicas=first)
    drs = system("drs").promised(TARGET_S)
    loop = drs.autoscaler(app(name).topology, pipeline, pipeline)
    decisions = [loop.step(WINDOW_S * (i + 1)) for i in range(int(rates.size / WINDOW_S))]
    assert [d.error for d in decisions if d.outcome == "failed"] == []
    seen = [d.snapshot for d in decisions if d.snapshot is not None]
    totals = [sum(s.samples[n].replicas for n in first) for s in seen]
    rise, fall = int(LOW_S / WINDOW_S), int((LOW_S + HIGH_S) / WINDOW_S)
    settled = [s.latency for s in seen[fall - int(SETTLED_S / WINDOW_S) : fall] if s.latency]
    assert np.mean([x.mean_ms for x in settled]) < 1e3 * TARGET_S
    low, high, after = totals[rise - 1], totals[fall - 1], totals[-1]
    assert low < high
    assert after < high
