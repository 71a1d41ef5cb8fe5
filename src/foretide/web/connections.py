"""Connections: idle and half-sent ones never keep a reader out.

A request must be complete a few seconds after its connection opened. When there are too many
connections, those without a request in progress make room, oldest first, from the address that has
most of them. Only requests in progress count against a reader.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_S = 10.0
CONNECTIONS = 448
PER_ADDRESS = 320


class Connections:
    """The open connections of one server, those without a request in progress in order of age."""

    def __init__(
        self, limit: int = CONNECTIONS, per_address: int = PER_ADDRESS, header_s: float = HEADER_S
    ) -> None:
        self.limit, self.per_address, self.header_s = limit, per_address, header_s
        self._all: dict[BoundedProtocol, str] = {}
        self._idle: dict[BoundedProtocol, None] = {}
        self._by_address: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._all)

    def add(self, connection: BoundedProtocol, address: str) -> None:
        """A new connection; another one makes room for it where there are too many."""
        self._all[connection] = address
        self._by_address[address] += 1
        if self._by_address[address] > self.per_address:
            self._make_room(address)
        elif len(self._all) > self.limit:
            self._make_room(max(self._by_address, key=self._by_address.__getitem__))
        if connection in self._all:
            self._idle[connection] = None

    def _make_room(self, address: str) -> None:
        """Close the oldest connection of the address that has no request in progress; where all
        have one, the newest connection goes.
        """
        oldest = next((c for c in self._idle if self._all[c] == address), None)
        victim = next(reversed(self._all)) if oldest is None else oldest
        self.remove(victim)
        victim.drop()

    def busy(self, connection: BoundedProtocol) -> None:
        """A request has arrived and is in progress."""
        self._idle.pop(connection, None)

    def idle(self, connection: BoundedProtocol) -> None:
        """The request was answered."""
        if connection in self._all:
            self._idle[connection] = None

    def remove(self, connection: BoundedProtocol) -> None:
        address = self._all.pop(connection, None)
        if address is None:
            return
        self._idle.pop(connection, None)
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP protocol with a limit on the time that a request may take to arrive."""

    def __init__(self, *arguments: Any, registry: Connections, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._registry = registry
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_request()
        self._registry.add(self, self.client[0] if self.client else "")

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
            self._registry.busy(self)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing():
            self._registry.idle(self)
            self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._registry.remove(self)
        super().connection_lost(exc)

    def drop(self) -> None:
        """Close at once: nothing waits to be sent to a connection without a request."""
        self._stop_waiting()
        self.transport.abort()

    def _await_request(self) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(self._registry.header_s, self.drop)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
