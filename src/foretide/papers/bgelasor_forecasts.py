"""BGElasor's table 1 on its own loads: 40 days to train, 10 to validate, 10 to test.

The authors published two of their three loads (periodic and fluctuating); a directory with them is
given by the caller. Networks are trained together, ``seeds`` of each, and every error is reported
with its interval over seeds. All of it runs on whatever device JAX has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foretide.errors import InvalidConfig
from foretide.forecast import FORECASTERS
from foretide.load import read_csv
from foretide.model import Array
from foretide.papers.paper import Cell, Claim, PublishedTable, Row, interval

FILES = {
    "periodic": ("bgelasor_periodic_5min.csv", 288),
    "fluctuating": ("bgelasor_fluctuate_10min.csv", 144),
}
CLASSICAL = ("basic", "arima", "svr")
NETWORKS = ("lstm", "gru", "bilstm", "bigru")
TRAIN_DAYS, VALIDATE_DAYS, TEST_DAYS = 40, 10, 10
STEPS = (1, 6)
PUBLISHED = {  # RMSE and MAE, periodic and fluctuating, BGElasor, table 1
    "arima": ((1.252, 0.888), (1.001, 0.713)),
    "svr": ((0.789, 0.589), (0.720, 0.504)),
    "lstm": ((0.541, 0.397), (0.639, 0.433)),
    "gru": ((0.531, 0.381), (0.637, 0.434)),
    "bilstm": ((0.529, 0.385), (0.624, 0.426)),
    "bigru": ((0.490, 0.341), (0.581, 0.401)),
}


@dataclass(frozen=True, slots=True)
class Days:
    """One load of 60 days, events/s per window, and where its validation and test days begin."""

    name: str
    rates: Array
    per_day: int

    @property
    def validate(self) -> int:
        return TRAIN_DAYS * self.per_day

    @property
    def test(self) -> int:
        return (TRAIN_DAYS + VALIDATE_DAYS) * self.per_day

    def origins(self, steps: int, part: str = "test") -> range:
        """Windows whose next ``steps`` all lie in the part."""
        if part == "validate":
            return range(self.validate, self.test - steps + 1)
        return range(self.test, len(self.rates) - steps + 1)

    def truth(self, steps: int, part: str = "test") -> Array:
        rows = np.lib.stride_tricks.sliding_window_view(self.rates, steps)
        return np.asarray(rows[list(self.origins(steps, part))])


def own_load(directory: Path, name: str) -> Days:
    """The authors' load of this name, cut to 60 days."""
    file, per_day = FILES[name]
    path = directory / file
    if not path.exists():
        raise InvalidConfig(
            f"{path} does not exist: give --data a directory with the authors' loads "
            f"({', '.join(f for f, _ in FILES.values())})"
        )
    days = TRAIN_DAYS + VALIDATE_DAYS + TEST_DAYS
    return Days(name, read_csv(path).rates()[: days * per_day], per_day)


@dataclass(frozen=True, slots=True)
class Errors:
    """Root mean squared and mean absolute error of one model and seed, events/s."""

    rmse: float
    mae: float


def errors(forecast: Array, truth: Array) -> Errors:
    off = forecast - truth
    return Errors(float(np.sqrt(np.mean(off**2))), float(np.mean(np.abs(off))))


def classical(name: str, of: Days, steps: int) -> Errors:
    """A model of the registry, fitted on the 50 days before the test and asked in every window."""
    constants = {"steps": steps} if "steps" in FORECASTERS.constants(name) else {}
    model = FORECASTERS.build(name, **constants)
    model.fit(of.rates[: of.test])
    ahead = [model.forecast(of.rates[max(0, o - 1000) : o], steps).mean for o in of.origins(steps)]
    return errors(np.array(ahead), of.truth(steps))


Size = tuple[int, int]


def networks(
    name: str, loads: Sequence[Days], steps: int, size: Size, seeds: Sequence[int]
) -> dict[str, list[tuple[Array, Errors]]]:
    """One network per load and seed, trained in one batch on 40 days and stopped by the error on
    the next 10: forecasts of every test window, and the errors on the validation days.
    """
    from foretide.forecast.recurrent import Recurrent

    made = [
        FORECASTERS.build(
            name, lookback=size[0], hidden=size[1], horizon=steps, seed=seed, limit=len(of.rates)
        )
        for of in loads
        for seed in seeds
    ]
    nets = [net for net in made if isinstance(net, Recurrent)]
    series = [of.rates[: of.test] for of in loads for _ in seeds]
    for net, trained in zip(nets, Recurrent.train_many(nets, series), strict=True):
        net.take(trained)
    results: dict[str, list[tuple[Array, Errors]]] = {}
    for net, of in zip(nets, (of for of in loads for _ in seeds), strict=True):
        windows = np.lib.stride_tricks.sliding_window_view(of.rates, net.lookback)
        test, check = (
            net.forecast_many(windows[[o - net.lookback for o in of.origins(steps, part)]])
            for part in ("test", "validate")
        )
        results.setdefault(of.name, []).append((test, errors(check, of.truth(steps, "validate"))))
    return results


# Windows in and hidden units; the paper gives neither. Of 24, 96 and 288 windows and 32 to 128
# units these had the least error on the validation days, or were close to it (288 windows take
# three times as long): benchmarks/network_sizes.py.
USUAL: Size = (96, 128)


@dataclass(frozen=True, slots=True)
class Measured:
    """Errors of every model, seed by seed, and each network's forecasts of the test windows."""

    errors: Mapping[str, Sequence[Errors]]
    forecasts: Mapping[str, Sequence[Array]]


def measure(
    of: Days,
    steps: int,
    seeds: Sequence[int],
    models: Sequence[str] = (*CLASSICAL, *NETWORKS),
    say: Callable[[str], None] = lambda what: None,
) -> Measured:
    found: dict[str, Sequence[Errors]] = {}
    forecasts: dict[str, Sequence[Array]] = {}
    for name in models:
        say(f"{name} on the {of.name} load, {steps} ahead")
        if name in NETWORKS:
            runs = networks(name, [of], steps, USUAL, seeds)[of.name]
            found[name] = [errors(test, of.truth(steps)) for test, _ in runs]
            forecasts[name] = [test for test, _ in runs]
        else:
            found[name] = [classical(name, of, steps)]
    return Measured(found, forecasts)


def table(of: Days, steps: int, measured: Mapping[str, Sequence[Errors]]) -> PublishedTable:
    """Errors in events/s and as ratios to ARIMA's, beside the published ratios."""
    base = measured["arima"][0]
    index = list(FILES).index(of.name)
    rows = []
    for name, runs in measured.items():
        ours: dict[str, Cell] = {
            "RMSE, events/s": interval([e.rmse for e in runs]),
            "MAE, events/s": interval([e.mae for e in runs]),
            "RMSE / ARIMA's": interval([e.rmse / base.rmse for e in runs]),
            "MAE / ARIMA's": interval([e.mae / base.mae for e in runs]),
        }
        published: dict[str, Cell] = {}
        if name in PUBLISHED:
            (rmse, mae), (base_rmse, base_mae) = PUBLISHED[name][index], PUBLISHED["arima"][index]
            published = {"RMSE / ARIMA's": rmse / base_rmse, "MAE / ARIMA's": mae / base_mae}
        rows.append(Row(name, ours, published))
    seeds = max(len(runs) for runs in measured.values())
    return PublishedTable(
        f"Table 1, {of.name} load, {steps} step{'s' if steps > 1 else ''} ahead, {seeds} seeds",
        rows,
        _claims(measured, index, f"{of.name}, {steps} ahead"),
        f"{TRAIN_DAYS} days train, {VALIDATE_DAYS} decide when to stop, {TEST_DAYS} are scored "
        f"({len(of.origins(steps))} forecasts). ± is the 95 % interval over seeds.",
        key=f"table-1-{of.name}-{steps}",
    )


def _claims(measured: Mapping[str, Sequence[Errors]], index: int, where: str) -> list[Claim]:
    mean = {n: float(np.mean([e.rmse for e in runs])) for n, runs in measured.items()}
    if "bigru" not in mean:
        return []
    listed = [n for n in mean if n in PUBLISHED]
    ratio = PUBLISHED["bigru"][index][0] / PUBLISHED["arima"][index][0]
    ours = mean["bigru"] / mean["arima"]
    nets = [n for n in NETWORKS if n in mean]
    return [
        Claim(
            f"{where}: BiGRU has the least RMSE of the six",
            mean["bigru"] <= min(mean[n] for n in listed),
            f"here {min(listed, key=lambda n: mean[n])}",
        ),
        Claim(
            f"{where}: every network has a lower RMSE than ARIMA and SVR",
            max(mean[n] for n in nets) < min(mean["arima"], mean["svr"]),
        ),
        Claim(
            f"{where}: RMSE of BiGRU is {ratio:.2f} of ARIMA's, within 0.05",
            abs(ours - ratio) <= 0.05,
            f"here {ours:.2f}",
        ),
    ]
