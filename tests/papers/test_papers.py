import json

import numpy as np
import pytest
from typer.testing import CliRunner

from foretide.cli import app
from foretide.errors import InvalidConfig
from foretide.forecast.basic import Basic
from foretide.load import Load
from foretide.load import load as built_in
from foretide.model import Array, Forecast
from foretide.papers import PAPERS, bgelasor, pa_sps
from foretide.papers.drs import table_2
from foretide.papers.paper import Bench, Claim, PublishedTable, Row, half_width, interval


def test_a_table_tells_ours_beside_the_published():
    table = PublishedTable(
        "t",
        [Row("a", {"x": 0.5, "y": None}, {"x": 1.0}), Row("b", {"x": 2.0})],
        [Claim("a is below b", True)],
        "why",
    )
    assert "| a | 0.5 (1) | - |" in table.lines()
    assert "- came out: a is below b" in table.lines()
    assert Claim("x", False, "here 2").line == "did NOT come out: x (here 2)"
    assert json.loads(json.dumps(table.as_dict()))["rows"][0]["published"] == {"x": 1.0}


def test_long_claims_and_notes_are_wrapped_at_100_columns():
    claim = Claim("a word or two " * 20, True)
    table = PublishedTable("t " * 80, [Row("a", {"x": 1.0})], [claim], "n " * 90)
    assert max(map(len, table.lines())) <= 100


def test_an_interval_is_students():
    """Three runs at 1, 2, 3: 4.30 * 1 / sqrt(3) by the table of Student's t."""
    assert half_width([1.0, 2.0, 3.0]) == pytest.approx(4.30 / 3**0.5)
    assert interval([1.0, 2.0, 3.0]) == "2 ± 2.5"
    assert np.isnan(half_width([1.0]))


def test_table_2_has_the_published_sizes():
    rows = table_2(repeats=20).rows
    assert [r.name for r in rows] == ["K = 12", "K = 24", "K = 48", "K = 96", "K = 192"]


def test_an_unknown_paper_is_named():
    with pytest.raises(InvalidConfig, match="unknown paper"):
        PAPERS.build("dsr", bench=Bench())
    assert CliRunner().invoke(app, ["bench", "papers", "--help"]).exit_code == 0


@pytest.mark.parametrize("load", bgelasor.LOADS)
def test_cba_costs_less_than_spea_when_the_forecast_is_right(load):
    table = bgelasor.known(f"{load}-shape", built_in(load).rates(bgelasor.WINDOW_S))
    cost = {r.name: r.ours["cost"] for r in table.rows}
    assert cost["optimum"] <= cost["CBA"] < cost["SPEA"]
    assert {r.name: r.ours["windows below need"] for r in table.rows}["CBA"] == 0


def test_a_test_continues_the_past_it_was_trained_on():
    past, test = bgelasor.split(Load("days", np.arange(12.0 * 1440)))
    assert len(past) == 10 * 1440 / 30
    assert test.counts[0] == 10 * 1440
    seen: list[int] = []

    class Watched(Basic):
        def forecast(self, recent: Array, horizon: int) -> Forecast:
            seen.append(len(recent))
            return super().forecast(recent, horizon)

    forecaster = bgelasor.Continued(Watched(), np.array(past))
    forecaster.forecast(np.array([1.0, 2.0]), 1)
    assert seen == [len(past) + 2]


@pytest.mark.slow
def test_the_ends_of_pa_sps_table_2_come_out():
    case = pa_sps.case_of("twitter-linear", 32, Bench())
    ann, basic = (pa_sps.run(case, pa_sps.pa_sps(name, pool=8)) for name in ("ann", "basic"))
    assert ann.latency_mean_ms < basic.latency_mean_ms
    assert ann.processed_share > 0.99
