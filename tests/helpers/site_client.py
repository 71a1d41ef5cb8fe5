"""The dashboard's application without a network: a journal, a watch, a client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.types import ASGIApp
from tweets_world import tweets

from foretide.control import ModeSwitch
from foretide.web.app import application
from foretide.web.security import Token
from foretide.web.watch import JournalWatch

TOKEN = "a-token-for-the-tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


class Client:
    """Asks the application in this process; an exception that escapes it fails the test."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.ask("GET", path, **more)

    def put(self, path: str, **more: Any) -> httpx.Response:
        return self.ask("PUT", path, **more)

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def request() -> httpx.Response:
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(self.app), base_url="http://127.0.0.1"
            ) as client:
                return await client.request(method, path, **more)

        return asyncio.run(request())


@contextmanager
def site(
    folder: Path,
    windows: int = 20,
    private: bool = False,
    switch: bool = True,
    control: bool = True,
) -> Iterator[Client]:
    """A run of so many windows, all read; the clock says it was written just now."""
    journal = folder / "journal.jsonl"
    if windows:
        tweets(journal, windows)
    listening = ModeSwitch(folder / "control.json", "act") if switch else None
    watch = JournalWatch(journal, lambda: watch.tail.grown_at, streams=2, control=control)
    watch.tail.advance()
    watch.refresh()
    yield Client(application(watch, Token(TOKEN), private))
    if listening:
        listening.close()
