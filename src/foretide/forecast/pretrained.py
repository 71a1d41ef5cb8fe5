"""Pretrained forecasters: what ``foretide train`` writes and ``--pretrained`` reads.

Owns the file. It holds the model's name and constants, what the model learned, and the end of the
load that it learned from, which is also the past of the run that uses it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from foretide.errors import ForetideError, InvalidConfig, NotReady
from foretide.files import replace_file
from foretide.forecast import FORECASTERS
from foretide.forecast.state_file import decoded, encoded
from foretide.load import Load
from foretide.model import Array
from foretide.parts import Forecaster, Learner

KIND = "foretide pretrained forecaster"
KEPT = 20_160
"""Windows of the load that are kept: two weeks of minutes."""
SAME_WINDOW = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Pretrained:
    """A model that learned from ``rates``, one per window of ``window_s`` seconds. ``ended_at`` is
    the instant at which a dated load ended.
    """

    model: str
    constants: Mapping[str, Any]
    state: Mapping[str, Any]
    window_s: float
    rates: Array
    load: str
    ended_at: float | None = None

    def build(self) -> Forecaster:
        """A new forecaster that knows what was learned."""
        forecaster = FORECASTERS.build(self.model, **self.constants)
        if isinstance(forecaster, Learner):
            forecaster.restore(self.state)
        return forecaster

    @property
    def digest(self) -> str:
        """The same for the same model that learned the same."""
        return hashlib.sha256(encoded({"model": self.model, "state": self.state})).hexdigest()[:16]

    @property
    def past(self) -> Load:
        """The end of the load that it learned from."""
        counts = np.nan_to_num(self.rates) * self.window_s
        began = None if self.ended_at is None else self.ended_at - len(counts) * self.window_s
        return Load(self.load, counts, self.window_s, began)

    def check_window(self, window_s: float) -> None:
        """Raise for windows of another length: what was learned are steps of one length."""
        if abs(window_s - self.window_s) > SAME_WINDOW * self.window_s:
            raise InvalidConfig(
                f"model '{self.model}' was trained on windows of {self.window_s:g} s and the run "
                f"has windows of {window_s:g} s: run with --window {self.window_s:g}, or train "
                f"with --window {window_s:g}"
            )


def train(load: Load, model: str, window_s: float, **constants: Any) -> Pretrained:
    """Let a model learn from a whole load in windows of ``window_s`` seconds."""
    rates = load.rates(window_s)
    forecaster = FORECASTERS.build(model, **constants)
    forecaster.fit(rates)
    try:
        forecaster.forecast(rates, 1)
    except NotReady as error:
        raise InvalidConfig(
            f"load '{load.name}' has {len(rates)} windows of {window_s:g} s, too few to train "
            f"model '{model}': {error}"
        ) from error
    state = forecaster.state() if isinstance(forecaster, Learner) else {}
    ended_at = None if load.started_at is None else load.started_at + load.duration_s
    return Pretrained(model, constants, state, window_s, rates[-KEPT:], load.name, ended_at)


def write_pretrained(path: Path, trained: Pretrained) -> None:
    """Replace the file whole."""
    content = encoded(
        {
            "kind": KIND,
            "version": 1,
            "model": trained.model,
            "constants": trained.constants,
            "state": trained.state,
            "window_s": trained.window_s,
            "rates": trained.rates,
            "load": trained.load,
            "ended_at": trained.ended_at,
        }
    )
    try:
        replace_file(path, content)
    except OSError as error:
        raise InvalidConfig(
            f"cannot write {path}: {error.strerror}; choose a file you can write to"
        ) from error


def read_pretrained(path: Path) -> Pretrained:
    """The forecaster that a file holds. Raises InvalidConfig, whatever is wrong with the file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidConfig(f"cannot read {path}: {error.strerror}") from error
    try:
        saved = decoded(content)
        if saved.get("kind") != KIND or saved.get("version") != 1:
            raise ValueError("it is not a pretrained forecaster")
        trained = Pretrained(
            str(saved["model"]),
            dict(saved["constants"]),
            dict(saved["state"]),
            float(saved["window_s"]),
            np.asarray(saved["rates"], dtype=float),
            str(saved["load"]),
            None if saved["ended_at"] is None else float(saved["ended_at"]),
        )
        _ = trained.past  # checks rates and window
        trained.build()
    except ForetideError as error:
        raise InvalidConfig(f"cannot use {path}: {error}{WRITE_ANEW}") from error
    except Exception as error:  # what the file holds reaches the forecaster's own code
        raise InvalidConfig(
            f"cannot use {path}: {type(error).__name__}: {error}{WRITE_ANEW}"
        ) from error
    return trained


WRITE_ANEW = "; write it anew with: foretide train LOAD --model MODEL -o FILE"
