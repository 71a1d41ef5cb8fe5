"""A headless chromium for the tests that look at pages: no request may leave the host, no console
error may pass unseen.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

ARTIFACTS = Path(__file__).parent.parent.parent / "artifacts"
FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
LOCAL = {"127.0.0.1", "localhost", "[::1]", "::1"}


@dataclass
class Seen:
    """What a page did while it was watched."""

    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def watch(self, page: Page) -> None:
        def console(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning"):
                self.errors.append(f"{message.type}: {message.text}")

        def request(made: Request) -> None:
            host = urlsplit(made.url).hostname
            if host:  # data:, blob: and file: have none and go nowhere
                self.hosts.add(host)

        page.on("console", console)
        page.on("pageerror", lambda error: self.errors.append(f"exception: {error}"))
        page.on("request", request)

    @property
    def foreign(self) -> set[str]:
        """Hosts other than this one that the page asked."""
        return self.hosts - LOCAL


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's chromium; a test without it is skipped and says so."""
    found = shutil.which("chromium")
    if found is None:
        pytest.skip(
            "no chromium on this machine: apt-get install chromium to run the browser tests"
        )
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=found, args=list(FLAGS), chromium_sandbox=False)
        try:
            yield browser
        finally:
            browser.close()
