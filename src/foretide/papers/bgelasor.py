"""BGElasor (Mu et al., NPC 2019): figures 4 and 5, what SREA, SPEA and CBA cost, change and make
events wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from foretide.apps import app
from foretide.autoscaler import Cadence
from foretide.figures.metrics import Figures, figures
from foretide.load import Load, load
from foretide.model import Array, Forecast, WindowPrices
from foretide.papers.paper import Cell, Claim, PublishedTable, Row
from foretide.parts import Forecaster
from foretide.plan.cost_balance import cost_balance
from foretide.plan.optimum import Schedule, needs, optimal_schedule, schedule_cost
from foretide.sim.compare import Scenario, simulate
from foretide.systems import System, system

WINDOW_S = 30.0
LOADS = ("stable", "periodic", "fluctuating")
HORIZON, LOOKBACK = 10, 48
NETWORKS = ("lstm", "gru", "bilstm", "bigru")
DAYS, TEST_DAYS = (
    12,
    2,
)  # of 1,440 rows each; the paper trains on 40 days, validates on 10, tests on 10
CAPACITY = 250.0  # events/s of one replica: some 2 to 14 replicas under these loads


def tables(seed: int = 1, forecaster: str = "bigru") -> Sequence[PublishedTable]:
    return (
        *(known(name, seed) for name in LOADS),
        *(closed_loop(name, seed, forecaster) for name in LOADS),
    )


def schedules(rates: np.ndarray, prices: WindowPrices) -> dict[str, Schedule]:
    """What each method runs in windows 1, 2, ... of one operator, from what window 0 needed, when
    the forecast is right.

    SREA follows a window late; SPEA takes the larger of two neighbours; CBA plans HORIZON windows
    ahead again and again.
    """
    need = needs(rates, 1.0 / CAPACITY)
    running, balanced = int(need[0]), []
    for t in range(1, len(need)):
        running = int(cost_balance(rates[t : t + HORIZON], CAPACITY, prices, running)[0])
        balanced.append(running)
    return {
        "SREA": need[:-1],
        "SPEA": np.maximum(need[:-1], need[1:]),
        "CBA": np.array(balanced),
        "optimum": optimal_schedule(need[1:], prices, int(need[0])),
    }


def known(name: str, seed: int) -> PublishedTable:
    """Figure 4c and 5a with a perfect forecast: cost relative to SPEA and number of changes, pure
    arithmetic.
    """
    prices = WindowPrices()
    rates = load(name, seed=seed).rates(WINDOW_S)
    need = needs(rates, 1.0 / CAPACITY)
    rows, cost, changes = [], {}, {}
    for method, schedule in schedules(rates, prices).items():
        cost[method] = schedule_cost(schedule, prices, int(need[0]))
        changes[method] = int(np.count_nonzero(np.diff(schedule, prepend=need[0])))
        ours: dict[str, Cell] = {
            "cost / SPEA's": cost[method] / cost["SPEA"] if "SPEA" in cost else None,
            "cost": cost[method],
            "changes": float(changes[method]),
            "windows below need": float(np.count_nonzero(schedule < need[1:])),
        }
        rows.append(Row(method, ours))
    rows = [Row(r.name, {**r.ours, "cost / SPEA's": cost[r.name] / cost["SPEA"]}) for r in rows]
    claims = (
        Claim("CBA costs less than SPEA", cost["CBA"] < cost["SPEA"]),
        Claim(
            f"CBA changes less often than SPEA ({changes['CBA']} against {changes['SPEA']})",
            changes["CBA"] < changes["SPEA"],
        ),
    )
    return PublishedTable(
        f"Figures 4 and 5a, {name} load, forecast known, {len(rates)} windows of one operator",
        rows,
        claims,
    )


class Continued:
    """A trained forecaster for whom the run continues the past it was trained on."""

    def __init__(self, inner: Forecaster, past: Array) -> None:
        self.inner, self.past = inner, past

    def fit(self, series: Array) -> None:
        """It learned before the run."""

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        return self.inner.forecast(np.concatenate([self.past, recent]), horizon)


@dataclass(frozen=True)
class Pretrained(System):
    """A system whose forecasters learned offline, before the run, as the paper's do. In a chain
    every operator sees the load.
    """

    past: tuple[float, ...] = ()

    def new_forecaster(self) -> Forecaster:
        return Continued(_learned(self.forecaster, self.past), np.array(self.past))


@cache
def _learned(forecaster: str, past: tuple[float, ...]) -> Forecaster:
    """Trained once for all operators and systems, since they all see the same past; a trained
    network forgets nothing by speaking.
    """
    constants = {"lookback": LOOKBACK, "horizon": HORIZON} if forecaster in NETWORKS else {}
    trained = system(
        "bgelasor", forecaster=forecaster, forecaster_constants=constants
    ).new_forecaster()
    trained.fit(np.array(past))
    return trained


def split(whole: Load) -> tuple[tuple[float, ...], Load]:
    """Rates per window of the days before the test, and a load of the last TEST_DAYS."""
    rows = len(whole) // DAYS * TEST_DAYS
    test = Load(whole.name, whole.counts[-rows:], whole.interval_s)
    return tuple(whole.rates(WINDOW_S)[: -len(test.rates(WINDOW_S))].tolist()), test


def _pretrained(name: str, forecaster: str, past: tuple[float, ...]) -> System:
    of = system(name)
    ahead = Cadence(horizon=HORIZON, lookback=100, scope="operators")
    return Pretrained(
        of.name, of.summary, of.source, of.planner, forecaster=forecaster, cadence=ahead, past=past
    )  # fmt: skip


def _systems(forecaster: str, past: tuple[float, ...]) -> dict[str, System]:
    return {
        "SREA": system("srea"),
        "SPEA": _pretrained("spea", forecaster, past),
        "CBA": _pretrained("bgelasor", forecaster, past),
    }


def closed_loop(name: str, seed: int, forecaster: str) -> PublishedTable:
    """Figures 4c, 5a and 5b: the three systems in the simulator with a real forecaster, on the
    four-operator chain.
    """
    past, test_load = split(load(name, seed=seed, days=DAYS))
    case = Scenario(app("twitter-linear"), test_load, WINDOW_S, seed=seed)
    by_method = {
        method: figures(simulate(case, of)) for method, of in _systems(forecaster, past).items()
    }
    base = by_method["SPEA"].cost or 1.0
    rows = [
        Row(
            method,
            {
                "cost / SPEA's": (f.cost or 0.0) / base,
                "cost / optimum": f.cost_ratio,
                "adaptations": None if f.adaptations is None else float(f.adaptations),
                "latency ms": f.latency_mean_ms,
                "p99 ms": f.latency_p99_ms,
                "processed share": f.processed_share,
            },
        )
        for method, f in by_method.items()
    ]
    return PublishedTable(
        f"Figures 4c and 5, {name} load, closed loop with {forecaster}", rows, _claims(by_method)
    )


def _claims(by_method: Mapping[str, Figures]) -> Sequence[Claim]:
    cba, spea = by_method["CBA"], by_method["SPEA"]
    mean_ms = {name: by_method[name].latency_mean_ms or 0.0 for name in ("CBA", "SPEA", "SREA")}
    return (
        Claim("CBA costs less than SPEA", (cba.cost or 0.0) < (spea.cost or 0.0)),
        Claim(f"CBA adapts less often than SPEA ({cba.adaptations} against {spea.adaptations})",
              (cba.adaptations or 0) < (spea.adaptations or 0)),
        Claim("CBA's mean latency is the lowest", mean_ms["CBA"] == min(mean_ms.values())),
        Claim("SREA's mean latency is the highest", mean_ms["SREA"] == max(mean_ms.values())),
    )  # fmt: skip
