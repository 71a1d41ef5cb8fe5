"""How cautious to be: a level that the measured share of events in time moves.

Dual ascent on the price of a late event. With ``late`` the share of a window's events beyond the
target, ``1 - share`` what the promise allows and ``usual`` the events of a window of late,

    level <- clip(level + rate * count / usual * (late - (1 - share)), least, most)

so that a usual window in which all are late raises it by ``rate`` and one without any lowers it by
``rate * (1 - share)``: it rests where the promise is kept exactly, and a burst is answered at once.
The promise is about events, so that a window counts by how many it has. Counted alike, the quiet
windows of a load that comes in bursts made up for bursts that were late, and the promise was broken
for good. 0 plans for the expected rate, 1 for the upper quantile of the forecast, more for rates
beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

FORGETS = 0.01
"""How much a window counts in the usual number of events: the last hundred or so."""


class Level:
    """The level between ``least`` and ``most``; windows that were not measured leave it as it is.

    >>> level = Level(share=0.99)
    >>> level.see(count=100.0, within=50.0)
    >>> level.value
    1.0
    >>> for _ in range(10): level.see(count=100.0, within=100.0)
    >>> round(level.value, 2)
    0.95
    """

    def __init__(
        self,
        share: float = 0.99,
        start: float = 1.0,
        rate: float = 0.5,
        least: float = 0.0,
        most: float = 1.0,
    ) -> None:
        self.share, self.rate, self.least, self.most = share, rate, least, most
        self.value = start
        self._usual = self._known = 0.0

    def see(self, count: float | None, within: float | None) -> None:
        if count is None or within is None or not count > 0 or not math.isfinite(within / count):
            return
        self._known += FORGETS * (1.0 - self._known)
        self._usual += FORGETS / self._known * (count - self._usual)
        late = 1.0 - min(1.0, within / count)
        step = self.rate * count / self._usual * (late - (1.0 - self.share))
        self.value = min(self.most, max(self.least, self.value + step))

    def state(self) -> dict[str, Any]:
        return {"level": self.value, "usual": self._usual, "known": self._known}

    def restore(self, state: Mapping[str, Any]) -> None:
        value = float(state["level"])
        usual, known = (float(state.get(k, 0.0)) for k in ("usual", "known"))
        if not (math.isfinite(value) and 0 <= usual < math.inf and 0 <= known <= 1):
            raise ValueError(f"a level of {value} with {usual} events cannot be restored")
        self.value = min(self.most, max(self.least, value))
        self._usual, self._known = usual, known
