"""``compare --history``: the load before the one that is compared, on the real simulator."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from foretide.cli import app
from foretide.errors import InvalidConfig

ROW_S = 5.0


def written(path: Path, first: int, rows: int) -> str:
    """A CSV file with a burst of 15 s every 100 s, four times as high as the rest."""
    at = np.arange(first, first + rows)
    noise = np.random.default_rng(first).gamma(80.0, 1 / 80.0, rows)
    counts = np.where(at % 20 < 3, 60.0, 15.0) * noise * ROW_S
    lines = [f"{ROW_S * i:g},{count:.0f}" for i, count in zip(at, counts, strict=True)]
    path.write_text("\n".join(["timestamp,rate", *lines, ""]))
    return str(path)


def compared(*more: str) -> tuple[dict[str, float], str]:
    arguments = ["compare", "--app", "chain", "--systems", "foretide", "--json", "--window", "5"]
    arguments += ["--target", "5", "--lead", "30", "--engine", "fluid", *more]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["systems"][0], result.stderr


def test_what_came_before_is_known_from_the_first_window(tmp_path: Path) -> None:
    load = ("--load", written(tmp_path / "today.csv", 400, 60))
    alone, _ = compared(*load)
    told, said = compared(*load, "--history", written(tmp_path / "before.csv", 0, 400))
    assert alone["slo_share"] < 0.95 < 0.98 < told["slo_share"]
    assert told["cost"] < 0.8 * alone["cost"]
    assert "know 400 windows before the load" in said


def test_a_past_shorter_than_a_window_is_refused_with_what_to_do(tmp_path: Path) -> None:
    load = ("--load", written(tmp_path / "today.csv", 400, 60))
    short = written(tmp_path / "short.csv", 0, 2)
    with pytest.raises(InvalidConfig, match="give more of the load before"):
        compared(*load, "--window", "20", "--history", short)
