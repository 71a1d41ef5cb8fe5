"""The OpenAPI document against the application, by schemathesis: no server error, no answer that it
does not describe.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from site_client import BEARER, Client, site

from foretide.web.openapi import document

ENDLESS = "/api/stream"  # test_server.py reads it
OPERATIONS = [
    (path, method)
    for path, item in document()["paths"].items()
    for method in item
    if path != ENDLESS
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with site(tmp_path_factory.mktemp("run"), windows=30) as made:
        yield made


def test_the_document_describes_every_route(client: Client) -> None:
    assert client.get("/api/openapi.json").json() == document()
    assert {path for path, _ in OPERATIONS} | {ENDLESS} == {
        "/api/state",
        "/api/series",
        "/api/decisions",
        "/api/stream",
        "/api/mode",
        "/api/openapi.json",
        "/metrics",
        "/healthz",
        "/readyz",
    }


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_no_request_makes_the_server_fail(
    client: Client, path: str, method: str, mode: GenerationMode
) -> None:
    schema = schemathesis.openapi.from_dict(document())
    schema.app = client.app
    operation = schema[path][method]
    if mode is GenerationMode.NEGATIVE and not operation.query and not operation.body:
        pytest.skip("nothing to ask wrongly: no parameters, no body")

    statuses = set()

    @settings(
        max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
    )
    @given(operation.as_strategy(generation_mode=mode))
    def ask(case: schemathesis.Case) -> None:
        statuses.add(
            case.call_and_validate(headers=BEARER, base_url="http://127.0.0.1").status_code
        )

    ask()
    assert (200 in statuses) if mode is GenerationMode.POSITIVE else statuses & {404, 415, 422}
