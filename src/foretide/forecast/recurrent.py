"""Recurrent forecasters: ``lstm``, ``gru``, ``bilstm``, ``bigru`` and their ``-local`` variants.

Owns the step between events/s and what the networks see, and what is saved of a trained one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from foretide.errors import InvalidConfig, NotReady
from foretide.forecast.evaluate import tuning_split
from foretide.forecast.recurrent_net import Cell, Shape
from foretide.forecast.recurrent_training import Scaled, Schedule, Weights, program, skeleton, train
from foretide.model import Array, Forecast
from foretide.series import filled

FOREIGN = "the weights are not those of a network of this shape"
SHAPE = ("cell", "bidirectional", "local", "lookback", "horizon", "hidden")


@dataclass(frozen=True, slots=True)
class Trained:
    """What one training gives: weights, and the range of the training part in events/s."""

    weights: Weights
    low: float
    high: float

    @property
    def unit(self) -> float:
        """Events/s that make 1 on the network's scale; a constant load is measured by its own
        level.
        """
        return self.high - self.low if self.high > self.low else max(abs(self.high), 1.0)

    def scaled(self, rates: Array) -> Scaled:
        """Min-Max: the training part lies in [0, 1]. What lies absurdly far outside is held at 1000
        ranges, so that all stays finite.
        """
        return np.asarray(np.clip((rates - self.low) / self.unit, -1e3, 1e3), dtype=np.float32)

    def rates(self, scaled: Scaled) -> Array:
        return np.asarray(scaled, dtype=float) * self.unit + self.low


@dataclass
class Recurrent:
    """A recurrent network on the last ``lookback`` rates that gives the next ``horizon`` at once
    (BGElasor, section 3.2).

    The rates are Min-Max scaled with the range of the training part, as published. That cannot
    follow a load that outgrows its training range; ``local`` measures every input window from its
    newest rate, in units of its own spread, and can. The first four fifths of a series train, the
    last fifth decides when to stop; only the last ``limit`` windows are used. A series of fewer
    than ``least`` windows teaches nothing; before the first training ``forecast`` raises NotReady.
    A horizon beyond the trained one feeds forecasts back as inputs.

    >>> Recurrent().forecast(np.ones(500), horizon=1)
    Traceback (most recent call last):
    foretide.errors.NotReady: this network is not trained yet; it trains after 204 windows
    """

    cell: Cell = "gru"
    bidirectional: bool = False
    local: bool = False
    lookback: int = 96
    horizon: int = 6
    hidden: int = 32
    rounds: int = 80
    limit: int = 20_000
    seed: int = 0
    trained: Trained | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("lookback", "horizon", "hidden", "rounds"):
            if getattr(self, name) < 1:
                raise InvalidConfig(f"{name} is {getattr(self, name)}: it must be at least 1")

    @property
    def shape(self) -> Shape:
        return Shape(
            self.cell, self.bidirectional, self.local, self.lookback, self.horizon, self.hidden
        )

    @property
    def least(self) -> int:
        """Windows needed to learn: the training part and the tuning part must each hold some inputs
        with their outcomes.
        """
        return 2 * (self.lookback + self.horizon)

    def fit(self, series: Array) -> None:
        """Train from random weights. Forecasts use the earlier network until that is done."""
        self.take(self.train_many([self], [series])[0])

    def take(self, trained: Trained | None) -> None:
        """Serve with this from now on; None (too little to learn from) changes nothing."""
        self.trained = trained or self.trained

    @staticmethod
    def train_many(
        forecasters: Sequence[Recurrent],
        series: Sequence[Array],
        stopped: Callable[[], bool] = lambda: False,
    ) -> list[Trained | None]:
        """What each forecaster would learn from its series; forecasters of one shape are trained
        together. Changes none of them.
        """
        results: list[Trained | None] = [None] * len(forecasters)
        groups: dict[tuple[Shape, int], list[int]] = {}
        for i, (forecaster, rates) in enumerate(zip(forecasters, series, strict=True)):
            if np.isfinite(rates[-forecaster.limit :]).sum() >= forecaster.least:
                groups.setdefault((forecaster.shape, forecaster.rounds), []).append(i)
        for (shape, rounds), members in groups.items():
            known = [filled(series[i][-forecasters[i].limit :]) for i in members]
            ranges = [
                Trained(None, float(k.min()), float(k.max()))
                for k in (k[: tuning_split(len(k))] for k in known)
            ]
            scaled = [r.scaled(k) for r, k in zip(ranges, known, strict=True)]
            weights = train(
                shape,
                Schedule(rounds=rounds),
                scaled,
                [forecasters[i].seed for i in members],
                stopped,
            )
            for i, w, r in zip(members, weights, ranges, strict=True):
                results[i] = Trained(w, r.low, r.high)
        return results

    def forecast(self, recent: Array, horizon: int) -> Forecast:
        if self.trained is None:
            raise NotReady(f"this network is not trained yet; it trains after {self.least} windows")
        known = self.trained.scaled(filled(recent[-self.lookback :]))
        if len(known) < self.lookback:
            raise NotReady(
                f"{len(known)} windows are known; this network reads the last {self.lookback}"
            )
        predict = program(self.shape, Schedule(rounds=self.rounds)).predict
        ahead = np.empty(0, np.float32)
        while len(ahead) < horizon:
            inputs = np.concatenate((known, ahead))[-self.lookback :]
            ahead = np.concatenate((ahead, np.asarray(predict(self.trained.weights, inputs))))
        return Forecast.of(self.trained.rates(ahead[:horizon]))

    def forecast_many(self, windows: Array) -> Array:
        """One forecast per row of ``lookback`` measured rates, all at once; never below 0."""
        if self.trained is None:
            raise NotReady(f"this network is not trained yet; it trains after {self.least} windows")
        many = program(self.shape, Schedule(rounds=self.rounds)).predict_many
        ahead = many(self.trained.weights, self.trained.scaled(windows))
        return np.maximum(self.trained.rates(np.asarray(ahead)), 0.0)

    def state(self) -> dict[str, Any]:
        """Shape, range and weights; restored they give the same forecasts to the last bit."""
        shape = {name: getattr(self, name) for name in SHAPE}
        if self.trained is None:
            return {"shape": shape, "trained": None}
        weights = [np.asarray(w) for w in jax.tree.leaves(self.trained.weights)]
        return {
            "shape": shape,
            "trained": {"low": self.trained.low, "high": self.trained.high, "weights": weights},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Raises ValueError where the weights are not those of such a network."""
        for name in SHAPE:
            setattr(self, name, state["shape"][name])
        self.__post_init__()
        saved = state["trained"]
        if saved is None:
            self.trained = None
            return
        leaves = [np.asarray(w, dtype=np.float32) for w in saved["weights"]]
        if sum(w.size for w in leaves) < self.hidden**2:  # before a huge network is built
            raise ValueError(FOREIGN)
        empty, _ = skeleton(self.shape)
        shapes = [w.shape for w in jax.tree.leaves(empty)]
        if [w.shape for w in leaves] != shapes or not all(np.isfinite(w).all() for w in leaves):
            raise ValueError(FOREIGN)
        weights = jax.tree.unflatten(jax.tree.structure(empty), leaves)
        self.trained = Trained(weights, float(saved["low"]), float(saved["high"]))
