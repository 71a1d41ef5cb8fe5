"""BGElasor's table 1 and its costs, on small loads by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from foretide.papers import bgelasor
from foretide.papers import bgelasor_forecasts as table_1
from foretide.papers.bgelasor_forecasts import Days, Errors


def days(per_day: int = 6) -> Days:
    rates = np.tile(100 + 50 * np.sin(2 * np.pi * np.arange(per_day) / per_day), 60)
    return Days("periodic", rates, per_day)


def test_the_days_are_split_40_10_10() -> None:
    of = days()
    assert (of.validate, of.test, len(of.rates)) == (240, 300, 360)
    assert list(of.origins(6))[::54] == [300, 354]
    assert of.truth(2)[0].tolist() == of.rates[300:302].tolist()
    assert len(of.truth(6, "validate")) == 55


def test_a_load_is_read_and_cut_to_60_days(tmp_path: Path) -> None:
    rows = 61 * 144
    stamps = np.datetime64("2019-03-08T00:00:00") + np.arange(rows) * np.timedelta64(10, "m")
    lines = [f"{stamp},{i}" for i, stamp in enumerate(stamps)]
    (tmp_path / "bgelasor_fluctuate_10min.csv").write_text("timestamp,rate\n" + "\n".join(lines))
    of = table_1.own_load(tmp_path, "fluctuating")
    assert len(of.rates) == 60 * 144
    assert of.rates[600] == pytest.approx(1.0)


def test_repeating_the_last_window_errs_by_the_differences() -> None:
    of = days()
    off = np.diff(of.rates[of.test - 1 :])
    found = table_1.classical("basic", of, 1)
    assert found.rmse == pytest.approx(float(np.sqrt(np.mean(off**2))))
    assert found.mae == pytest.approx(float(np.mean(np.abs(off))))


def test_ratios_stand_beside_the_published_ones() -> None:
    measured = {
        "arima": [Errors(10.0, 8.0)],
        "svr": [Errors(9.0, 7.0)],
        "bigru": [Errors(4.0, 3.0), Errors(5.0, 3.0)],
    }
    table = table_1.table(days(), 6, measured)
    row = {r.name: r for r in table.rows}["bigru"]
    assert row.published["RMSE / ARIMA's"] == pytest.approx(0.49 / 1.252)
    assert str(row.ours["RMSE / ARIMA's"]).startswith("0.45 ± ")
    assert [c.holds for c in table.claims] == [True, True, False]


def test_a_perfect_forecast_is_never_short_and_the_optimum_costs_least() -> None:
    of = days(24)
    table = bgelasor.forecast_costs(of, [of.truth(6)])
    short = {r.name: r.ours["share of windows below need"] for r in table.rows}
    assert short["CBA"] == short["SPEA"] == short["optimum"] == 0.0
    assert short["SREA"] > 0.0
    cost = {r.name: r.ours["cost / SPEA's"] for r in table.rows}
    assert cost["optimum"] <= cost["CBA"] <= cost["SPEA"] == 1.0
