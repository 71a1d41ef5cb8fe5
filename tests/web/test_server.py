"""serve: a real server on loopback, next to a run that is still being written."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tweets_world import SERVICE_TIME_S, SHARE, TWEETS, World, load, steps

from foretide.control import ModeSwitch
from foretide.errors import InvalidConfig
from foretide.web import serve
from foretide.web.server import journal_file

pytestmark = pytest.mark.timeout(60)


def events(answer: httpx.Response) -> Iterator[tuple[str, Any]]:
    name = ""
    for line in answer.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def test_a_stream_follows_a_run_as_it_is_written_and_the_switch_reaches_the_loop(
    tmp_path: Path,
) -> None:
    journal = tmp_path / "journal.jsonl"
    with ModeSwitch(tmp_path / "control.json", "advise") as switch:
        run = steps(World(TWEETS, SERVICE_TIME_S, load, share=SHARE), journal, 60, switch)
        for _ in range(10):
            next(run)
        with (
            serve(tmp_path, port=0) as site,
            httpx.stream("GET", f"{site}/api/stream", timeout=120) as answer,
        ):
            assert answer.headers["content-type"].startswith("text/event-stream")
            seen = events(answer)
            name, whole = next(seen)
            while whole["now"]["decisions"] < 10:
                name, whole = next(seen)
            assert name == "state"
            assert whole["now"]["mode"] == whole["now"]["asked_mode"] == "advise"
            done = next(run)
            name, tick = next(seen)
            assert (name, tick["now"]["decisions"], tick["points"]["at"]) == ("tick", 11, [done.at])
            bearer = {"Authorization": f"Bearer {site.token}"}
            assert (
                httpx.put(f"{site}/api/mode", json={"mode": "act"}, headers=bearer).status_code
                == 200
            )
            name, tick = next(seen)
            assert (name, tick["now"]["asked_mode"], tick["now"]["mode"]) == (
                "tick",
                "act",
                "advise",
            )
            assert next(run).mode == "act"
            name, tick = next(seen)
            assert tick["now"]["mode"] == "act"
            run.close()  # type: ignore[attr-defined]


def test_leaving_the_block_ends_streams_and_frees_the_port(tmp_path: Path) -> None:
    with serve(tmp_path / "journal.jsonl", port=0) as site:
        client = httpx.Client(timeout=120)
        request = client.build_request("GET", f"{site}/api/stream")
        answer = client.send(request, stream=True)
        lines = answer.iter_lines()
        assert next(lines) == "event: state"
        port = int(site.url.rpartition(":")[2])
    assert not [t for t in threading.enumerate() if t.name == "foretide-dashboard"]
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))
    client.close()


def test_too_many_streams_are_refused_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foretide.web.server.STREAMS", 1)
    with (
        serve(tmp_path / "journal.jsonl", port=0) as site,
        httpx.stream("GET", f"{site}/api/stream", timeout=120) as first,
    ):
        lines = first.iter_lines()
        next(lines)
        refused = httpx.get(f"{site}/api/stream", timeout=120)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
        assert "1 streams are open" in refused.json()["error"]


def test_no_token_in_logs_or_representations(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    secret = "a-secret-that-is-never-written"
    caplog.set_level(logging.DEBUG)
    with serve(tmp_path / "journal.jsonl", port=0, token=secret) as site:
        httpx.put(
            f"{site}/api/mode", json={"mode": "act"}, headers={"Authorization": f"Bearer {secret}"}
        )
        httpx.put(
            f"{site}/api/mode", json={"mode": "act"}, headers={"Authorization": f"Bearer {secret}x"}
        )
        assert secret not in repr(site)
        assert secret not in str(site)
        assert site.token == secret
    assert secret not in caplog.text
    assert secret not in "".join(capfd.readouterr())


def test_a_taken_port_and_an_unknown_address_are_sentences(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with (
            pytest.raises(InvalidConfig, match="choose another port"),
            serve(tmp_path / "j", port=taken.getsockname()[1]),
        ):
            pass
    with (
        pytest.raises(InvalidConfig, match="not known here"),
        serve(tmp_path / "j", host="no.such.host.invalid", port=0),
    ):
        pass
    with (
        pytest.raises(InvalidConfig, match="at least 16"),
        serve(tmp_path / "j", port=0, token="short"),
    ):
        pass


def test_a_folder_stands_for_its_journal(tmp_path: Path) -> None:
    assert journal_file(tmp_path) == tmp_path / "journal.jsonl"
    assert journal_file(tmp_path / "other.jsonl") == tmp_path / "other.jsonl"
