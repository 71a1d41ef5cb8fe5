"""The reward table of FUGU's reinforcement learning: utilization -> expected reward of scale in, no
action, scale out.

Owns SARSA(0), the learning rate and monotonicity (section IV-C); what an action does to hosts is
not known here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

Action = Literal["in", "none", "out"]
ACTIONS: Final[tuple[Action, ...]] = ("in", "none", "out")
IN, NONE, OUT = 0, 1, 2


def sarsa(q: float, reward: float, q_next: float, alpha: float, beta: float) -> float:
    """The update ``(1 - alpha)*q + alpha*(reward + beta*q_next)`` of FUGU, section IV-C.

    The paper's worked example, with its rounded reward:

    >>> round(sarsa(0.85, 0.66, 0.5, alpha=0.2, beta=0.1), 3)
    0.822
    """
    return (1 - alpha) * q + alpha * (reward + beta * q_next)


def error(utilization: float, target: float) -> float:
    """``|target - utilization| / target``, the utilization error."""
    return abs(target - utilization) / target


@dataclass(frozen=True, slots=True)
class Learning:
    """``impact`` and ``duration`` set the learning rate ``impact*duration/(duration + visits)``,
    ``beta`` weighs the future, ``penalty`` is the reward of a decision that packing could not carry
    out (the paper only says that it is negative).
    """

    impact: float = 0.2
    duration: float = 80.0
    beta: float = 0.1
    penalty: float = -1.0

    def rate(self, visits: int) -> float:
        return self.impact * self.duration / (self.duration + visits)


# What the printed rows add to straight lines: distance from the target (from ``upper`` for scale
# out), and the difference there.
_NONE_EXTRA = ((0.2, 0.3, 0.4), (0.0, -0.05, 0.0))
_IN_EXTRA = ((0.1, 0.2, 0.3, 0.4), (0.0, 0.03, 0.05, 0.07))
_OUT_EXTRA = ((0.1, 0.2), (0.0, 0.05))


class RewardTable:
    """One host's table, in rows of ``step`` utilization from 0 to 1.

    It starts from the thresholds: up to ``lower`` scale in is best, from ``upper`` on scale out,
    between them no action. The paper prints four rows of one table (its table Ia: target 0.6,
    utilization 0.7 to 1.0), and with the default thresholds ours has them to the digit. The rest
    continues their slopes: no action is worth ``1 - 1.5*|u - target|`` up to 0.2 above the target,
    scale out moves with ``upper`` and scale in with ``lower``, where it wins by 0.05.
    """

    def __init__(
        self, lower: float = 0.3, upper: float = 0.8, target: float = 0.6, step: float = 0.05
    ) -> None:
        self.step = step
        self.target = target
        u = np.arange(round(1 / step) + 1) * step
        none = 1 - 1.5 * np.abs(u - target)
        none = none + np.interp(u - target, *_NONE_EXTRA)
        at_lower = float(np.interp(lower, u, none))
        scale_in = at_lower + 0.05 + 0.5 * (lower - u) + np.interp(u - target, *_IN_EXTRA)
        scale_out = 0.85 + 0.5 * (u - upper) + np.interp(u - upper, *_OUT_EXTRA)
        low, high = u <= lower + 1e-9, u >= upper - 1e-9
        scale_in = np.where(
            low, np.maximum(scale_in, none + 0.05), np.minimum(scale_in, none - 0.05)
        )
        scale_out = np.where(
            high, np.maximum(scale_out, none + 0.05), np.minimum(scale_out, none - 0.05)
        )
        self.values = np.column_stack((scale_in, none, scale_out))
        self.visits = np.zeros(len(u), dtype=int)

    def row(self, utilization: float) -> int:
        """The nearest row; above 1 the last one."""
        return min(math.floor(utilization / self.step + 0.5), len(self.values) - 1)

    def best(self, utilization: float) -> Action:
        """The action of highest expected reward; on a tie no action, else scale out."""
        return ACTIONS[self._best(self.row(utilization))]

    def _best(self, row: int) -> int:
        values = self.values[row]
        return max((NONE, OUT, IN), key=lambda a: float(values[a]))  # max keeps the first of equals

    def learn(
        self, before: float, action: Action, after: float, learning: Learning, failed: bool = False
    ) -> None:
        """Update the entry of (before, action) from the utilization that followed; a failed action
        earns the penalty.

        ``reward = 1 + error(before) - error(after)``; the future is the value of the same action at
        ``after``, as the paper computes its example (there Q' is 0.5, the entry of the action just
        taken, not of the best one).
        """
        row, column = self.row(before), ACTIONS.index(action)
        reward = (
            learning.penalty
            if failed
            else 1 + error(before, self.target) - error(after, self.target)
        )
        q_next = float(self.values[self.row(after), column])
        rate = learning.rate(int(self.visits[row]))
        self.values[row, column] = sarsa(
            float(self.values[row, column]), reward, q_next, rate, learning.beta
        )
        self.visits[row] += 1
        self._keep_monotonic(row)

    def _keep_monotonic(self, row: int) -> None:
        """Where scale out is best, scale in is best nowhere above; where scale in is best, scale
        out is best nowhere below.

        Only ``row`` changed, so it is taken as right: offending entries come down to that row's no
        action.
        """
        best = self._best(row)
        if best == OUT:
            offending, wrong = range(row + 1, len(self.values)), IN
        elif best == IN:
            offending, wrong = range(row), OUT
        else:
            return
        for other in offending:
            if self._best(other) == wrong:
                self.values[other, wrong] = self.values[other, NONE]

    def is_monotonic(self) -> bool:
        bests = [self._best(i) for i in range(len(self.values))]
        highest_in = max((i for i, b in enumerate(bests) if b == IN), default=-1)
        return all(b != OUT for b in bests[: max(0, highest_in)])

    def state(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "target": self.target,
            "values": self.values.tolist(),
            "visits": self.visits.tolist(),
        }

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> RewardTable:
        table = cls(target=state["target"], step=state["step"])
        table.values = np.array(state["values"], dtype=float)
        table.visits = np.array(state["visits"], dtype=int)
        return table
