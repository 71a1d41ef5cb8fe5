"""JournalWatch: one task per server that follows the journal and the mode switch and publishes
changes to the hub.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from foretide.control import asked_mode, control_path
from foretide.model import Decision
from foretide.web.decisions import read_at, view
from foretide.web.records import Columns, DecisionView, Now, RunInfo, State
from foretide.web.sse import KEEP_ALIVE, Hub, event
from foretide.web.state import Journalled, RunState, nothing_yet
from foretide.web.tail import Tail

POLL_S = 0.25
KEEP_ALIVE_S = 15.0
PROGRESS_S = 1.0
FEED = 30
TICK_POINTS = 16
QUIET_S = 30.0
QUIET_WINDOWS = 5

log = logging.getLogger(__name__)
_encoder = msgspec.json.Encoder()


class WholeState(msgspec.Struct):
    """The first event of a stream: all that the page needs to draw itself."""

    run: RunInfo | None
    now: Now
    recent: Columns | None
    decisions: list[DecisionView]


class Tick(msgspec.Struct):
    """What came since the event before: new points of the recent series, new notable decisions, and
    where the run stands.
    """

    now: Now
    points: Columns
    decisions: list[DecisionView]


class JournalWatch:
    """The journal as the server sees it. ``clock`` gives UTC seconds, for whether the file still
    grows.
    """

    def __init__(
        self, journal: Path, clock: Callable[[], float], streams: int, control: bool = True
    ) -> None:
        self.tail = Tail(journal)
        self.control = control_path(journal) if control else None
        self.hub = Hub(self._whole, streams)
        self._clock = clock
        self._file = Journalled()

    def state(self) -> State:
        """What ``/api/state`` answers."""
        run = self.tail.state
        if run is None:
            return State(None, nothing_yet(self._file))
        return State(run.info(), run.now(self._file, self.tail.index.total))

    def look(self) -> Journalled:
        """The present state of the journal file and the mode switch."""
        state = self.tail.state
        quiet_s = max(QUIET_S, QUIET_WINDOWS * state.run.window_s) if state else QUIET_S
        return Journalled(
            asked_mode(self.control) if self.control else None,
            self._clock() - self.tail.grown_at < quiet_s,
            self.tail.read_share,
            self.tail.skipped,
        )

    def refresh(self) -> bool:
        """Look again; whether something but the journal's lines changed."""
        before, self._file = self._file, self.look()
        return before != self._file

    async def follow(self) -> None:
        """Until cancelled: read what is new and publish it. A failure is logged and the next look
        starts afresh: one strange line must not blind the page for the rest of a run.
        """
        idle_s = 0.0
        while True:
            try:
                came = await self._look_once(idle_s >= KEEP_ALIVE_S)
            except Exception:
                log.exception("could not follow %s", self.tail.path)
                came = False
            idle_s = 0.0 if came or idle_s >= KEEP_ALIVE_S else idle_s + POLL_S
            await asyncio.sleep(POLL_S)

    async def _look_once(self, keep_alive: bool) -> bool:
        """Read to the journal's end, in slices between which requests are served; whether something
        came.
        """
        before, known = self.tail.state, self.tail.index.total
        loop = asyncio.get_running_loop()
        shown_at = loop.time()
        while self.tail.advance():
            await asyncio.sleep(0)
            if self.tail.behind and loop.time() - shown_at > PROGRESS_S:
                shown_at = loop.time()
                self.refresh()
                self.hub.restart()
        self.publish(before, known, keep_alive)
        return self.tail.index.total != known

    def publish(self, before: RunState | None, known: int, keep_alive: bool = False) -> None:
        """Publish what came after decision number ``known``."""
        changed = self.refresh()
        state, new = self.tail.state, self.tail.index.total - known
        if state is not before or new > TICK_POINTS or new < 0:
            self.hub.restart()
        elif state is not None and (new or changed):
            points = (
                state.columns("recent", last=new) if new else Columns("recent", None, 1, [], {})
            )
            fresh = [
                view(n, d, self._shared)
                for n in self.tail.index.after(known, changes=True)
                if (d := self._read(n)) is not None
            ]
            tick = Tick(state.now(self._file, self.tail.index.total), points, fresh)
            self.hub.publish(event("tick", _encoder.encode(tick)))
        elif keep_alive:
            self.hub.publish(KEEP_ALIVE)

    @property
    def _shared(self) -> bool:
        return self.tail.state is not None and self.tail.state.shared_slots

    def _read(self, seq: int) -> Decision | None:
        return read_at(self.tail.path, self.tail.index.offset(seq))

    def _whole(self) -> bytes:
        run, state = self.tail.state, self.state()
        newest = self.tail.index.page(None, None, FEED, changes=True)
        feed = [view(n, d, self._shared) for n in newest if (d := self._read(n)) is not None]
        return event(
            "state",
            _encoder.encode(
                WholeState(state.run, state.now, run.columns("recent") if run else None, feed)
            ),
        )
