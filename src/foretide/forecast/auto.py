"""'auto': follows a small, fast set of models by their errors of late and forecasts with the best
of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from foretide.errors import NotReady
from foretide.forecast import FORECASTERS
from foretide.forecast.new_windows import PendingForecasts, SeriesMemory
from foretide.model import Array, Forecast
from foretide.parts import Learner

MEMBERS = ("basic", "smooth", "median-lags", "growth-lags", "seasonal-lags")
LIMIT = 20_160  # windows remembered: two weeks of minutes
LEAST_FIT = 45  # windows before its members first learn
MOST_WAIT = 2016  # windows between two lessons, at most


class Auto:
    """A mixture in which the best of late weighs most, for each step ahead of its own.

    Every member forecasts in every window and is scored when the truth arrives. With e_m the
    absolute error of member m, averaged with a half-life of ``half_life`` windows, its weight is
    ``(min e / e_m) ** power``: at 24 a member whose error is 10 % above the best one's keeps a
    tenth of its weight and one that is 25 % above keeps nothing, so that switching is smooth and
    costs nothing. Before any truth is known all weigh the same. Members learn at ``fit`` and, since
    windows go on coming, by themselves whenever a fifth more was seen. Needs one window, and
    nothing beyond the default install.

    >>> auto = Auto(members=("basic", "seasonal"))
    >>> wave = np.tile([1.0, 5.0, 9.0, 5.0], 20)
    >>> [auto.forecast(wave[:t], horizon=1).mean for t in range(40, 70)][-1]
    (5.0,)
    """

    def __init__(
        self, members: Sequence[str] = MEMBERS, half_life: float = 100.0, power: float = 24.0
    ) -> None:
        self.members = tuple(members)
        self.power = power
        self._fade = 0.5 ** (1.0 / half_life)
        self._models = [FORECASTERS.build(name) for name in self.members]
        self._memory = SeriesMemory(LIMIT)
        self._ledger: PendingForecasts[Array] = PendingForecasts()
        self._errors: dict[int, tuple[Array, Array]] = {}
        self._seen = 0
        self._fit_at = 0

    def fit(self, series: Array) -> None:
        self._memory.learn(series)
        self._seen = max(self._seen, len(series))
        self._learn(series)

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        known = self._memory.see(recent)
        if not np.isfinite(known).any():
            raise NotReady("no window was measured yet; this forecaster needs one")
        self._seen += len(known) if self._memory.new is None else self._memory.new
        if self._seen >= LEAST_FIT and self._seen - self._fit_at >= min(
            MOST_WAIT, self._fit_at / 5
        ):
            self._learn(known)
        for step, truth, forecasts in self._ledger.settle(recent):
            self._score(step, np.abs(forecasts - truth))
        ahead = np.stack([self._ask(i, known, horizon) for i in range(len(self._models))], axis=1)
        self._ledger.add(list(ahead))
        return Forecast.of(
            [float(self.weights(step, row) @ np.nan_to_num(row)) for step, row in enumerate(ahead)]
        )

    def state(self) -> dict[str, Any]:
        return {
            "members": {
                name: model.state() if isinstance(model, Learner) else {}
                for name, model in zip(self.members, self._models, strict=True)
            },
            "memory": self._memory.values,
            "ledger": self._ledger.state(np.asarray),
            "errors": [[step, total, count] for step, (total, count) in self._errors.items()],
            "seen": self._seen,
            "fit_at": self._fit_at,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        if list(state["members"]) != list(self.members):
            raise ValueError(f"its members are {', '.join(state['members'])}")
        for model, learned in zip(self._models, state["members"].values(), strict=True):
            if isinstance(model, Learner):
                model.restore(learned)
        self._memory.learn(state["memory"])
        self._ledger.restore(state["ledger"], list)
        self._errors = {int(step): (total, count) for step, total, count in state["errors"]}
        self._seen, self._fit_at = int(state["seen"]), int(state["fit_at"])

    def weights(self, step: int, forecasts: Array) -> Array:
        """How much each member counts ``step`` steps ahead (from 0), among those that gave a
        forecast; they sum to 1.
        """
        present = np.isfinite(forecasts)
        total, count = self._errors.get(step, (np.zeros(len(forecasts)), np.zeros(len(forecasts))))
        scored = present & (count > 0)
        if not scored.any():
            return np.asarray(present / present.sum())
        error = np.where(scored, total, np.inf) / np.maximum(count, 1e-12) + 1e-12
        share = np.asarray((error.min() / error) ** self.power)
        return np.asarray(share / share.sum())

    def _score(self, step: int, error: Array) -> None:
        known = np.isfinite(error)
        total, count = self._errors.get(step, (np.zeros(len(error)), np.zeros(len(error))))
        fade = np.where(known, self._fade, 1.0)
        self._errors[step] = (fade * total + np.where(known, error, 0.0), fade * count + known)

    def _ask(self, i: int, known: Array, horizon: int) -> Array:
        try:
            return np.array(self._models[i].forecast(known, horizon).mean)
        except NotReady:
            return np.full(horizon, np.nan)

    def _learn(self, series: Array) -> None:
        self._fit_at = self._seen
        for model in self._models:
            model.fit(series)
