"""What was promised, and what it may cost: the planner's settings as one record."""

from __future__ import annotations

from dataclasses import dataclass

from foretide.errors import InvalidConfig
from foretide.model import Prices


@dataclass(frozen=True, slots=True)
class Terms:
    """``share`` of the events within ``target_s`` seconds at the least cost by ``prices``.

    ``slack`` is the part of the target that waiting may plan to use; the rest is for what no model
    foresees. ``quantile`` is that of the forecast's upper bound. A queue longer than ``usual``
    times that part of the target is worked off within ``drain`` targets, beside what arrives. Work
    that is late beyond the allowance counts as ``late_price`` times what doing it costs.
    """

    target_s: float
    share: float
    prices: Prices
    slack: float
    quantile: float
    usual: float
    drain: float
    late_price: float

    def __post_init__(self) -> None:
        if not self.target_s > 0:
            raise InvalidConfig(
                f"target_s {self.target_s:g}: a latency target is more than 0 seconds"
            )
        if not 0 < self.share < 1:
            raise InvalidConfig(
                f"share {self.share:g}: promise a share between 0 and 1, such as 0.99"
            )
        if not 0 < self.slack <= 1:
            raise InvalidConfig(f"slack {self.slack:g}: need 0 < slack <= 1")
        if not self.late_price > 1:
            raise InvalidConfig(
                f"late_price {self.late_price:g}: a late event costs more than serving it, so more "
                "than 1"
            )

    @property
    def drain_s(self) -> float:
        return self.drain * self.target_s
