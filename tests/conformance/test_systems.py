"""Every system in the simulator, on every app it suits, under a constant load without noise: it
plans, says why, and comes to rest.
"""

from dataclasses import replace

import numpy as np
import pytest

from foretide.apps import APPS, Service
from foretide.errors import MissingExtra
from foretide.load import Load
from foretide.sim.compare import Scenario, simulate
from foretide.systems import SYSTEMS

WINDOWS = 40
SETTLED = 20
MOST_ADAPTATIONS = 3
NEEDS_HOSTS = {"fugu-local", "fugu-global", "fugu-rl"}
NEEDS_BATCHES = {
    "attach"
}  # it watches queries that run in micro-batches, which this engine does not simulate


def quiet(app):
    """The app with fixed service times and the events of a second at its start: with the fluid
    engine nothing is left to chance.
    """
    return replace(
        app,
        service={n: Service(app.service_s(n)) for n in app.topology.names},
        arrivals="batch",
        timeout_s=None,
    )


def rate_between_steps(app):
    """A load that keeps one to four replicas busy, with no operator near the edge between two
    numbers of them, whether a system plans for full, 70 % or half-busy replicas.
    """
    busy = np.array([v * app.service_s(n) for n, v in app.visits().items()])
    least, most = 1.0 / busy.max(), 4.0 / busy.max()
    if app.hosts:  # and that the hosts can carry
        most = min(most, 0.5 * app.hosts * app.host_cores / busy.sum())
    rates = np.unique(np.maximum(1.0, np.round(np.linspace(min(least, most / 2), most, 400))))
    wanted = [np.maximum(np.outer([1.0, 1 / 0.7, 2.0], busy * r), 0.5) for r in rates]
    return float(rates[int(np.argmax([np.abs(w - np.round(w)).min() for w in wanted]))])


def steady(app):
    app = quiet(app)
    window_s = min(app.window_s, 30.0)
    load = Load("constant", np.full(int(WINDOWS * window_s), rate_between_steps(app)))
    return Scenario(app, load, window_s, engine="fluid")


SUITED = [
    (system, app)
    for system in SYSTEMS
    for app in APPS
    if (system not in NEEDS_HOSTS or APPS[app].hosts) and system not in NEEDS_BATCHES
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("system", "app"), SUITED)
def test_it_plans_says_why_and_comes_to_rest(system, app):
    case = steady(APPS[app])
    try:
        record = simulate(case, SYSTEMS[system])
    except MissingExtra as error:
        pytest.skip(str(error))
    failed = [d.error for d in record.decisions if d.outcome == "failed"]
    assert not failed, failed[:3]
    plans = [d.plan for d in record.decisions if d.plan is not None]
    every = max(1.0, (SYSTEMS[system].cadence.plan_every_s or 0.0) / case.window_s)
    assert len(plans) > WINDOWS / every / 2, record.decisions[-1].error
    for plan in plans:
        assert all(plan.reasons.get(n) or plan.reasons.get("") for n in case.app.topology.names)
        assert any(c.isdigit() for reason in plan.reasons.values() for c in reason)
    used = np.array([record.replicas(n) for n in case.app.topology.names])
    changes = (np.diff(used[:, SETTLED:], axis=1) != 0).any(axis=0).sum()
    assert changes <= MOST_ADAPTATIONS, used[:, SETTLED:].tolist()
