"""The HTTP application: a page, an API and metrics over one watched journal."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from foretide.assets import VENDOR
from foretide.control import ask_mode
from foretide.errors import JournalError, NobodyListens
from foretide.web import openapi, prometheus
from foretide.web.decisions import read_at, view
from foretide.web.records import Decisions, Health, ModeAnswer, ModeRequest, Range
from foretide.web.security import BODY_LIMIT_BYTES, Gate, Token, refusal
from foretide.web.sse import EventStream
from foretide.web.watch import JournalWatch
from foretide.wording import percent

STATIC = Path(__file__).parent / "static"
PAGE_LIMIT, PAGE_DEFAULT = 200, 50
BODY_S = 10.0
T = TypeVar("T")


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


class _DecisionsQuery(msgspec.Struct, kw_only=True):
    """The parameters of ``/api/decisions``."""

    since: int | None = None
    before: int | None = None
    limit: int = PAGE_DEFAULT
    changes: bool = False


class _SeriesQuery(msgspec.Struct, kw_only=True):
    """The parameters of ``/api/series``."""

    range: Range = "recent"
    operator: str | None = None


def _query(request: Request, record: type[T]) -> T:
    """The query as a record; anything not understood is a 422 that says what."""
    known = record.__struct_fields__  # type: ignore[attr-defined]
    given: Mapping[str, str] = request.query_params
    try:
        parameters = msgspec.convert(
            {k: v for k, v in given.items() if k in known}, record, strict=False
        )
    except msgspec.ValidationError as error:
        raise HTTPException(422, f"the query is not understood: {error}") from error
    if isinstance(parameters, _DecisionsQuery):
        numbers = [n for n in (parameters.since, parameters.before) if n is not None]
        if not 1 <= parameters.limit <= PAGE_LIMIT or any(n < 0 or n > 2**53 for n in numbers):
            raise HTTPException(
                422, f"limit must be 1 to {PAGE_LIMIT}, since and before numbers from 0 on"
            )
    return parameters


class Api:
    """The answers, over one watch."""

    def __init__(self, watch: JournalWatch) -> None:
        self.watch = watch

    async def state(self, request: Request) -> Response:
        return _json(self.watch.state())

    async def series(self, request: Request) -> Response:
        asked, state = _query(request, _SeriesQuery), self.watch.tail.state
        if state is None:
            raise HTTPException(404, "no run yet: the journal has no first line")
        if asked.operator is not None and asked.operator not in state.names:
            raise HTTPException(404, f"no operator has this name; known: {', '.join(state.names)}")
        return _json(state.columns(asked.range, asked.operator))

    async def decisions(self, request: Request) -> Response:
        asked, tail = _query(request, _DecisionsQuery), self.watch.tail
        index, path = tail.index, tail.path
        numbers = index.page(asked.since, asked.before, asked.limit, asked.changes)
        places = [(n, index.offset(n)) for n in numbers]

        def read() -> bytes:
            page = [
                view(n, d, shared)
                for n, offset in places
                if (d := read_at(path, offset)) is not None
            ]
            after = numbers[-1] + 1 if len(numbers) == asked.limit else total
            return msgspec.json.encode(Decisions(page, max(after, asked.since or 0), first, total))

        first, total = index.first, index.total
        shared = tail.state is not None and tail.state.shared_slots
        return Response(await run_in_threadpool(read), media_type="application/json")

    async def mode(self, request: Request) -> Response:
        if (
            request.headers.get("content-type", "").partition(";")[0].strip().lower()
            != "application/json"
        ):
            raise HTTPException(415, 'send application/json: {"mode": "advise"} or {"mode": "act"}')
        try:
            asked = msgspec.json.decode(await _body(request), type=ModeRequest)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise HTTPException(422, f"the body is not a mode: {error}") from error
        if self.watch.control is None:
            raise HTTPException(409, "this dashboard only reads: the mode cannot be changed here")
        try:
            ask_mode(self.watch.control, asked.mode)
        except (NobodyListens, JournalError) as error:
            raise HTTPException(409, str(error)) from error
        self.watch.publish(self.watch.tail.state, self.watch.tail.index.total)
        return _json(ModeAnswer(asked.mode))

    async def openapi(self, request: Request) -> Response:
        return _json(openapi.document())

    async def metrics(self, request: Request) -> Response:
        return PlainTextResponse(
            prometheus.exposition(self.watch.state()), media_type=prometheus.CONTENT_TYPE
        )

    async def health(self, request: Request) -> Response:
        return _json(Health(True, self.watch.tail.read_share))

    async def ready(self, request: Request) -> Response:
        tail = self.watch.tail
        if tail.state is None:
            raise HTTPException(503, "no run yet: the journal has no first line")
        if tail.behind:
            raise HTTPException(
                503, f"the journal is being read: {percent(tail.read_share)} so far"
            )
        return _json(Health(True, tail.read_share))

    async def page(self, request: Request) -> Response:
        return FileResponse(STATIC / "index.html", headers={"Cache-Control": "no-cache"})


class _Stream:
    """``/api/stream``: an ASGI application, since it answers for as long as the reader stays."""

    def __init__(self, watch: JournalWatch) -> None:
        self.watch = watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        hub = self.watch.hub
        if scope["method"] == "HEAD":
            answer: ASGIApp = Response(media_type="text/event-stream")
        elif hub.full:
            answer = refusal(
                503,
                f"{hub.streams} streams are open already: close a page and try again",
                {"Retry-After": "10"},
            )
        else:
            answer = EventStream(hub)
        await answer(scope, receive, send)


async def _body(request: Request) -> bytes:
    """The body, read no further than the limit: a length may be missing from the headers."""
    body = b""
    try:
        async with asyncio.timeout(BODY_S):
            async for part in request.stream():
                body += part
                if len(body) > BODY_LIMIT_BYTES:
                    raise HTTPException(413, f"the body is larger than {BODY_LIMIT_BYTES} bytes")
    except ClientDisconnect:
        raise HTTPException(422, "the body ended early") from None
    except TimeoutError:
        raise HTTPException(408, f"the body did not arrive within {BODY_S:g} s") from None
    return body


class _Static(StaticFiles):
    """Files that a browser may keep but checks each time, so that a new version of the page is
    never half old.
    """

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return refusal(error.status_code, error.detail or "refused", dict(error.headers or {}))


def application(watch: JournalWatch, token: Token, private: bool) -> ASGIApp:
    """The whole application behind its gate; the journal is followed while it runs."""
    api = Api(watch)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        following = asyncio.create_task(watch.follow())
        yield
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following

    get = ["GET"]
    routes = [
        Route("/", api.page, methods=get),
        Route("/api/state", api.state, methods=get),
        Route("/api/series", api.series, methods=get),
        Route("/api/decisions", api.decisions, methods=get),
        Route("/api/stream", _Stream(watch), methods=get),
        Route("/api/mode", api.mode, methods=["PUT"]),
        Route("/api/openapi.json", api.openapi, methods=get),
        Route("/metrics", api.metrics, methods=get),
        Route("/healthz", api.health, methods=get),
        Route("/readyz", api.ready, methods=get),
        Mount("/static/vendor", _Static(directory=VENDOR)),
        Mount("/static", _Static(directory=STATIC)),
    ]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _refused})
    return Gate(app, token, private)
