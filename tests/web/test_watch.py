"""What readers are told, and that nothing in a file can stop the watch."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import pytest
from tweets_world import SERVICE_TIME_S, SHARE, TWEETS, World, load, steps, tweets

from foretide.control import ModeSwitch
from foretide.web import watch as module
from foretide.web.watch import JournalWatch


def events(data: bytes) -> list[tuple[str, dict[str, object]]]:
    blocks = [
        b.split(b"\n") for b in data.decode().encode().split(b"\n\n") if b.startswith(b"event")
    ]
    return [
        (name.decode().removeprefix("event: "), json.loads(payload[6:])) for name, payload in blocks
    ]


def test_a_tick_holds_the_new_points_and_only_notable_decisions(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    run = steps(World(TWEETS, SERVICE_TIME_S, load, share=SHARE), journal, 60)
    made = [next(run) for _ in range(30)]
    watch = JournalWatch(journal, lambda: 0.0, streams=1)
    watch.tail.advance()
    watch.publish(None, 0)
    before, known = watch.tail.state, watch.tail.index.total
    made += [next(run) for _ in range(5)]
    watch.tail.advance()
    watch.publish(before, known)
    ((name, tick),) = events(watch.hub.since(watch.hub.number - 1)[1])
    assert name == "tick"
    assert tick["points"]["at"] == [d.at for d in made[-5:]]  # type: ignore[index]
    noted = [d.at for d in made[-5:] if d.outcome == "applied" or d.plan != d.proposed]
    assert [d["at"] for d in tick["decisions"]] == noted  # type: ignore[index,attr-defined]
    run.close()  # type: ignore[attr-defined]


def test_many_new_windows_are_told_as_a_whole(tmp_path: Path) -> None:
    tweets(tmp_path / "journal.jsonl", 40)
    watch = JournalWatch(tmp_path / "journal.jsonl", lambda: 0.0, streams=1)
    watch.tail.advance()
    watch.publish(None, 0)
    ((name, state),) = events(watch.hub.since(watch.hub.number - 1)[1])
    assert name == "state"
    assert len(state["recent"]["at"]) == 40  # type: ignore[index]


def test_the_switch_and_the_end_of_growth_are_told_too(tmp_path: Path) -> None:
    tweets(tmp_path / "journal.jsonl", 20)
    now = [0.0]
    watch = JournalWatch(tmp_path / "journal.jsonl", lambda: now[0], streams=1)
    watch.tail.advance()
    now[0] = watch.tail.grown_at + 49
    watch.publish(None, 0)
    assert watch.state().now.live
    now[0] += 2  # five windows of 10 s
    number, state = watch.hub.number, watch.tail.state
    watch.publish(state, 20)
    assert not watch.state().now.live
    with ModeSwitch(tmp_path / "control.json", "act"):
        watch.publish(state, 20)
        assert watch.state().now.asked_mode == "act"
    assert watch.hub.number == number + 2
    watch.publish(state, 20)
    watch.publish(state, 20)
    assert watch.hub.number == number + 3  # the switch went away; then nothing happened
    watch.publish(state, 20, keep_alive=True)
    assert watch.hub.since(number + 3)[1] == b": keep-alive\n\n"


def test_a_failure_is_logged_and_the_watch_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "POLL_S", 0.0)
    watch = JournalWatch(tmp_path / "journal.jsonl", lambda: 0.0, streams=1)
    looks = []

    def advance() -> int:
        looks.append(1)
        if len(looks) == 1:
            raise RuntimeError("a strange line")
        if len(looks) == 3:
            raise asyncio.CancelledError
        return 0

    monkeypatch.setattr(watch.tail, "advance", advance)
    with caplog.at_level(logging.ERROR), pytest.raises(asyncio.CancelledError):
        asyncio.run(watch.follow())
    assert "could not follow" in caplog.text
    assert len(looks) == 3


def test_a_long_journal_shows_how_far_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tweets(tmp_path / "journal.jsonl", 40)
    monkeypatch.setattr("foretide.web.tail.SLICE_BYTES", 20_000)
    monkeypatch.setattr(module, "PROGRESS_S", -1.0)
    watch = JournalWatch(tmp_path / "journal.jsonl", lambda: 0.0, streams=1)
    shares = []
    monkeypatch.setattr(watch.hub, "restart", lambda: shares.append(watch.state().now.read_share))
    asyncio.run(watch._look_once(keep_alive=False))
    assert len(shares) > 3
    assert shares == sorted(shares)
    assert shares[0] < 0.5
    assert shares[-1] == 1.0
    assert watch.tail.index.total == 40
