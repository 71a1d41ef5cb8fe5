"""BGElasor (Mu et al., NPC 2019): table 1 (``bgelasor_forecasts``), and figures 4 and 5: what SREA,
SPEA and CBA cost, change and make events wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from foretide.apps import app
from foretide.autoscaler import Cadence
from foretide.figures.metrics import Figures, figures
from foretide.load import Load, load
from foretide.model import Array, Forecast, WindowPrices
from foretide.papers import bgelasor_forecasts as table_1
from foretide.papers.bgelasor_forecasts import Days
from foretide.papers.paper import Bench, Claim, PublishedTable, Row, interval
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


def tables(bench: Bench | None = None, forecaster: str = "bigru") -> Sequence[PublishedTable]:
    """With a perfect forecast on the built-in shapes, or on the authors' loads where
    ``bench.data`` has them; then also table 1. Networks only with ``bench.full``.
    """
    bench = bench or Bench()
    made: list[PublishedTable] = []
    if bench.data is None:
        made += [known(f"{n}-shape", load(n, seed=bench.seed).rates(WINDOW_S)) for n in LOADS]
    for name in table_1.FILES if bench.data is not None else ():
        made += own_tables(table_1.own_load(bench.data or Path(), name), bench)
    if bench.full:
        made += [closed_loop(name, bench.seed, forecaster) for name in LOADS]
    return made


def own_tables(of: Days, bench: Bench) -> list[PublishedTable]:
    """Table 1 one step and six steps ahead, and the cost of each method on the test days."""
    made = []
    seeds = range(bench.seed - 1, bench.seed - 1 + (bench.seeds or 10))
    models = table_1.CLASSICAL + (table_1.NETWORKS if bench.full else ())
    forecasts: Sequence[Array] = ()
    for steps in table_1.STEPS:
        measured = table_1.measure(of, steps, seeds, models)
        forecasts = measured.forecasts.get("bigru", ())
        made.append(table_1.table(of, steps, measured.errors))
    made.append(known(of.name, of.rates[of.test :], own_capacity(of)))
    if forecasts:
        made.append(forecast_costs(of, forecasts))
    return made


def own_capacity(of: Days) -> float:
    """Events/s of one replica, so that a busy training window needs about 12."""
    return float(np.quantile(of.rates[: of.validate], 0.99)) / 12.0


def schedules(
    rates: np.ndarray, prices: WindowPrices, capacity: float = CAPACITY
) -> dict[str, Schedule]:
    """What each method runs in windows 1, 2, ... of one operator, from what window 0 needed, when
    the forecast is right.

    SREA follows a window late; SPEA takes the larger of two neighbours; CBA plans HORIZON windows
    ahead again and again.
    """
    need = needs(rates, 1.0 / capacity)
    running, balanced = int(need[0]), []
    for t in range(1, len(need)):
        running = int(cost_balance(rates[t : t + HORIZON], capacity, prices, running)[0])
        balanced.append(running)
    return {
        "SREA": need[:-1],
        "SPEA": np.maximum(need[:-1], need[1:]),
        "CBA": np.array(balanced),
        "optimum": optimal_schedule(need[1:], prices, int(need[0])),
    }


@dataclass(frozen=True, slots=True)
class Cost:
    """A schedule's cost, its changes, and the windows in which it ran below the need."""

    cost: float
    changes: int
    short: int


def cost_of(schedule: Schedule, need: Schedule, before: int, prices: WindowPrices) -> Cost:
    return Cost(
        schedule_cost(schedule, prices, before),
        int(np.count_nonzero(np.diff(schedule, prepend=before))),
        int(np.count_nonzero(schedule < need)),
    )


def known(name: str, rates: Array, capacity: float = CAPACITY) -> PublishedTable:
    """Figure 4c and 5a with a perfect forecast: cost relative to SPEA and number of changes, pure
    arithmetic.
    """
    prices = WindowPrices()
    need = needs(rates, 1.0 / capacity)
    by = {
        method: cost_of(schedule, need[1:], int(need[0]), prices)
        for method, schedule in schedules(rates, prices, capacity).items()
    }
    rows = [
        Row(
            method,
            {
                "cost / SPEA's": c.cost / by["SPEA"].cost,
                "cost": c.cost,
                "changes": float(c.changes),
                "windows below need": float(c.short),
            },
        )
        for method, c in by.items()
    ]
    label = name.replace("-shape", ", built-in shape")
    claims = (
        Claim(
            f"{label}, forecast known: CBA costs less than SPEA", by["CBA"].cost < by["SPEA"].cost
        ),
        Claim(
            f"{label}, forecast known: CBA changes less often than SPEA",
            by["CBA"].changes < by["SPEA"].changes,
            f"{by['CBA'].changes} against {by['SPEA'].changes}",
        ),
    )
    return PublishedTable(
        f"Figures 4 and 5a, {label}, forecast known, {len(rates)} windows of one operator",
        rows,
        claims,
        key=f"figure-4-known-{name}",
    )


def forecast_costs(of: Days, forecasts: Sequence[Array]) -> PublishedTable:
    """Figures 4c and 5a on the test days with networks trained on 40 days: what each method costs,
    changes and runs short when it plans from the forecast, over seeds.
    """
    prices, capacity = WindowPrices(), own_capacity(of)
    count = len(forecasts[0])
    need = needs(of.rates[of.test - 1 : of.test + count], 1.0 / capacity)
    before, need = int(need[0]), need[1:]
    by: dict[str, list[Cost]] = {
        "SREA": [cost_of(np.append(before, need[:-1]), need, before, prices)],
        "SPEA": [],
        "CBA": [],
        "optimum": [cost_of(optimal_schedule(need, prices, before), need, before, prices)],
    }
    for ahead in forecasts:
        running, balanced = before, []
        for row in ahead:
            running = int(cost_balance(row, capacity, prices, running)[0])
            balanced.append(running)
        expected = needs(ahead[:, 0], 1.0 / capacity)
        spea = np.maximum(np.append(before, need[:-1]), expected)
        by["SPEA"].append(cost_of(spea, need, before, prices))
        by["CBA"].append(cost_of(np.array(balanced), need, before, prices))
    base = float(np.mean([c.cost for c in by["SPEA"]]))
    rows = [
        Row(
            method,
            {
                "cost / SPEA's": interval([c.cost / base for c in costs]),
                "changes": interval([float(c.changes) for c in costs]),
                "share of windows below need": interval([c.short / count for c in costs]),
            },
        )
        for method, costs in by.items()
    ]
    mean = {m: np.mean([[c.cost, c.changes] for c in costs], axis=0) for m, costs in by.items()}
    claims = (
        Claim(f"{of.name}, bigru: CBA costs less than SPEA", mean["CBA"][0] < mean["SPEA"][0],
              f"{mean['CBA'][0] / base:.3f} of it"),
        Claim(f"{of.name}, bigru: CBA changes less often than SPEA",
              mean["CBA"][1] < mean["SPEA"][1],
              f"{mean['CBA'][1]:.0f} against {mean['SPEA'][1]:.0f}"),
    )  # fmt: skip
    return PublishedTable(
        f"Figures 4c and 5a, {of.name} load, {TEST_WORDS}, forecasts of bigru, "
        f"{len(forecasts)} seeds",
        rows,
        claims,
        key=f"figure-4-bigru-{of.name}",
    )


TEST_WORDS = f"{table_1.TEST_DAYS} test days"


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
        f"Figures 4c and 5, {name} shape, closed loop with {forecaster}",
        rows,
        _claims(by_method, name),
        key=f"figure-5-loop-{name}",
    )


def _claims(by_method: Mapping[str, Figures], name: str) -> Sequence[Claim]:
    cba, spea = by_method["CBA"], by_method["SPEA"]
    mean_ms = {m: by_method[m].latency_mean_ms or 0.0 for m in ("CBA", "SPEA", "SREA")}
    what = f"{name} shape, closed loop"
    return (
        Claim(f"{what}: CBA costs less than SPEA", (cba.cost or 0.0) < (spea.cost or 0.0)),
        Claim(f"{what}: CBA adapts less often than SPEA",
              (cba.adaptations or 0) < (spea.adaptations or 0),
              f"{cba.adaptations} against {spea.adaptations}"),
        Claim(f"{what}: CBA's mean latency is the lowest", mean_ms["CBA"] == min(mean_ms.values())),
        Claim(f"{what}: SREA's mean latency is the highest",
              mean_ms["SREA"] == max(mean_ms.values())),
    )  # fmt: skip
