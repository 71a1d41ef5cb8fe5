"""One page about a run of attach, from the journal of a query that exists only as arithmetic."""

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner
from watched_query import WatchedQuery

from foretide.cli import app
from foretide.errors import InvalidConfig, NotReady
from foretide.figures.attach_report import account_of, attach_page
from foretide.journal import Journal, Run, read
from foretide.model import Decision, Host, Latency
from foretide.plan.micro_batch import MicroBatch


def recorded(folder: Path, within: float = 1.0) -> Path:
    """Three minutes of advice: four executors are there, 60 -> 240 -> 60 events/s."""
    query = WatchedQuery(lambda t: 240.0 if 60 <= t < 120 else 60.0, executors=4)
    planner = MicroBatch(10.0, max_executors=4, unit="executors")
    settings = {"cores": 1, "max_executors": 4, "targets": {}}
    run = Run(
        "attach", "attach", query.topology, 5.0, 0.0, "advise", 10.0, share=0.99, settings=settings
    )
    with Journal(folder / "journal.jsonl", run) as journal:
        for _ in range(36):
            snapshot = replace(
                query.window(5.0),
                hosts=tuple(Host(str(i), 0.5) for i in range(4)),
                latency=Latency(100, 3000, 3000, 4000, 5000, 100 * within),
            )
            try:
                plan = planner.plan(query.topology, query.history, {})
            except NotReady:
                journal.append(Decision(snapshot.at, "waiting", "advise", snapshot))
                continue
            journal.append(Decision(snapshot.at, "advised", "advise", snapshot, {}, plan, plan))
    return folder


def test_the_page_says_what_it_would_have_done_and_how_far_to_believe_it(tmp_path: Path) -> None:
    page = attach_page(recorded(tmp_path))
    assert "Attach, mode advise: q" in page
    assert "would have asked for" in page
    assert "720 were there" in page
    assert "Fixed at the most (4 executors) they would be 720" in page
    assert "Events within the target, as it ran: 100.0 %" in page
    assert "Saved by what ran: 0 %" in page
    assert "0 of 36 windows over the target" in page or "windows over the target" in page
    assert "dynamic allocation would have held about" in page
    assert "Median error of the batch model:" in page
    assert "4 -> 1:" in page or "4 -> 2:" in page


def test_what_it_asked_for_is_counted(tmp_path: Path) -> None:
    run, decisions = read(recorded(tmp_path) / "journal.jsonl")
    account = account_of(run)
    for decision in decisions:
        account.add(decision)
    assert account.there == account.fixed == 720
    assert 180 <= account.asked <= 540
    line = account.line(0.99)
    assert line.startswith("seconds=180 executor_seconds=720 asked=")
    assert 180 <= account.allocated <= 720
    assert f"dynamic={account.allocated:.0f} saved_dynamic=" in line


def test_no_saving_is_claimed_for_what_was_not_served(tmp_path: Path) -> None:
    page = attach_page(recorded(tmp_path, within=0.5))
    assert "Saved by what ran: none, the promise was not kept" in page
    assert "as it ran: 50.0 %" in page


def test_another_run_or_an_empty_one_is_a_sentence(tmp_path: Path) -> None:
    query = WatchedQuery(lambda t: 60.0)
    for name, system in (("a", "ds2"), ("b", "attach")):
        with Journal(tmp_path / name / "journal.jsonl", Run("x", system, query.topology, 5.0, 0.0)):
            pass
    with pytest.raises(InvalidConfig, match="is a run of ds2: see foretide report"):
        attach_page(tmp_path / "a")
    with pytest.raises(InvalidConfig, match="holds no measured window"):
        attach_page(tmp_path / "b")


def test_the_command_prints_the_page(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["attach-report", str(recorded(tmp_path))])
    assert shown.exit_code == 0
    assert shown.output.startswith("Attach, mode advise: q\n")
