"""DRS drives a simulated pipeline in micro-batches: a load that rises and falls again."""

import numpy as np
import pytest

from foretide.apps import app
from foretide.load import Load
from foretide.sim.environment import Simulation, SimulationSettings
from foretide.sim.events.batch import BatchCosts
from foretide.systems import system

LOW, HIGH = 6.0, 30.0
PHASE_S, WINDOW_S, TARGET_S = 700, 10.0, 6.0


@pytest.mark.parametrize("name", ["chain", "two-paths", "loop-back"])
def test_replicas_rise_with_the_load_meet_the_target_and_fall_again(name: str) -> None:
    rates = np.repeat([LOW, HIGH, LOW], PHASE_S)
    settings = SimulationSettings(mode="batch", window_s=WINDOW_S, batch=BatchCosts(overhead_s=0.4))
    first = dict.fromkeys(app(name).topology.names, 2)
    pipeline = Simulation(app(name), Load("up and down", rates), settings, replicas=first)
    drs = system("drs").promised(TARGET_S)
    loop = drs.autoscaler(app(name).topology, pipeline, pipeline)
    decisions = [loop.step(WINDOW_S * (i + 1)) for i in range(int(3 * PHASE_S / WINDOW_S))]
    assert [d.error for d in decisions if d.outcome == "failed"] == []
    seen = [d.snapshot for d in decisions if d.snapshot is not None]
    totals = [sum(s.samples[n].replicas for n in first) for s in seen]
    per_phase = int(PHASE_S / WINDOW_S)
    busy = [s.latency for s in seen[2 * per_phase - 8 : 2 * per_phase] if s.latency]
    assert np.mean([x.mean_ms for x in busy]) < 1e3 * TARGET_S
    low, high, after = totals[per_phase - 1], totals[2 * per_phase - 1], totals[-1]
    assert low < high
    assert after < high
