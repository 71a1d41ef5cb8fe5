"""The API: what it answers, what it refuses, and with which words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest
from site_client import BEARER, Client, site
from tweets_world import TWEETS

from foretide.control import asked_mode
from foretide.journal import read
from foretide.web.records import Columns, Decisions, State
from foretide.web.security import BODY_LIMIT_BYTES, HEADERS


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with site(tmp_path, windows=40) as made:
        yield made


def test_state_tells_the_run_and_where_it_stands(client: Client, tmp_path: Path) -> None:
    state = msgspec.json.decode(client.get("/api/state").content, type=State)
    run, decisions = read(tmp_path / "journal.jsonl")
    assert state.run is not None
    assert (state.run.name, state.run.system, state.run.target_latency_ms) == (
        run.name,
        run.system,
        2000,
    )
    assert [(o.name, o.inputs) for o in state.run.operators] == [
        (o.name, o.inputs) for o in TWEETS.operators
    ]
    assert (state.now.decisions, state.now.at, state.now.live, state.now.asked_mode) == (
        40,
        decisions[-1].at,
        True,
        "act",
    )


def test_series_of_all_and_of_one_operator(client: Client) -> None:
    overall = msgspec.json.decode(client.get("/api/series").content, type=Columns)
    one = msgspec.json.decode(
        client.get("/api/series?operator=spam&range=whole").content, type=Columns
    )
    assert len(overall.at) == len(one.at) == 40
    assert (overall.range, one.range, one.operator) == ("recent", "whole", "spam")
    assert all(len(c) == 40 for c in (*overall.channels.values(), *one.channels.values()))


def test_decisions_are_paged_without_loss(client: Client) -> None:
    seen: list[int] = []
    since = 0
    while True:
        page = msgspec.json.decode(
            client.get(f"/api/decisions?since={since}&limit=7").content, type=Decisions
        )
        if not page.decisions:
            break
        seen += [d.seq for d in page.decisions]
        since = page.next_since
    assert seen == list(range(40))
    newest = msgspec.json.decode(
        client.get("/api/decisions?limit=3&changes=true").content, type=Decisions
    )
    assert all(d.changes or d.outcome == "failed" for d in newest.decisions)
    older = client.get(
        f"/api/decisions?limit=3&changes=true&before={newest.decisions[0].seq}"
    ).json()["decisions"]
    assert [d["seq"] for d in older] < [newest.decisions[0].seq]


def test_next_since_waits_for_what_is_not_there_yet(client: Client) -> None:
    page = client.get("/api/decisions?since=40").json()
    assert (page["decisions"], page["next_since"], page["total"]) == ([], 40, 40)


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/api/series?operator=nobody", 404, "known: parse"),
        ("/api/series?range=ever", 422, "not understood"),
        ("/api/decisions?since=-1", 422, "from 0 on"),
        ("/api/decisions?since=x", 422, "not understood"),
        ("/api/decisions?limit=0", 422, "1 to 200"),
        ("/api/decisions?limit=201", 422, "1 to 200"),
        ("/api/decisions?since=99999999999999999999999", 422, ""),
        ("/api/nothing", 404, ""),
        ("/static/../app.py", 404, ""),
        ("/static/%2e%2e/app.py", 404, ""),
    ],
)
def test_a_wrong_request_gets_a_sentence(
    client: Client, path: str, status: int, words: str
) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert words in answer.json()["error"]


def test_changing_the_mode_needs_the_token_even_on_loopback(client: Client, tmp_path: Path) -> None:
    def put(headers: dict[str, str]) -> int:
        return client.put("/api/mode", json={"mode": "advise"}, headers=headers).status_code

    wrong: tuple[dict[str, str], ...] = (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": BEARER["Authorization"].replace("Bearer", "Basic")},
    )
    assert [put(h) for h in wrong] == [401, 401, 401]
    assert asked_mode(tmp_path / "control.json") == "act"
    assert put(BEARER) == 200
    assert asked_mode(tmp_path / "control.json") == "advise"
    assert client.get("/api/state").json()["now"]["asked_mode"] == "advise"
    assert client.put("/api/mode", json={"mode": "act"}).headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b'{"mode":"destroy"}', "application/json", 422),
        (b'{"mode":"act","force":true}', "application/json", 422),
        (b"{", "application/json", 422),
        (b'"\xff"', "application/json", 422),
        (b"mode=act", "application/x-www-form-urlencoded", 415),
        (b'{"mode":"act"}' + b" " * BODY_LIMIT_BYTES, "application/json", 413),
    ],
)
def test_a_body_that_is_not_a_mode_changes_nothing(
    client: Client, tmp_path: Path, body: bytes, kind: str, status: int
) -> None:
    answer = client.put("/api/mode", content=body, headers={**BEARER, "Content-Type": kind})
    assert answer.status_code == status
    assert answer.json()["error"]
    assert asked_mode(tmp_path / "control.json") == "act"


def test_an_oversized_body_without_a_length_is_413_too(client: Client) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b" " * 1024

    answer = client.put(
        "/api/mode", content=parts(), headers={**BEARER, "Content-Type": "application/json"}
    )
    assert answer.status_code == 413


def test_nobody_listens_after_a_run_and_a_reading_dashboard_never_writes(tmp_path: Path) -> None:
    with site(tmp_path / "over", switch=False) as client:
        answer = client.put("/api/mode", json={"mode": "act"}, headers=BEARER)
        assert (answer.status_code, "this run is over" in answer.json()["error"]) == (409, True)
        assert client.get("/api/state").json()["now"]["asked_mode"] is None
    with site(tmp_path / "reading", control=False) as client:
        assert client.put("/api/mode", json={"mode": "act"}, headers=BEARER).status_code == 409
        assert client.get("/api/state").json()["now"]["asked_mode"] is None


def test_before_the_first_line_there_is_no_run_and_no_error(tmp_path: Path) -> None:
    with site(tmp_path, windows=0, switch=False) as client:
        assert client.get("/api/state").json()["run"] is None
        assert client.get("/api/series").status_code == 404
        assert client.get("/api/decisions").json()["decisions"] == []
        assert client.get("/metrics").status_code == 200


def test_every_answer_carries_the_strict_headers(client: Client) -> None:
    for path in ("/", "/static/js/app.js", "/api/state", "/api/nothing", "/metrics"):
        headers = client.get(path).headers
        assert {name: headers.get(name) for name in HEADERS} == HEADERS
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "http" not in policy


def test_the_page_has_nothing_inline_and_asks_nobody_else(client: Client) -> None:
    page = client.get("/").text
    assert "style=" not in page
    assert "onclick" not in page
    assert page.count("<script") == page.count("<script src=")
    for part in ("http://", "https://", "//cdn"):
        assert part not in page


def test_on_any_other_address_reading_needs_the_token(tmp_path: Path) -> None:
    with site(tmp_path, private=True) as client:
        for path in (
            "/api/state",
            "/api/series",
            "/api/decisions",
            "/api/stream",
            "/api/openapi.json",
            "/metrics",
        ):
            assert client.get(path).status_code == 401, path
        assert client.get("/api/state", headers=BEARER).status_code == 200
        assert client.get("/metrics", headers=BEARER).status_code == 200
        assert client.get("/").status_code == 200  # the page holds no data, and asks for the token
        assert client.get("/healthz").status_code == 200


def test_another_host_name_is_refused_on_loopback(client: Client) -> None:
    """A page elsewhere that makes its own name point here (DNS rebinding) learns nothing."""
    for host, status in (
        ("evil.example", 421),
        ("localhost:8765", 200),
        ("[::1]:8765", 200),
        ("127.0.0.1", 200),
        ("", 421),
    ):
        assert client.get("/api/state", headers={"Host": host}).status_code == status, host


def test_ready_means_that_the_journal_has_been_read(tmp_path: Path) -> None:
    with site(tmp_path / "empty", windows=0, switch=False) as client:
        assert client.get("/healthz").status_code == 200
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()) == (
            503,
            {"error": "no run yet: the journal has no first line"},
        )
    with site(tmp_path, windows=5) as client:
        assert client.get("/readyz").json() == {"ok": True, "read_share": 1.0}
