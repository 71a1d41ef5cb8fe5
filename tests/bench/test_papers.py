import json

import pytest
from typer.testing import CliRunner

from foretide.bench import PAPERS
from foretide.bench.drs import figure_10, table_2
from foretide.bench.paper import Claim, Row, Table
from foretide.cli import app
from foretide.errors import InvalidConfig


def test_a_table_tells_ours_beside_the_published():
    table = Table("t", [Row("a", {"x": 0.5, "y": None}, {"x": 1.0}), Row("b", {"x": 2.0})], [Claim("a is below b", True)], "why")
    assert "| a | 0.5 (1) | - |" in table.lines()
    assert "- came out: a is below b" in table.lines()
    assert json.loads(json.dumps(table.as_dict()))["rows"][0]["published"] == {"x": 1.0}


def test_table_2_has_the_published_sizes():
    rows = table_2(repeats=20).rows
    assert [r.name for r in rows] == ["K = 12", "K = 24", "K = 48", "K = 96", "K = 192"]


@pytest.mark.slow
def test_figure_10_of_drs_comes_out():
    table = figure_10(seed=1)
    assert all(c.holds for c in table.claims), [c.text for c in table.claims if not c.holds]


def test_an_unknown_paper_is_named():
    with pytest.raises(InvalidConfig, match="unknown paper"):
        PAPERS.build("dsr", seed=1)
    assert CliRunner().invoke(app, ["bench", "papers", "--help"]).exit_code == 0
