"""The OpenAPI 3.1 document, made from the records that the API answers with."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import msgspec

from foretide.web import records as r

_ANSWERS = (r.State, r.Columns, r.Decisions, r.ModeRequest, r.ModeAnswer, r.Problem, r.Health)
_NUMBER = {"type": "integer", "minimum": 0, "maximum": 2**53}


def _answer(record: type, what: str) -> dict[str, Any]:
    return {
        "description": what,
        "content": {
            "application/json": {"schema": {"$ref": f"#/components/schemas/{record.__name__}"}}
        },
    }


def _parameter(name: str, what: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": what, "schema": schema}


def _get(
    summary: str, answer: dict[str, Any], *parameters: dict[str, Any], **more: dict[str, Any]
) -> dict[str, Any]:
    responses = {"200": answer, **{code.removeprefix("_"): a for code, a in more.items()}}
    return {
        "get": {
            "summary": summary,
            "parameters": list(parameters),
            "responses": {**responses, **_refusals()},
        }
    }


def _refusals() -> dict[str, Any]:
    return {
        "401": _answer(
            r.Problem,
            "The token is missing or wrong (only asked for on addresses other than loopback, or to "
            "change).",
        ),
        "413": _answer(r.Problem, "The body is too large."),
        "421": _answer(r.Problem, "The Host header does not name this machine."),
    }


def document() -> dict[str, Any]:
    """The document as a JSON value."""
    _, schemas = msgspec.json.schema_components(
        _ANSWERS, ref_template="#/components/schemas/{name}"
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Foretide dashboard",
            "version": version("foretide"),
            "description": "A run, read from its journal. Rates are events/s, instants UTC "
            "seconds; what was not measured is null.",
        },
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
        "paths": {**_reading(), "/api/mode": _mode(), **_operations()},
    }


def _reading() -> dict[str, Any]:
    stream = {
        "description": "An event 'state' with everything, then an event 'tick' per change; "
        "comments keep the connection open.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
    bad = _answer(r.Problem, "A parameter has a value that is not allowed.")
    return {
        "/api/state": _get(
            "Where the run stands.", _answer(r.State, "The run and its newest window.")
        ),
        "/api/series": _get(
            "A series in columns: the whole topology, or one operator.",
            _answer(r.Columns, "At most 1,025 points."),
            _parameter(
                "range",
                "the newest windows one by one, or the whole run merged",
                {"enum": ["recent", "whole"]},
            ),
            _parameter("operator", "an operator's name", {"type": "string", "minLength": 1}),
            _404=_answer(r.Problem, "No such operator, or no run yet."),
            _422=bad,
        ),
        "/api/decisions": _get(
            "Decisions, oldest first: from number `since` on, or else the newest ones below "
            "number `before`.",
            _answer(r.Decisions, "A page of decisions."),
            _parameter("since", "the first number wanted", _NUMBER),
            _parameter("before", "only numbers below this one", _NUMBER),
            _parameter(
                "limit",
                "at most so many",
                {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
            ),
            _parameter(
                "changes",
                "only decisions that changed something, were held back or failed",
                {"type": "boolean"},
            ),
            _422=bad,
        ),
        "/api/stream": _get(
            "Changes as server-sent events.",
            stream,
            _503=_answer(r.Problem, "Too many streams are open."),
        ),
    }


def _mode() -> dict[str, Any]:
    return {
        "put": {
            "summary": "Ask the loop to advise or to act from its next step.",
            "security": [{"token": []}],
            "requestBody": {"required": True, **_content(r.ModeRequest)},
            "responses": {
                "200": _answer(r.ModeAnswer, "The switch was turned."),
                "408": _answer(r.Problem, "The body did not arrive in time."),
                "409": _answer(r.Problem, "No loop is listening, or its switch cannot be written."),
                "415": _answer(r.Problem, "The body is not application/json."),
                "422": _answer(r.Problem, "The body is not a mode."),
                **_refusals(),
            },
        }
    }


def _operations() -> dict[str, Any]:
    text = {
        "description": "Prometheus text format 0.0.4.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
    return {
        "/api/openapi.json": _get(
            "This document.",
            {"description": "OpenAPI 3.1.", "content": {"application/json": {"schema": {}}}},
        ),
        "/metrics": _get("Metrics for Prometheus.", text),
        "/healthz": _get("Whether the server answers.", _answer(r.Health, "It does.")),
        "/readyz": _get(
            "Whether the journal has been read.",
            _answer(r.Health, "The page shows the whole run."),
            _503=_answer(r.Problem, "There is no run yet, or the journal is being read."),
        ),
    }


def _content(record: type) -> dict[str, Any]:
    return {
        "content": {
            "application/json": {"schema": {"$ref": f"#/components/schemas/{record.__name__}"}}
        }
    }
