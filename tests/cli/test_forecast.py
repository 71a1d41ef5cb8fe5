"""``foretide forecast``: the JSON contract, the table, the report, and errors a user can act on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from foretide.cli import app
from foretide.errors import InvalidConfig
from foretide.forecast.leaderboard import leaderboard

KEYS = {
    "model",
    "rmse",
    "mae",
    "wape",
    "mase",
    "coverage",
    "fit_s",
    "forecast_ms",
    "origins",
    "seeds",
}


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["forecast", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_one_json_object_and_nothing_else() -> None:
    found = json.loads(
        invoke("stable", "--models", "basic,lr", "--horizon", "3", "--every", "10", "--json")
    )
    assert set(found) == {"load", "rows", "horizon", "every", "models"}
    assert (found["load"], found["horizon"]) == ("stable", 3)
    assert {m["model"] for m in found["models"]} == {"basic", "lr"}
    assert all(set(m) == KEYS for m in found["models"])
    assert found["models"][0]["mae"] <= found["models"][1]["mae"]


def test_people_get_a_table_a_sentence_and_a_report(tmp_path: Path) -> None:
    page = tmp_path / "deep" / "page.html"
    text = invoke("stable", "--models", "basic,smooth", "--every", "10", "--report", str(page))
    assert "had the lowest error over 6 steps: WAPE " in text
    assert "smooth" in text
    assert "every 10th window" in text
    assert page.stat().st_size > 50_000


def test_a_csv_file_is_a_load(tmp_path: Path) -> None:
    rows = "\n".join(f"2026-01-01T{m // 60:02d}:{m % 60:02d}:00,{100 + m % 7}" for m in range(120))
    file = tmp_path / "mine.csv"
    file.write_text("timestamp,rate\n" + rows + "\n")
    found = json.loads(invoke(str(file), "--models", "basic", "--horizon", "1", "--json"))
    assert found["rows"] == 120
    assert found["models"][0]["origins"] == 20


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("stable", "--models", "bsic"), "did you mean 'basic'"),
        (("stable", "--models", ","), "--models is empty"),
        (("nowhere.csv",), "nowhere.csv"),
        (("stable:days=1", "--models", "basic", "--horizon", "900"), "too few"),
    ],
)
def test_mistakes_are_one_sentence(arguments: tuple[str, ...], says: str) -> None:
    with pytest.raises(InvalidConfig, match=says):
        CliRunner().invoke(app, ["forecast", *arguments], catch_exceptions=False)


def test_a_model_that_never_has_enough_is_left_out_with_its_reason() -> None:
    found = leaderboard(np.arange(40.0), ["basic", "lr-lags"], horizon=1)
    assert [s.model for s in found.scores] == ["basic"]
    assert "needs" in found.left_out["lr-lags"]
    with pytest.raises(InvalidConfig, match="no model could forecast"):
        leaderboard(np.arange(40.0), ["lr-lags"], horizon=1)


def test_random_models_are_averaged_over_seeds_and_others_run_once() -> None:
    series = 100 + 20 * np.sin(np.arange(120) / 5)
    found = leaderboard(series, ["basic", "rf"], horizon=1, seeds=2, every=10)
    assert {s.model: s.seeds for s in found.scores} == {"basic": 1, "rf": 2}
