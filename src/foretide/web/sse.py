"""Server-sent events: one shared stream of changes, any number of readers, no queue per reader.

Every reader remembers the number of the last change it sent. Changes are encoded once and kept in a
short ring; a reader that was too slow for the ring gets the whole state instead, so memory stays
bounded whatever readers do.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any

from starlette.types import Receive, Scope, Send

RING = 64
STALLED_S = 60.0


def event(name: str, data: bytes) -> bytes:
    r"""One event; ``data`` is JSON on one line.

    >>> event("tick", b"{}")
    b'event: tick\ndata: {}\n\n'
    """
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


KEEP_ALIVE = b": keep-alive\n\n"


class Hub:
    """Publishes changes to waiting readers. ``whole`` encodes the whole state as an event."""

    def __init__(self, whole: Callable[[], bytes], streams: int) -> None:
        self.streams = streams
        self.open = 0
        self.closed = False
        self._whole = whole
        self._ring: deque[bytes] = deque(maxlen=RING)
        self.number = 0
        self._cached: tuple[int, bytes] | None = None
        self._changed = asyncio.Event()

    @property
    def full(self) -> bool:
        return self.open >= self.streams

    def publish(self, change: bytes) -> None:
        """Give this event to every reader."""
        self._ring.append(change)
        self._advance()

    def restart(self) -> None:
        """Too much changed for single events: every reader gets the whole state."""
        self._ring.clear()
        self._advance()

    def close(self) -> None:
        """Let every stream end."""
        self.closed = True
        self._advance()

    def _advance(self) -> None:
        self.number += 1
        done, self._changed = self._changed, asyncio.Event()
        done.set()

    def since(self, seen: int | None) -> tuple[int, bytes]:
        """What a reader that has seen ``seen`` gets next, and the number it has seen then."""
        missed = self.number - seen if seen is not None else RING + 1
        if missed <= len(self._ring):
            return self.number, b"".join(
                list(self._ring)[len(self._ring) - missed :]
            ) if missed else b""
        if self._cached is None or self._cached[0] != self.number:
            self._cached = (self.number, self._whole())
        return self._cached

    async def wait(self) -> None:
        await self._changed.wait()


class EventStream:
    """The response that carries a hub's events to one reader until it leaves, stalls, or the hub
    closes.
    """

    def __init__(self, hub: Hub) -> None:
        self.hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store"),
        ]
        self.hub.open += 1
        left = asyncio.create_task(_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            sending = asyncio.create_task(self._pump(send))
            await asyncio.wait((left, sending), return_when=asyncio.FIRST_COMPLETED)
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError, TimeoutError, OSError):
                await sending
        finally:
            left.cancel()
            self.hub.open -= 1

    async def _pump(self, send: Send) -> None:
        seen: int | None = None
        while not self.hub.closed:
            if seen == self.hub.number:
                await self.hub.wait()
                continue
            seen, data = self.hub.since(seen)
            async with asyncio.timeout(STALLED_S):
                await send(_body(data, more=True))
        await send(_body(b"", more=False))


def _body(data: bytes, more: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
