"""The promise as a user gets it: share in target and cost on the chain of
``benchmarks/frontier.py``, in operation, held against that benchmark's goals.

Loads made here always run; recorded ones where their folder is. Goals that are missed are in
docs/choose-a-system.md.
"""

from functools import cache

import numpy as np
import pytest
from batches import outcome as in_batches
from frontier import BUSY, GOALS, OTHER, SERVICE_S, SMOOTH, WINDOW_S, chain, trace
from networks import TRACES

from foretide.figures.metrics import figures
from foretide.load import Load
from foretide.sim.compare import Scenario, simulate
from foretide.systems import system

pytestmark = pytest.mark.slow
WARM = 200
"""Windows before the measured ones."""


def made(name: str) -> Load:
    """Rows of five seconds: a wave of half an hour with some noise; noise around a level that
    bursts of half a minute double; three minutes of level and then 15 s of five times as much.
    """
    rows, random = 600, np.random.default_rng(7)
    if name == "clock":
        rates = np.where(np.arange(rows) % 40 < 3, 5.0, 1.0) * random.gamma(60.0, 1.0 / 60.0, rows)
    elif name == "wave":
        rates = (1.0 + 0.6 * np.sin(np.arange(rows) / 57.0)) * random.normal(1.0, 0.03, rows)
    else:
        starts = np.bincount(np.cumsum(random.integers(15, 60, 20)), minlength=rows)[:rows]
        bursts = np.convolve(starts, np.ones(6))[:rows] > 0
        rates = np.where(bursts, 2.0, 1.0) * random.gamma(60.0, 1.0 / 60.0, rows)
    return Load(name, rates / rates.mean() * BUSY / SERVICE_S["work"] * WINDOW_S, WINDOW_S)


@cache
def loaded(name: str) -> Load:
    return trace(TRACES, name, warm_up=WARM) if name in SMOOTH | OTHER else made(name)


def case(name: str, lead_s: float = 0.0) -> Scenario:
    return Scenario(
        chain(), loaded(name), WINDOW_S, engine="fluid", lead_s=lead_s, warm_up_s=WARM * WINDOW_S
    )


@cache
def least_cost(name: str) -> float:
    found = case(name).target_cost()
    assert found is not None
    return found


def outcome(name: str, lead_s: float, which: str = "foretide") -> tuple[float, float]:
    """Share in target and cost over the least, after the warm-up."""
    found = figures(simulate(case(name, lead_s), system(which)))
    return found.slo_share or 0.0, (found.cost or np.inf) / least_cost(name)


@pytest.mark.parametrize("lead_s", [0.0, 10.0, 60.0])
@pytest.mark.parametrize("name", ["wave", "bursts", "clock"])
def test_the_promise_is_kept_at_its_price_on_loads_made_here(name: str, lead_s: float) -> None:
    share, cost = outcome(name, lead_s)
    least, most = GOALS[lead_s][0 if name == "wave" else 1]
    assert share >= least
    assert cost <= most


@pytest.mark.parametrize("name", ["wave", "bursts", "clock"])
@pytest.mark.parametrize("rival", ["ds2", "lcp", "spark-dra", "pa-sps"])
def test_no_rival_keeps_more_for_less(name: str, rival: str) -> None:
    share, cost = outcome(name, 10.0)
    other_share, other_cost = outcome(name, 10.0, rival)
    assert not (other_share > share + 0.002 and other_cost < 0.99 * cost)


KEPT = [
    *((name, lead_s) for name in ("azure-llm", "dns-zeek", "pasps-dns") for lead_s in GOALS),
    ("twitter-raw", 0.0),
    ("pasps-log", 0.0),
    ("pasps-log", 60.0),
]


@pytest.mark.skipif(not TRACES.is_dir(), reason=f"no recorded loads in {TRACES}")
@pytest.mark.parametrize(("name", "lead_s"), KEPT)
def test_the_promise_is_kept_at_its_price_on_recorded_loads(name: str, lead_s: float) -> None:
    share, cost = outcome(name, lead_s)
    least, most = GOALS[lead_s][0 if name in SMOOTH else 1]
    assert share >= least
    assert cost <= most


@pytest.mark.parametrize(
    ("name", "lead_s", "most"), [("clock", 0.0, 1.4), ("clock", 60.0, 1.6), ("bursts", 10.0, 1.7)]
)
def test_in_micro_batches_the_promise_is_kept_in_operation(
    name: str, lead_s: float, most: float
) -> None:
    """A queue makes batches longer, at every operator after it too: rules that plan with the whole
    delay keep 71, 89 and 87 % here. Costs are over the need of each window, which knows no target.
    """
    share, cost = in_batches(made(name), lead_s, 15.0, WARM)
    assert share >= 0.99
    assert cost <= most


@pytest.mark.parametrize("seed", [1, 4, 5])
def test_a_burst_within_a_window_is_no_excuse_where_capacity_comes_at_once(seed: int) -> None:
    """Requests that come together for a few seconds, and nothing between: no replay of windows sees
    that a burst at the beginning of one is late, and most windows have few events. When windows
    counted alike and the level ended soon, 95, 96 and 96 % were in time at 1.5.
    """
    random, rows = np.random.default_rng(seed), 3400
    counts, at = np.zeros(rows), 0
    while at < rows:
        burst = counts[at : at + int(random.geometric(1 / 6))]
        burst += random.lognormal(0.0, 1.0) * random.gamma(2.0, 0.5, len(burst))
        at += 1 + int(random.exponential(15.0))
    busy = counts / counts[1000:].mean() * BUSY / SERVICE_S["work"]
    sparse = Scenario(chain(), Load("sparse", busy, 1.0), WINDOW_S, engine="fluid", warm_up_s=1000)
    found = figures(simulate(sparse, system("foretide")))
    assert (found.slo_share or 0.0) >= 0.988
    assert (found.cost or np.inf) / (sparse.target_cost() or 1.0) <= 2.8


@pytest.mark.parametrize("lead_s", [0.0, 10.0])
def test_what_was_learned_on_a_hump_does_not_flip_replicas_in_the_calm_after_it(
    lead_s: float,
) -> None:
    """A hump of a hundred busy replicas, then about eight: one replica more or less is
    nothing on the hump, and start and stop in every other window afterwards.
    """
    rows, random = 300, np.random.default_rng(3)
    hump = 7.7 + 92.0 * np.exp(-(((np.arange(rows) - 150) / 25.0) ** 2))
    rates = hump * random.normal(1.0, 0.06, rows) / SERVICE_S["work"]
    calm = Scenario(
        chain(),
        Load("calm", rates * WINDOW_S, WINDOW_S),
        WINDOW_S,
        engine="fluid",
        lead_s=lead_s,
        warm_up_s=250 * WINDOW_S,
    )
    run = simulate(calm, system("foretide"))
    starts = sum(np.maximum(np.diff(run.replicas(n)), 0).sum() for n in run.topology.names)
    assert starts <= 8  # 44 and 15 without what ``promise.again`` keeps
    assert (figures(run).slo_share or 0.0) >= 0.99
