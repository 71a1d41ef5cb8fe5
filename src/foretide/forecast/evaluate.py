"""Walk-forward evaluation: forecast, then learn. No value of the future is ever visible.

A series is split by time: the first two thirds to train on, the next sixth to tune on, the last
sixth to test on. A model is given the first five sixths in one ``fit``, less the few windows that
warm its upper quantile up, and splits them itself (``tuning_split``) when it tunes or stops early.
Then the walk goes through the test part: at each origin the model sees the windows before it and
forecasts the next ``horizon``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from foretide.errors import InvalidConfig, NotReady
from foretide.forecast.conformal import Conformal
from foretide.model import Array
from foretide.parts import Forecaster

LOOKBACK = 3000  # windows shown at each origin: two days of minutes
# origins before the test part that are walked but not scored: upper quantiles start from their
# residuals
WARM_UP = 300


def tuning_split(rows: int) -> int:
    """Where the tuning part of a series given to ``fit`` starts: its last fifth, the sixth before
    the test part of the whole.

    >>> tuning_split(100)
    80
    """
    return rows * 4 // 5


def holdout_start(rows: int) -> int:
    """The first window of the test part: the last sixth.

    >>> holdout_start(480)
    400
    """
    return rows - rows // 6


@dataclass(frozen=True, slots=True)
class Walk:
    """What was forecast and what came: one row per origin, one column per step ahead, NaN where
    there was none. ``before`` are the windows the model learned from, ``fit_s`` seconds to learn,
    ``forecast_ms`` the mean time of one forecast.
    """

    before: Array
    origins: tuple[int, ...]
    truth: Array
    mean: Array
    upper: Array
    fit_s: float
    forecast_ms: float


@dataclass(frozen=True, slots=True)
class Score:
    """One line of a leaderboard.

    ``wape`` is the sum of absolute errors over the sum of the truth; ``mase`` the mean absolute
    error over that of 'the next window equals the last' on the windows before the test part;
    ``coverage`` the share of truths at or below the upper quantile. None where it is
    undefined (a load of zeros, a constant past, no upper).
    """

    model: str
    rmse: float
    mae: float
    wape: float | None
    mase: float | None
    coverage: float | None
    fit_s: float
    forecast_ms: float
    origins: int
    seeds: int = 1


def walk(
    forecaster: Forecaster,
    series: Array,
    horizon: int,
    every: int = 1,
    lookback: int = LOOKBACK,
    clock: Callable[[], float] = time.perf_counter,
) -> Walk:
    """Fit on the first five sixths less the warm-up, then forecast at every ``every``-th origin of
    the last sixth.

    The warm-up are the last 300 origins before the test part, at most a twentieth of the windows:
    they are forecast as all others are, and not scored.

    An origin at which the model is not ready is a row of NaN; a model that is never ready raises
    its NotReady.
    """
    values = np.array(series, dtype=float)
    values.flags.writeable = False
    start = holdout_start(len(values))
    origins = tuple(range(start, len(values) - horizon + 1, every))
    if not origins or start < 2:
        raise InvalidConfig(
            f"{len(values)} rows are too few to score a horizon of {horizon}: the last sixth must "
            "hold it"
        )
    began = clock()
    warm = start - min(WARM_UP * every, start // 20)
    forecaster.fit(values[:warm])
    fit_s = clock() - began
    mean, upper = np.full((len(origins), horizon), np.nan), np.full((len(origins), horizon), np.nan)
    spent, reason = 0.0, NotReady("no forecast was made")
    for origin in range(warm, start, every):
        _quietly(forecaster, values[max(0, origin - lookback) : origin], horizon)
    for row, origin in enumerate(origins):
        began = clock()
        try:
            forecast = forecaster.forecast(values[max(0, origin - lookback) : origin], horizon)
        except NotReady as error:
            reason = error
            continue
        spent += clock() - began
        mean[row] = forecast.mean
        if forecast.upper is not None:
            upper[row] = forecast.upper
    answered = int(np.isfinite(mean[:, 0]).sum())
    if not answered:
        raise reason
    truth = np.lib.stride_tricks.sliding_window_view(values, horizon)[list(origins)]
    return Walk(values[:start], origins, truth, mean, upper, fit_s, 1000 * spent / answered)


def _quietly(forecaster: Forecaster, recent: Array, horizon: int) -> None:
    try:
        forecaster.forecast(recent, horizon)
    except NotReady:
        return


def score(model: str, walked: Walk) -> Score:
    """The figures of one walk, over all steps of the horizon together; windows that were not
    measured do not count.
    """
    known = np.isfinite(walked.truth) & np.isfinite(walked.mean)
    truth, error = walked.truth[known], (walked.truth - walked.mean)[known]
    if not len(truth):
        raise NotReady("no window of the test part was measured")
    naive = np.abs(np.diff(walked.before[np.isfinite(walked.before)]))
    scale = float(naive.mean()) if len(naive) else 0.0
    mae, total = float(np.abs(error).mean()), float(np.abs(truth).sum())
    bounded = known & np.isfinite(walked.upper)
    return Score(
        model=model,
        rmse=float(np.sqrt(np.mean(error**2))),
        mae=mae,
        wape=float(np.abs(error).sum()) / total if total > 0 else None,
        mase=mae / scale if scale > 0 else None,
        coverage=float((walked.truth[bounded] <= walked.upper[bounded]).mean())
        if bounded.any()
        else None,
        fit_s=walked.fit_s,
        forecast_ms=walked.forecast_ms,
        origins=int(np.isfinite(walked.mean[:, 0]).sum()),
    )


def evaluate(
    model: str,
    build: Callable[[int], Forecaster],
    series: Array,
    horizon: int,
    seeds: int = 1,
    every: int = 1,
    quantile: float | None = 0.95,
    lookback: int = LOOKBACK,
) -> tuple[Score, Walk]:
    """The score of ``build(seed)`` averaged over seeds 0, 1, ..., and the first seed's walk to
    plot.

    Every model is wrapped in Conformal for its upper quantile; ``quantile=None`` leaves it alone.
    """
    walks = []
    for seed in range(seeds):
        forecaster = build(seed)
        walks.append(
            walk(
                forecaster if quantile is None else Conformal(forecaster, quantile),
                series,
                horizon,
                every,
                lookback,
            )
        )
    return mean_score([score(model, w) for w in walks]), walks[0]


@dataclass(frozen=True, slots=True)
class StepScore:
    """The upper quantile at one step ahead (1: the next window).

    ``coverage`` is the share of truths at or below it, ``pinball`` the mean quantile loss in
    events/s (Koenker and Bassett 1978): ``q * d`` for a truth above the bound by d, ``(1 - q) * d``
    below.
    """

    step: int
    coverage: float
    pinball: float


def step_scores(walked: Walk, quantile: float = 0.95) -> list[StepScore]:
    """The upper quantile of a walk, scored step by step; steps without an upper are left out."""
    scores = []
    for step in range(walked.truth.shape[1]):
        known = np.isfinite(walked.truth[:, step]) & np.isfinite(walked.upper[:, step])
        above = (walked.truth - walked.upper)[known, step]
        if len(above):
            loss = np.maximum(quantile * above, (quantile - 1) * above)
            scores.append(StepScore(step + 1, float((above <= 0).mean()), float(loss.mean())))
    return scores


def mean_score(scores: list[Score]) -> Score:
    """One model's scores over several seeds, averaged figure by figure."""

    def mean(values: list[float | None]) -> float | None:
        known = [v for v in values if v is not None]
        return float(np.mean(known)) if known else None

    return replace(
        scores[0],
        rmse=float(np.mean([s.rmse for s in scores])),
        mae=float(np.mean([s.mae for s in scores])),
        wape=mean([s.wape for s in scores]),
        mase=mean([s.mase for s in scores]),
        coverage=mean([s.coverage for s in scores]),
        fit_s=float(np.mean([s.fit_s for s in scores])),
        forecast_ms=float(np.mean([s.forecast_ms for s in scores])),
        seeds=len(scores),
    )


def stride(rows: int, origins: int = 2000) -> int:
    """The step between origins that scores about ``origins`` of them in the test part; 1 when it is
    shorter than that.

    >>> stride(480), stride(125_310)
    (1, 10)
    """
    return max(1, (rows // 6) // origins)
