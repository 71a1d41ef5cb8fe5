"""Several forecasters on one load, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foretide.errors import InvalidConfig, MissingExtra, NotReady
from foretide.forecast import FORECASTERS
from foretide.forecast.evaluate import Score, Walk, evaluate
from foretide.model import Array
from foretide.parts import Forecaster


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Scores, lowest absolute error first; each model's walk, to plot; models left out and why."""

    horizon: int
    every: int
    scores: tuple[Score, ...]
    walks: dict[str, Walk]
    left_out: dict[str, str]


def builder(model: str) -> Callable[[int], Forecaster]:
    """Builds the model with a seed where it takes one."""
    seeded = "seed" in FORECASTERS.constants(model)
    return lambda seed: FORECASTERS.build(model, **({"seed": seed} if seeded else {}))


def leaderboard(
    series: Array,
    models: Sequence[str] | None,
    horizon: int,
    seeds: int = 1,
    every: int = 1,
    tell: Callable[[str], None] = lambda model: None,
) -> Leaderboard:
    """Walk every model through the series; ``models=None`` are all that are installed.

    ``seeds`` counts only for models that are random. A model requested by name that cannot
    be built is an error; one that never had enough history is left out with its reason.
    """
    scores: list[Score] = []
    walks: dict[str, Walk] = {}
    left_out: dict[str, str] = {}
    for model in FORECASTERS.names if models is None else models:
        tell(model)
        try:
            build = builder(model)
        except MissingExtra as error:
            if models is not None:
                raise
            left_out[model] = str(error)
            continue
        try:
            rounds = seeds if "seed" in FORECASTERS.constants(model) else 1
            score, walks[model] = evaluate(model, build, series, horizon, rounds, every)
            scores.append(score)
        except NotReady as error:
            left_out[model] = str(error)
    if not scores:
        reasons = "; ".join(f"{model}: {why}" for model, why in left_out.items())
        raise InvalidConfig(f"no model could forecast this load: {reasons}")
    return Leaderboard(
        horizon, every, tuple(sorted(scores, key=lambda s: (s.mae, s.model))), walks, left_out
    )
