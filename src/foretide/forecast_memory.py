"""What the forecasters of a loop learned and the rates that they saw, so that a restarted run
forecasts in its first window.

Owns when a kept memory may be used: for the same forecasters and windows of the same length. The
file is ``foretide.learned``'s.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foretide.autoscaler import Autoscaler
from foretide.parts import Learner

log = logging.getLogger(__name__)

WINDOWS = 20_160
"""Windows whose rates are kept: two weeks of minutes."""


@dataclass(frozen=True)
class ForecastMemory:
    """The memory of a loop that begins at ``now``. ``forecasts_as`` describes the forecasters; a
    memory of others is left unused.
    """

    loop: Autoscaler
    forecasts_as: str
    window_s: float
    now: float

    def state(self) -> dict[str, Any]:
        learned = {
            name: forecaster.state()
            for name, forecaster in self.loop.forecasters.items()
            if isinstance(forecaster, Learner)
        }
        return {
            "forecasts_as": self.forecasts_as,
            "window_s": self.window_s,
            "forecasters": learned,
            "history": self.loop.history.state(WINDOWS),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        if state["window_s"] != self.window_s:
            log.warning(
                "forecasters start anew: the last run had windows of %g s", state["window_s"]
            )
            return
        self.loop.history.restore(state["history"], self.now, self.window_s)
        if state["forecasts_as"] != self.forecasts_as:
            log.warning("forecasters start anew: the last run had others")
            return
        for name, learned in state["forecasters"].items():
            if name not in self.loop.topology.names:
                continue
            forecaster = self.loop.forecaster_of(name)
            if isinstance(forecaster, Learner):
                forecaster.restore(learned)
