"""BGElasor's table 1 again: six forecasters on a stable, a periodic and a fluctuating load, as
ratios to ARIMA.

The paper's loads are pictures without units, so only ratios can be compared. Ours are the built-in
shapes of the same names, as many days as the paper's record has, seen as a loop sees them: in
windows. A row of a shape stands for a minute of its day and comes in one second, so a window of 10
s spans ten minutes of the day and a day has 144 windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foretide.forecast.evaluate import Score, stride
from foretide.forecast.leaderboard import leaderboard
from foretide.load import load
from foretide.papers.paper import Claim, PublishedTable, Row

MODELS = ("arima", "svr", "lstm", "gru", "bilstm", "bigru")
LOADS = ("stable", "periodic", "fluctuating")
PUBLISHED = {  # RMSE and MAE per load, BGElasor, table 1
    "arima": ((0.207, 0.156), (1.252, 0.888), (1.001, 0.713)),
    "svr": ((0.163, 0.127), (0.789, 0.589), (0.720, 0.504)),
    "lstm": ((0.141, 0.113), (0.541, 0.397), (0.639, 0.433)),
    "gru": ((0.124, 0.098), (0.531, 0.381), (0.637, 0.434)),
    "bilstm": ((0.119, 0.094), (0.529, 0.385), (0.624, 0.426)),
    "bigru": ((0.101, 0.081), (0.490, 0.341), (0.581, 0.401)),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """How the table is run: ``days`` of each load in windows of ``window_s``, ``horizon`` windows
    ahead, ``seeds`` averaged.
    """

    days: int = 60
    window_s: float = 10.0
    horizon: int = 6
    seeds: int = 3
    models: tuple[str, ...] = MODELS


def table(
    setting: Setting | None = None, tell: Callable[[str], None] = lambda what: None
) -> PublishedTable:
    """RMSE and MAE of every model over ARIMA's, beside the published ratios. Takes minutes: every
    network is trained.
    """
    setting = setting or Setting()
    wanted = tuple(dict.fromkeys(("arima", *setting.models)))
    scores = {name: _scores(name, wanted, setting, tell) for name in LOADS}
    rows = []
    for model in wanted:
        ours: dict[str, float] = {}
        for name in LOADS:
            ours[f"{name} RMSE"] = scores[name][model].rmse / scores[name]["arima"].rmse
            ours[f"{name} MAE"] = scores[name][model].mae / scores[name]["arima"].mae
        rows.append(Row(model, ours, _published(model)))
    return PublishedTable(
        "BGElasor, table 1: forecast error as a ratio to ARIMA",
        rows,
        _claims(rows),
        f"{setting.days} days in windows of {setting.window_s:g} s, {setting.horizon} windows "
        f"ahead, {setting.seeds} seeds averaged; "
        "trained on the first two thirds, tuned on the next sixth, scored walk-forward on the "
        "last.",
    )


def _scores(
    name: str, models: Sequence[str], setting: Setting, tell: Callable[[str], None]
) -> dict[str, Score]:
    rates = load(f"{name}:days={setting.days}").rates(setting.window_s)
    board = leaderboard(
        rates,
        models,
        setting.horizon,
        setting.seeds,
        stride(len(rates)),
        lambda model: tell(f"{model} on the {name} load"),
    )
    return {s.model: s for s in board.scores}


def _published(model: str) -> dict[str, float]:
    if model not in PUBLISHED:
        return {}
    ratios = {}
    for name, (rmse, mae), (base_rmse, base_mae) in zip(
        LOADS, PUBLISHED[model], PUBLISHED["arima"], strict=True
    ):
        ratios[f"{name} RMSE"], ratios[f"{name} MAE"] = rmse / base_rmse, mae / base_mae
    return ratios


def _claims(rows: Sequence[Row]) -> list[Claim]:
    """What the paper says about its table: BiGRU has the least error on every load."""
    ours = {row.name: row.ours for row in rows}
    if "bigru" not in ours:
        return []
    claims = []
    for name in LOADS:
        key = f"{name} RMSE"
        least = min(float(o[key] or 0.0) for m, o in ours.items() if m in PUBLISHED)
        claims.append(
            Claim(
                f"BiGRU has the least RMSE of the six on the {name} load",
                float(ours["bigru"][key] or 0.0) <= least,
            )
        )
    return claims
