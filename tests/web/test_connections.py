"""Idle and half-sent connections, hundreds of them, against a real server."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from foretide.web import serve
from foretide.web import server as serving
from foretide.web.connections import Connections
from foretide.web.server import Served

pytestmark = pytest.mark.timeout(60)
HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
HALF_BODY = (
    b"PUT /api/mode HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 100\r\nAuthorization: Bearer wrong\r\n\r\n{"
)


@contextlib.contextmanager
def opened(site: Served, count: int, sent: bytes) -> Iterator[list[socket.socket]]:
    port = int(site.url.rpartition(":")[2])
    with contextlib.ExitStack() as stack:
        sockets = []
        for _ in range(count):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=120))
            with contextlib.suppress(OSError):  # it may have made room already
                one.sendall(sent)
            sockets.append(one)
        yield sockets


@pytest.mark.parametrize("sent", [b"", HALF, HALF_BODY], ids=["idle", "half header", "half body"])
def test_readers_are_served_beside_400_connections_that_ask_nothing(
    tmp_path: Path, sent: bytes
) -> None:
    with serve(tmp_path, port=0) as site, opened(site, 400, sent):
        for path in ("/", "/static/style.css", "/api/state", "/healthz") * 5:
            assert httpx.get(f"{site}{path}", timeout=120).status_code == 200, path
        with httpx.stream("GET", f"{site}/api/stream", timeout=120) as answer:
            assert next(answer.iter_lines()) == "event: state"


def test_a_request_that_does_not_arrive_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "Connections", lambda: Connections(header_s=0.05))
    with serve(tmp_path, port=0) as site, opened(site, 3, HALF) as sockets:
        for one in sockets:
            with contextlib.suppress(ConnectionResetError):
                assert one.recv(1) == b""  # closed by the server, without an answer


def test_a_keep_alive_connection_serves_request_after_request(tmp_path: Path) -> None:
    with serve(tmp_path, port=0) as site, httpx.Client(timeout=120) as client:
        assert [client.get(f"{site}/healthz").status_code for _ in range(5)] == [200] * 5


class Fake:
    """A connection without a network."""

    def __init__(self) -> None:
        self.dropped = False

    def drop(self) -> None:
        self.dropped = True


def test_the_oldest_idle_connection_of_the_greediest_address_makes_room() -> None:
    connections = Connections(limit=3, per_address=10)
    greedy, streaming, other, fresh = Fake(), Fake(), Fake(), Fake()
    connections.add(streaming, "a")  # type: ignore[arg-type]
    connections.busy(streaming)  # type: ignore[arg-type]
    connections.add(greedy, "a")  # type: ignore[arg-type]
    connections.add(other, "b")  # type: ignore[arg-type]
    connections.add(fresh, "b")  # type: ignore[arg-type]
    assert [c.dropped for c in (greedy, streaming, other, fresh)] == [True, False, False, False]
    assert len(connections) == 3


def test_one_address_has_a_limit_of_its_own_and_requests_in_progress_stay() -> None:
    connections = Connections(limit=100, per_address=2)
    busy = [Fake(), Fake()]
    for one in busy:
        connections.add(one, "a")  # type: ignore[arg-type]
        connections.busy(one)  # type: ignore[arg-type]
    third, elsewhere = Fake(), Fake()
    connections.add(third, "a")  # type: ignore[arg-type]
    connections.add(elsewhere, "b")  # type: ignore[arg-type]
    assert [c.dropped for c in (*busy, third, elsewhere)] == [False, False, True, False]
