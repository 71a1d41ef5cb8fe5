"""Who may ask what: tokens, addresses, sizes and response headers. One ASGI layer around everything
else.

A token is compared in constant time, travels only in the Authorization header, and is never logged.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from dataclasses import dataclass, field

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foretide.errors import InvalidConfig
from foretide.web.records import Problem

BODY_LIMIT_BYTES = 4096
SHORTEST_TOKEN = 16
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> [is_loopback(h) for h in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Token:
    """A shared secret. Its text appears in no representation of it."""

    text: str = field(repr=False)

    def __post_init__(self) -> None:
        if (
            len(self.text) < SHORTEST_TOKEN
            or not self.text.isascii()
            or not self.text.isprintable()
            or " " in self.text
        ):
            raise InvalidConfig(
                f"the token must be at least {SHORTEST_TOKEN} printable ASCII characters without "
                "spaces; "
                "leave it out to have one made for you"
            )

    @classmethod
    def new(cls) -> Token:
        return cls(secrets.token_urlsafe(24))

    def admits(self, headers: Headers) -> bool:
        """Whether the Authorization header carries this token; takes as long for a near miss as for
        nonsense.
        """
        scheme, _, given = headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(_digest(given.strip()), _digest(self.text))
        return same and scheme.lower() == "bearer"


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def refusal(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    """A refusal as every client gets it: a JSON object with one sentence."""
    return Response(msgspec.json.encode(Problem(sentence)), status, headers, "application/json")


@dataclass
class Gate:
    """The ASGI layer. ``private``: reading needs the token too (addresses other than loopback)."""

    app: ASGIApp
    token: Token
    private: bool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        answer = self._refuse(scope) or self.app
        await answer(scope, receive, send_with_headers)

    def _refuse(self, scope: Scope) -> Response | None:
        headers, path, method = Headers(scope=scope), scope["path"], scope["method"]
        if not self.private and not is_loopback(_host(headers.get("host", ""))):
            return refusal(
                421,
                "this dashboard is served on loopback only: open it as http://127.0.0.1 or "
                "http://localhost",
            )
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > BODY_LIMIT_BYTES:
            return refusal(413, f"the body is larger than {BODY_LIMIT_BYTES} bytes")
        guarded = path.startswith("/api/") or path == "/metrics"
        changing = method not in ("GET", "HEAD", "OPTIONS")
        if guarded and (self.private or changing) and not self.token.admits(headers):
            sentence = (
                "give the token that was printed at start, as header 'Authorization: Bearer TOKEN'"
            )
            return refusal(401, sentence, {"WWW-Authenticate": "Bearer"})
        return None


def _host(header: str) -> str:
    """The host part of a Host header: ``[::1]:80`` and ``localhost:80`` lose their port."""
    return (
        header[: header.index("]") + 1]
        if header.startswith("[") and "]" in header
        else header.partition(":")[0]
    )
