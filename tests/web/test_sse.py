"""The hub: every reader gets every change, or the whole state when it was too slow; nothing grows
with readers.
"""

from __future__ import annotations

import asyncio
from typing import Any

from foretide.web.sse import RING, EventStream, Hub, event


class Reader:
    """An ASGI client by hand: takes what is sent, leaves when told."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.started: dict[str, Any] = {}
        self.ended = False
        self.leave = asyncio.Event()
        self.reading = asyncio.Event()
        self.reading.set()

    async def receive(self) -> dict[str, Any]:
        await self.leave.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await self.reading.wait()
        if message["type"] == "http.response.start":
            self.started = dict(message)
        else:
            self.got.append(message["body"])
            self.ended = not message["more_body"]


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def hub_of(state: list[str], streams: int = 10) -> Hub:
    return Hub(lambda: event("state", state[0].encode()), streams)


def test_a_reader_gets_the_state_then_every_change_and_a_clean_end() -> None:
    async def scene() -> None:
        hub, reader = hub_of(["all"]), Reader()
        stream = asyncio.create_task(EventStream(hub)({}, reader.receive, reader.send))
        await settle()
        hub.publish(b"one")
        await settle()
        hub.publish(b"two")
        hub.publish(b"three")
        await settle()
        assert reader.got == [event("state", b"all"), b"one", b"twothree"]
        assert hub.open == 1
        hub.close()
        await stream
        assert reader.ended
        assert hub.open == 0

    asyncio.run(scene())


def test_a_slow_reader_gets_the_state_anew_and_holds_nobody_up() -> None:
    async def scene() -> None:
        state = ["first"]
        hub, slow, quick = hub_of(state), Reader(), Reader()
        streams = [
            asyncio.create_task(EventStream(hub)({}, r.receive, r.send)) for r in (slow, quick)
        ]
        await settle()
        slow.reading.clear()
        for i in range(RING + 5):
            hub.publish(f"{i};".encode())
            await settle()
        assert b"".join(quick.got[1:]) == b"".join(f"{i};".encode() for i in range(RING + 5))
        state[0] = "later"
        slow.reading.set()
        await settle()
        assert slow.got[-1] == event("state", b"later")
        hub.close()
        await asyncio.gather(*streams)

    asyncio.run(scene())


def test_a_restart_gives_everybody_the_state_encoded_once() -> None:
    async def scene() -> None:
        made = []

        def whole() -> bytes:
            made.append(1)
            return b"state;"

        hub, readers = Hub(whole, 10), [Reader() for _ in range(5)]
        streams = [asyncio.create_task(EventStream(hub)({}, r.receive, r.send)) for r in readers]
        await settle()
        hub.restart()
        await settle()
        assert [r.got for r in readers] == [[b"state;", b"state;"]] * 5
        assert len(made) == 2
        hub.close()
        await asyncio.gather(*streams)

    asyncio.run(scene())


def test_a_reader_that_leaves_frees_its_place() -> None:
    async def scene() -> None:
        hub, reader = hub_of(["all"], streams=1), Reader()
        stream = asyncio.create_task(EventStream(hub)({}, reader.receive, reader.send))
        await settle()
        assert hub.full
        reader.leave.set()
        await stream
        assert not hub.full

    asyncio.run(scene())
