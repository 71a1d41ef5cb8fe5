import json

import pytest
from typer.testing import CliRunner

from foretide.cli import app
from foretide.papers.forecasting import LOADS, PUBLISHED, Setting, _published, table


def test_the_published_ratios_are_the_papers() -> None:
    """RMSE(BiGRU)/RMSE(ARIMA): stable 0.49, periodic 0.39, fluctuating 0.58."""
    assert [round(_published("bigru")[f"{name} RMSE"], 2) for name in LOADS] == [0.49, 0.39, 0.58]
    assert all(ratio == 1.0 for ratio in _published("arima").values())
    assert set(PUBLISHED) == {"arima", "svr", "lstm", "gru", "bilstm", "bigru"}


@pytest.mark.slow
def test_the_table_compares_every_model_with_arima() -> None:
    pytest.importorskip("statsforecast")
    published = table(Setting(days=4, window_s=60.0, horizon=2, seeds=1, models=("basic",)))
    assert [row.name for row in published.rows] == ["arima", "basic"]
    assert all(value == 1.0 for value in published.rows[0].ours.values())
    assert set(published.columns) == {
        f"{name} {figure}" for name in LOADS for figure in ("RMSE", "MAE")
    }


@pytest.mark.slow
def test_the_command_prints_one_json_object() -> None:
    pytest.importorskip("statsforecast")
    small = ["--models", "basic", "--days", "4", "--window", "60", "--horizon", "2", "--seeds", "1"]
    result = CliRunner().invoke(app, ["bench", "forecast", *small, "--json"])
    assert result.exit_code == 0
    assert [row["name"] for row in json.loads(result.stdout)["rows"]] == ["arima", "basic"]
