"""The event engine against theory: Erlang, Jackson, Pollaczek-Khinchine, and conservation in every
run.
"""

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from networks import jackson, run, single

from foretide.apps import App, Service, Values
from foretide.errors import InvalidConfig
from foretide.load import Load
from foretide.model import Plan
from foretide.plan.queueing import sojourn_s, traffic
from foretide.sim.environment import Simulation, SimulationSettings
from foretide.sim.reconfigure import ExecutorStarts, Pool, Restart
from foretide.topology import Operator, Topology


@pytest.mark.parametrize(
    ("rate", "mu", "k"),
    [(8, 10, 1), (27, 10, 3), (95, 10, 10), (180, 10, 20)],
)
@pytest.mark.slow
def test_m_m_k_equals_erlang_c(rate, mu, k):
    """Sixteen million events: at 95 % load the mean of two million still varies by 2 % from seed to
    seed.
    """
    _, seen = run(single(k, Service(1 / mu, "exponential")), rate, 16e6 / rate, seed=7)
    assert seen.samples["a"].sojourn_s == pytest.approx(sojourn_s(k, rate, 1 / mu), rel=0.02)
    assert seen.samples["a"].scv_arrival == pytest.approx(1, rel=0.01)
    assert seen.samples["a"].scv_service == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize("rate", [5.0, 9.0])
def test_m_d_1_equals_pollaczek_khinchine(rate):
    _, seen = run(single(1, Service(0.1)), rate, 2e6 / rate)
    rho = rate * 0.1
    assert seen.samples["a"].sojourn_s == pytest.approx(0.1 + rho * 0.1 / (2 * (1 - rho)), rel=0.02)
    assert seen.samples["a"].scv_service == pytest.approx(0, abs=1e-9)


def test_uniform_service_equals_pollaczek_khinchine():
    _, seen = run(single(1, Service(0.1, "uniform", spread=1.0)), 8.0, 2e5)
    second_moment = 0.2**2 / 3
    assert seen.samples["a"].sojourn_s == pytest.approx(
        0.1 + 8 * second_moment / (2 * 0.2), rel=0.02
    )


def test_jackson_network_with_split_and_loop():
    app, rate = jackson(), 8.0
    environment, seen = run(app, rate, 3e5, seed=5)
    names = app.topology.names
    routing = np.array(
        [
            [
                app.selectivity.get((p, c), 0.0 if p not in ("c",) or c != "d" else 1.0)
                for c in names
            ]
            for p in names
        ]
    )
    rates = dict(zip(names, traffic([rate, 0, 0, 0], routing), strict=True))
    total = 0.0
    for name in names:
        expected = sojourn_s(app.topology[name].min_replicas, rates[name], app.service_s(name))
        assert seen.samples[name].sojourn_s == pytest.approx(expected, rel=0.03)
        assert seen.samples[name].arrived / 3e5 == pytest.approx(rates[name], rel=0.01)
        total += rates[name] * expected / rate
    assert seen.latency.mean_ms / 1e3 == pytest.approx(total, rel=0.03)
    assert environment.latencies_ms()[0].mean() / 1e3 == pytest.approx(total, rel=0.03)


def test_shuffle_to_replicas_waits_longer_than_a_shared_queue():
    sojourn = [
        run(single(3, Service(0.1, "exponential")), 27, 5e4, grouping=g)[1].samples["a"].sojourn_s
        for g in ("shuffle", "shared")
    ]
    assert sojourn[0] > 1.3 * sojourn[1]


def test_the_same_seed_gives_the_same_run_and_another_seed_another():
    runs = [run(jackson(), 8.0, 1e3, seed=s)[1] for s in (3, 3, 4)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_a_second_of_events_at_once_by_hand():
    """Four events at second 0 and two at second 1, 0.1 s each on one replica: latencies 0.1 .. 0.4
    and 0.1, 0.2 s.
    """
    app = single(1, Service(0.1), arrivals="batch")
    environment = Simulation(app, Load("by hand", np.array([4.0, 2.0])), window_s=2.0)
    seen = environment.read(2.0)
    values, weights = environment.latencies_ms()
    assert values.tolist() == pytest.approx([100, 200, 300, 400, 100, 200])
    assert weights is None
    sample = seen.samples["a"]
    assert (sample.arrived, sample.processed, sample.backlog, sample.offered, sample.dropped) == (
        6,
        6,
        0,
        6,
        0,
    )
    assert sample.busy_s == pytest.approx(0.6)
    assert sample.sojourn_s == pytest.approx(1.3 / 6)
    assert seen.latency is not None
    assert sample.latency is not None
    assert (seen.latency.p50_ms, seen.latency.p90_ms) == pytest.approx((200, 400))
    assert sample.latency.p90_ms == pytest.approx(400, rel=0.02)


@pytest.mark.parametrize("window_s", [1.0, 7.0])
@pytest.mark.parametrize("interval_s", [0.3, 1.0, 1.5, 1 / 0.7, 10.0])
@pytest.mark.parametrize(
    ("mode", "arrivals"), [("events", "batch"), ("fluid", "batch"), ("fluid", "poisson")]
)
def test_all_events_of_a_load_come_whatever_its_interval(mode, arrivals, interval_s, window_s):
    load = Load("every other", np.array([0.0, 300.0] * 6), interval_s)
    environment = Simulation(
        single(4, Service(0.001), arrivals=arrivals), load, mode=mode, window_s=window_s
    )
    seen = [environment.read((i + 1) * window_s) for i in range(environment.windows + 1)]
    assert sum(s.samples["a"].offered or 0.0 for s in seen) == pytest.approx(load.total, abs=1)


def test_busy_time_is_split_at_the_window_boundary():
    app = single(1, Service(0.8), arrivals="batch")
    environment = Simulation(app, Load("by hand", np.array([1.0, 0.0])), window_s=0.5)
    assert [environment.read(t).samples["a"].busy_s for t in (0.5, 1.0, 1.5)] == pytest.approx(
        [0.5, 0.3, 0.0]
    )


def test_an_event_older_than_the_timeout_is_dropped_when_its_turn_comes():
    app = single(1, Service(0.4), arrivals="batch", timeout_s=1.0)
    environment = Simulation(app, Load("by hand", np.array([5.0, 0.0, 0.0])), window_s=3.0)
    sample = environment.read(3.0).samples["a"]
    assert (sample.processed, sample.dropped, sample.backlog) == (
        3,
        2,
        0,
    )  # started at 0, 0.4 and 0.8; at 1.2 the rest is too old


def test_service_by_value_and_key_hash():
    app = single(4, Service(0.1, "by-value", by_value_s=(0.01, 0.03)), values=Values(2))
    _, seen = run(app, 50.0, 1e3, grouping="key-hash")
    sample = seen.samples["a"]
    assert sample.busy_s / sample.processed == pytest.approx(0.02, rel=0.02)
    assert sum(n > 0 for n in sample.replica_processed) <= 2


def test_a_pool_of_millions_of_waiting_events_grows():
    app = single(1, Service(10.0), arrivals="batch")
    _, seen = run(app, 20_000.0, 10.0, grouping="shuffle")
    assert seen.samples["a"].arrived == 200_000
    assert seen.samples["a"].processed + seen.samples["a"].backlog == 200_000


@st.composite
def apps(draw) -> App:
    """Random graphs: every operator reads from some earlier ones, some edges lead back."""
    n = draw(st.integers(1, 6))
    inputs: list[list[str]] = [[]]
    selectivity = {}
    for i in range(1, n):
        inputs.append(
            draw(
                st.lists(
                    st.sampled_from([f"o{j}" for j in range(i)]),
                    min_size=1,
                    max_size=3,
                    unique=True,
                )
            )
        )
    if n > 1 and draw(st.booleans()):
        inputs[draw(st.integers(0, n - 1))].append(f"o{n - 1}")
    operators = [
        Operator(f"o{i}", tuple(dict.fromkeys(names)), source=i == 0)
        for i, names in enumerate(inputs)
    ]
    topology = Topology(tuple(operators))
    for p, c in topology.edges:
        back = topology.names.index(p) >= topology.names.index(c)
        selectivity[p, c] = (
            draw(st.floats(0, 0.3)) / (4 if back else 1)
            if back
            else draw(st.sampled_from([0.0, 0.3, 1.0, 1.5, 2.0]))
        )
    by_value = Service(1, "by-value", by_value_s=(0.01, 0.1))
    laws = st.sampled_from(
        [Service(0.01), Service(0.02, "exponential"), Service(0.05, "uniform"), by_value]
    )
    more = {
        "arrivals": draw(st.sampled_from(["batch", "poisson"])),
        "timeout_s": draw(st.sampled_from([None, 0.5, 3.0])),
        "hosts": draw(st.sampled_from([None, 2])),
    }
    try:
        return App(
            "random",
            "a graph",
            "test",
            topology,
            {o.name: draw(laws) for o in operators},
            selectivity,
            values=Values(10),
            **more,
        )
    except InvalidConfig:  # what goes round the loop grows
        reject()


@settings(max_examples=40, deadline=None)
@given(
    app=apps(),
    counts=st.lists(st.integers(0, 60), min_size=3, max_size=12),
    mode=st.sampled_from(["events", "batch", "fluid"]),
    grouping=st.sampled_from(
        ["shared", "shuffle", "key-hash", "two-choices", "load-aware", "oracle"]
    ),
    reconfiguration=st.sampled_from([Pool(), Pool(0.7), Restart(0.6), ExecutorStarts(2, 1.3)]),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_every_event_is_accounted_for(app, counts, mode, grouping, reconfiguration, seed, data):
    """arrived = processed + dropped + growth of the backlog, on every operator in every window,
    whatever is reconfigured.
    """
    load = Load("random", np.array(counts, dtype=float))
    environment = Simulation(
        app, load, SimulationSettings(mode, 1.0, seed, grouping, reconfiguration)
    )
    before = dict.fromkeys(app.topology.names, 0.0)
    for at in range(1, len(counts) + 1):
        seen = environment.read(float(at))
        for name, s in seen.samples.items():
            assert s.arrived == pytest.approx(
                s.processed + s.dropped + s.backlog - before[name], abs=1e-6
            )
            sent = sum(seen.samples[p].emitted[name] for p in app.topology.predecessors(name))
            assert s.arrived == pytest.approx(sent + (s.offered or 0.0), abs=1e-6)
            before[name] = s.backlog
        environment.apply(Plan({n: data.draw(st.integers(1, 5)) for n in app.topology.names}))
