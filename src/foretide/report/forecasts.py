"""The page of a forecast leaderboard: scores, and each model's forecasts against the truth."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import numpy as np

from foretide.forecast.evaluate import Score
from foretide.forecast.leaderboard import Leaderboard
from foretide.load import Load
from foretide.report.page import assembled, save, series_of
from foretide.wording import percent, plural

MOST_POINTS = 2000  # windows in the chart: the end of the test part

COLUMNS = (
    ("RMSE /s", "rmse"),
    ("MAE /s", "mae"),
    ("WAPE", "wape"),
    ("MASE", "mase"),
    ("coverage", "coverage"),
    ("fit s", "fit_s"),
    ("one forecast, ms", "forecast_ms"),
    ("origins", "origins"),
    ("seeds", "seeds"),
)


def cell(score: Score, key: str) -> str:
    """One figure of a score as it is shown everywhere."""
    value = getattr(score, key)
    if value is None:
        return "-"
    if key in ("wape", "coverage"):
        return f"{100 * value:.1f} %"
    if 0 < abs(value) < 0.001:
        return "0.000"
    return (
        f"{value:,}"
        if isinstance(value, int)
        else f"{value:,.3g}"
        if abs(value) < 1000
        else f"{value:,.0f}"
    )


def verdict(board: Leaderboard) -> str:
    """The model with the lowest error, and how much lower it is than repeating the last window."""
    best = board.scores[0]
    error = f"MAE {best.mae:.3g}/s" if best.wape is None else f"WAPE {100 * best.wape:.2g} %"
    sentence = f"{best.model} had the lowest error over {plural(board.horizon, 'step')}: {error}."
    basic = next((s for s in board.scores if s.model == "basic"), None)
    if basic is not None and basic is not best and basic.mae > 0:
        lower = percent(1 - best.mae / basic.mae)
        sentence += f" That is {lower} lower than repeating the last window."
    return sentence


def write_forecasts(path: Path | str, load: Load, board: Leaderboard, command: str = "") -> Path:
    """The page as one self-contained file."""
    return save(path, render_forecasts(load, board, command))


def render_forecasts(load: Load, board: Leaderboard, command: str = "") -> str:
    """The page as text."""
    head = "".join(f"<th>{html.escape(label)}</th>" for label, _ in COLUMNS)
    rows = "".join(
        f"<tr><td>{html.escape(s.model)}</td>"
        + "".join(f"<td>{cell(s, key)}</td>" for _, key in COLUMNS)
        + "</tr>"
        for s in board.scores
    )
    facts = (
        ("load", load.name),
        ("rows", f"{len(load):,} of {load.interval_s:g} s"),
        ("horizon", plural(board.horizon, "window")),
        (
            "origins",
            "every window of the last sixth"
            if board.every == 1
            else f"every {board.every}th window of the last sixth",
        ),
    )
    parts = {
        "TITLE": html.escape(f"Forecasts of {Path(load.name).stem}"),
        "VERDICT": html.escape(verdict(board)),
        "FACTS": "".join(
            f"<div><dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd></div>" for k, v in facts
        ),
        "TABLE": f"<thead><tr><th>model</th>{head}</tr></thead><tbody>{rows}</tbody>",
        "COMMAND": f"Made with: <code>{html.escape(command)}</code>" if command else "",
        "DATA": json.dumps(_data(load, board), separators=(",", ":"), allow_nan=False).replace(
            "<", "\\u003c"
        ),
    }
    return assembled("forecast.html", parts, ("time.js", "forecast.js"))


def _data(load: Load, board: Leaderboard) -> dict[str, Any]:
    """Truth and forecasts by the window they speak of, one line per step ahead shown: the first and
    the last.
    """
    walks = [board.walks[s.model] for s in board.scores]
    steps = sorted({1, board.horizon})
    origins = np.array(walks[0].origins)
    first, last = int(origins[0]), int(origins[-1]) + board.horizon - 1
    windows = np.arange(max(first, last - MOST_POINTS + 1), last + 1)
    truth = np.full(last - first + 1, np.nan)
    for step in range(board.horizon):
        truth[origins - first + step] = walks[0].truth[:, step]
    models = []
    for score, walked in zip(board.scores, walks, strict=True):
        lines: dict[str, list[Any]] = {"mean": [], "upper": []}
        for key, values in (("mean", walked.mean), ("upper", walked.upper)):
            for step in steps:
                line = np.full(last - first + 1, np.nan)
                line[origins - first + step - 1] = values[:, step - 1]
                lines[key].append(series_of(_joined(line)[windows - first]))
        models.append({"model": score.model, **lines})
    return {
        "window": windows.tolist(),
        "interval_s": load.interval_s,
        "started_at": load.started_at,
        "truth": series_of(_joined(truth)[windows - first]),
        "steps": steps,
        "models": models,
        "left_out": board.left_out,
    }


def _joined(line: np.ndarray) -> np.ndarray:
    """Values between scored windows drawn as straight lines, so that a stride leaves no dust of
    single points.
    """
    known = np.flatnonzero(np.isfinite(line))
    if len(known) < 2:
        return line
    at = np.arange(known[0], known[-1] + 1)
    joined = line.copy()
    joined[at] = np.interp(at, known, line[known])
    return joined
