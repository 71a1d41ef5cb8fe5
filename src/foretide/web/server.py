"""serve: the dashboard in a thread of its own, next to a loop or alone."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import uvicorn

from foretide.errors import InvalidConfig
from foretide.web.app import application
from foretide.web.connections import BoundedProtocol, Connections
from foretide.web.security import Token, is_loopback
from foretide.web.watch import JournalWatch

STREAMS = 256
STOP_S = 5.0


@dataclass(frozen=True, slots=True)
class Served:
    """Where the dashboard is, and the token that changing the mode needs (and reading too, when
    ``private``).
    """

    url: str
    token: str = field(repr=False)
    private: bool = False

    def __str__(self) -> str:
        return self.url


class _Server(uvicorn.Server):
    """Ends open streams first, so that a shutdown never waits for a reader."""

    watch: JournalWatch

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.watch.hub.close()
        await super().shutdown(sockets)


def journal_file(path: Path | str) -> Path:
    """The journal of a run: the file itself, or ``journal.jsonl`` in a run's folder.

    >>> journal_file("runs/x/other.jsonl").name
    'other.jsonl'
    """
    given = Path(path)
    return given / "journal.jsonl" if given.is_dir() else given


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind)
    except OSError as error:
        raise InvalidConfig(
            f"the address '{host}' is not known here: {error.strerror}; give an address of this "
            "machine"
        ) from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(1024)
    except OSError as error:
        sock.close()
        raise InvalidConfig(
            f"cannot serve on {host}, port {port}: {error.strerror}; choose another port, or 0 for "
            "any free one"
        ) from error
    return sock


@contextmanager
def serve(
    journal: Path | str,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: str | None = None,
    control: bool = True,
) -> Iterator[Served]:
    """Serve the dashboard of a journal (or of a run's folder) while the block runs.

    ``token`` is made when none is given. On any address but loopback reading needs it too.
    ``control=False`` makes a dashboard that only reads. The journal may still be growing, or not be
    there yet.

    >>> import tempfile, urllib.request
    >>> with tempfile.TemporaryDirectory() as folder, serve(folder, port=0) as site:
    ...     urllib.request.urlopen(f"{site.url}/healthz").read()
    b'{"ok":true,"read_share":1.0}'
    """
    secret = Token.new() if token is None else Token(token)
    private = not is_loopback(host)
    sock = _bind(host, port)
    watch = JournalWatch(journal_file(journal), time.time, STREAMS, control)
    config = uvicorn.Config(
        application(watch, secret, private),
        access_log=False,
        log_level="warning",
        log_config=None,
        server_header=False,
        ws="none",
        lifespan="on",
        http=partial(BoundedProtocol, registry=Connections()),  # type: ignore[arg-type]
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=16384,
    )
    server = _Server(config)
    server.watch = watch
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [sock]}, name="foretide-dashboard", daemon=True
    )
    thread.start()
    try:
        _started(server, thread)
        shown = f"[{host}]" if ":" in host else host
        yield Served(f"http://{shown}:{sock.getsockname()[1]}", secret.text, private)
    finally:
        server.should_exit = True
        thread.join(STOP_S)
        sock.close()


def _started(server: uvicorn.Server, thread: threading.Thread) -> None:
    while not server.started:
        thread.join(0.01)
        if not thread.is_alive():
            raise InvalidConfig("the dashboard's server did not start; its log says why")
