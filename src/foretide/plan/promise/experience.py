"""What the load so far teaches: which rules would have kept the promise, and how far the load rose
above its forecasts. Owns when rules are replayed; what they are is ``promise.rehearsal``'s.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np

from foretide.history import History
from foretide.model import Array
from foretide.plan.promise.due import evened, owed
from foretide.plan.promise.past import Past
from foretide.plan.promise.rehearsal import Rules, Setting, averages, rehearse
from foretide.plan.promise.season import ROWS, recurring, repeating
from foretide.plan.promise.terms import Terms

MEMORY = 4.0
"""Break-even times over which it is counted how often a replica was needed."""
TICK_S = 1e-3
"""Instants nearer than this are the same: a double holds UTC seconds to less than a microsecond."""
RECENT = 300
"""Windows from which the shape of bursts is taken."""
SLOW_S = 60.0
"""The slow window: rules are replayed once in it."""
SLOW_WINDOWS = 12
"""Rules are replayed once in SLOW_S, and not more often than once in so many windows."""
MORE = 0.02
"""Rules are not replayed before so much more was seen: they would hardly change."""
REPLAYED = 6_000
"""Windows on which rules are replayed: bursts that come once in an hour count."""
LOOKED_BACK = 20_160
"""Windows among which those are, because an earlier run may have ended long ago. Windows that were
not measured are left out: whatever stood for them would be a load that never came.
"""
ENOUGH = 40
"""Windows beyond the lead time with which rules are replayed first."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """The window in which capacity asked for now works: ``lead`` windows from now. Events may wait
    ``delay`` windows, an event/s keeps ``per_rate`` replicas of the busiest operator busy, and
    ``load`` events/s are expected. Operators have these ``shares`` of the busiest one's work, where
    their replicas are rounded together (None: each is rounded alone).
    """

    lead: int
    delay: float
    per_rate: float
    load: float
    shares: Array | None = None


@dataclass(frozen=True, slots=True)
class Learned:
    """The rules replayed at ``at``, for a lead time and a season of so many windows."""

    at: float
    lead: int
    season: int | None
    rules: Rules

    @property
    def follows_season(self) -> bool:
        """Whether rules that know the season count for more than all others together."""
        weights = self.rules.weights
        return self.season is not None and bool(weights[-ROWS:].sum() > 0.5 * weights.sum())


class Experience:
    """Rules that keep the ``terms`` on the load so far."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._made_at, self._expected = array("d"), array("d")
        self._learned: Learned | None = None
        self.past = Past()

    def rate(self, history: History, horizon: Horizon, level: float) -> float | None:
        """Events/s of all sources that the rules ask for; None while there is too little history.
        The level says how much lateness they may allow themselves.
        """
        self._note(history.now, horizon.load)
        lead, whole = horizon.lead, self.past.load(history, LOOKED_BACK)
        measured = np.flatnonzero(np.isfinite(whole))[-REPLAYED:]
        if len(measured) < ENOUGH + lead or horizon.per_rate <= 0:
            return None
        load, last, window_s = whole[measured], self._learned, history.window_s
        slow_s = max(SLOW_S, max(SLOW_WINDOWS, int(MORE * len(load))) * window_s)
        stands = last and last.lead == lead and history.now < last.at + slow_s - TICK_S
        season = last.season if last else None
        if not stands:
            season = repeating(whole, lead, season)
        own = self._own(history, len(whole))
        if season is not None:
            own = np.vstack([own, recurring(whole, lead, season)])
        rows = averages(load, lead, own[..., measured])
        if not last or not stands:
            busy, setting = horizon.per_rate, self._setting(horizon, window_s, level)
            rules = rehearse(load * busy, rows * busy, setting, window_s)
            last = self._learned = Learned(history.now, lead, season, rules)
        return last.rules.rate(rows)

    def news(self, now: float) -> Learned | None:
        """The rules, in the step in which they were replayed; None in the others."""
        return self._learned if self._learned and self._learned.at == now else None

    def _setting(self, horizon: Horizon, window_s: float, level: float) -> Setting:
        allowed = (1.0 - self.terms.share) * min(1.25, max(0.1, 1.25 - 0.75 * level))
        p = self.terms.prices
        change = 0.5 * (p.up + p.down) / max(p.replica_second * window_s, 1e-9)
        late, drain = horizon.delay / self.terms.slack, self.terms.drain_s / window_s
        delay = horizon.delay
        if not horizon.lead:
            delay, late = evened(delay, level), late * owed(level)
        return Setting(
            horizon.lead,
            delay,
            allowed,
            change,
            self.terms.usual,
            drain,
            late,
            horizon.shares,
            self.terms.late_price,
        )

    def surprise(self, history: History, lead: int) -> float | None:
        """How far the load rose above its forecasts lately, as a factor of at least 1; None until
        forecasts of a break-even time met their windows.
        """
        window_s, keep_s = history.window_s, self.terms.prices.break_even_s
        since, load = history.now - MEMORY * keep_s - TICK_S, history.load(RECENT)
        recent = slice(-RECENT, None)
        forecasts = zip(self._made_at[recent], self._expected[recent], strict=True)
        met = [(made + (lead + 1) * window_s, expected) for made, expected in forecasts]
        factors = [
            load[-1 - back] / max(expected, 1e-12)
            for at, expected in met
            if at >= since and 0 <= (back := round((history.now - at) / window_s)) < len(load)
        ]
        known = [f for f in factors if np.isfinite(f)]
        return max(1.0, *known) if known and len(known) * window_s >= keep_s else None

    def _note(self, now: float, expected: float) -> None:
        """Keep a forecast; trimmed in bulk, since it is read in every step."""
        self._made_at.append(now)
        self._expected.append(expected)
        if len(self._made_at) >= 2 * REPLAYED:
            del self._made_at[:-REPLAYED], self._expected[:-REPLAYED]

    def _own(self, history: History, windows: int) -> Array:
        """The forecasts made at the end of each of the last windows; NaN where there was none."""
        made_at, expected = np.array(self._made_at), np.array(self._expected)
        back = np.round((history.now - made_at) / history.window_s).astype(np.int64)
        own, known = np.full(windows, np.nan), (back >= 0) & (back < windows)
        own[windows - 1 - back[known]] = expected[known]
        return own
