"""Dashboard, report, closing summary and comparison show the same figure for the same journal."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tweets_world import tweets

from foretide.cli.screen import summary
from foretide.figures import account as accounting
from foretide.figures import demand as demanding
from foretide.figures.comparison import Comparison, Conditions
from foretide.figures.record import RunRecord
from foretide.figures.summary import summarize
from foretide.journal import Journal, Run, read
from foretide.model import Sample
from foretide.report import of_journal, render
from foretide.web.records import Columns, Now
from foretide.web.state import Journalled
from foretide.web.tail import Tail
from foretide.wording import percent, plural

WINDOWS = 330


class Views(NamedTuple):
    """One journal as the four readers show it."""

    run: Run
    record: RunRecord
    now: Now
    series: Columns
    operators: dict[str, Columns]
    page: dict[str, Any]
    closing: str
    compared: dict[str, Any]


def views(path: Path) -> Views:
    run, decisions = read(path)
    record = RunRecord.of_journal(run, decisions)
    tail = Tail(path)
    while tail.advance():
        pass
    assert tail.state is not None
    html = render(of_journal(path))
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    assert data
    conditions = Conditions("a", "", run.topology, "l", 1.0, 1.0, 1.0, run.window_s, None)
    return Views(
        run,
        record,
        tail.state.now(Journalled(), tail.index.total),
        tail.state.columns("recent"),
        {n: tail.state.columns("recent", n) for n in run.topology.names},
        json.loads(data.group(1))["runs"][0],
        summary(run, decisions),
        Comparison(conditions, (summarize(record),)).as_dict()["systems"][0],
    )


def served(path: Path) -> None:
    """A run whose replicas are always above the need; service times vary from window to window."""
    _rewritten(path, lambda s, i: replace(s, busy_s=_uneven(s, i), replicas=s.replicas + 1))


def short(path: Path) -> None:
    """The same load on one replica each."""
    _rewritten(path, lambda s, i: replace(s, busy_s=_uneven(s, i), replicas=1))


def _uneven(sample: Sample, window: int) -> float | None:
    return None if sample.busy_s is None else sample.busy_s * (1 + 0.5 * math.sin(window))


def _rewritten(path: Path, change: Callable[[Sample, int], Sample]) -> None:
    whole = path.with_name("whole.jsonl")
    tweets(whole, windows=WINDOWS)
    run, decisions = read(whole)
    with Journal(path, replace(run, target_latency_s=20.0, share=0.9)) as journal:
        for i, d in enumerate(decisions):
            snapshot = d.snapshot and replace(
                d.snapshot, samples={n: change(s, i) for n, s in d.snapshot.samples.items()}
            )
            journal.append(replace(d, snapshot=snapshot))


@pytest.fixture(scope="module", params=[served, short], ids=["served", "short"])
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Views:
    path = tmp_path_factory.mktemp("run") / "journal.jsonl"
    request.param(path)
    return views(path)


def near(value: float | None) -> Any:
    """The page keeps five digits, a series six."""
    return None if value is None else pytest.approx(value, rel=1e-4, abs=1e-9)


def test_figures_of_the_run_are_the_same_everywhere(seen: Views) -> None:
    cost, latency = seen.now.cost, seen.now.latency
    assert latency is not None
    shared: dict[str, tuple[float | None, ...]] = {
        "cost": (cost.paid, seen.page["figures"]["cost"]),
        "saved_cost": (cost.saved_share, seen.page["figures"]["saved_cost"]),
        "slo_share": (latency.within_share, seen.page["figures"]["slo_share"]),
    }
    for key, values in shared.items():
        for value in values:
            assert value == near(seen.compared[key]), key
    for key, value in seen.page["figures"].items():
        truth = seen.compared[key]
        assert value == (truth if isinstance(truth, str) else near(truth)), key


def test_the_closing_lines_hold_the_same_figures(seen: Views) -> None:
    figures, account = seen.compared, seen.record.account
    assert f"{figures['replica_seconds']:,.0f} replica-seconds" in seen.closing
    assert f"changed in {plural(figures['adaptations'], 'window')}" in seen.closing
    served = seen.now.cost.short is None
    assert (f"{figures['cost_ratio']:.2f} times" in seen.closing) is served
    assert f"mean {figures['latency_mean_ms'] / 1e3:.1f} s" in seen.closing
    assert f"{percent(figures['slo_share'])} within" in seen.closing
    assert seen.now.cost.static_peak is not None
    paid = percent(seen.now.cost.paid / seen.now.cost.static_peak)
    assert (f"{paid} of static peak" in seen.closing) is served
    assert (seen.now.windows, seen.now.seconds) == (account.windows, account.seconds)


def test_a_saving_is_shown_by_all_or_by_none(seen: Views) -> None:
    cost = seen.now.cost
    if cost.short is None:
        assert cost.saved_share is not None
        assert cost.static_peak is not None
        assert cost.saved_share == near(1 - cost.paid / cost.static_peak)
        difference = "saved" if cost.saved_share >= 0 else "more"
        assert f"{percent(abs(cost.saved_share))} {difference}" in seen.closing
        assert ("saved" in seen.closing) is (cost.saved_share >= 0)
        assert seen.page["short"] is None
    else:
        assert cost.saved_share is None
        assert seen.compared["saved_cost"] is seen.compared["saved_resources"] is None
        assert f"ran short: {cost.short}" in seen.closing
        assert "saved" not in seen.closing
        assert seen.page["short"] == cost.short


SERIES: tuple[tuple[str, Callable[[Views], list[float | None]]], ...] = (
    ("load", lambda v: v.page["rate"]),
    ("forecast", lambda v: v.page["forecast"]),
    ("backlog", lambda v: v.page["backlog"]),
    ("p50_ms", lambda v: v.page["latency_ms"]["p50_ms"]),
    ("p90_ms", lambda v: v.page["latency_ms"]["p90_ms"]),
    ("p99_ms", lambda v: v.page["latency_ms"]["p99_ms"]),
)


def measured(seen: Views, values: list[float | None]) -> list[float | None]:
    """The dashboard has a point for every decision, the report one for every measured window."""
    held = [v is not None for v in seen.series.channels["replicas"]]
    return [v for v, kept in zip(values, held, strict=True) if kept]


@pytest.mark.parametrize(("channel", "page"), SERIES, ids=[name for name, _ in SERIES])
def test_series_are_the_same(
    seen: Views, channel: str, page: Callable[[Views], list[float | None]]
) -> None:
    shown = measured(seen, seen.series.channels[channel])
    assert len(shown) == len(page(seen)) == WINDOWS - 1
    differing = [i for i, (a, b) in enumerate(zip(shown, page(seen), strict=True)) if a != near(b)]
    assert differing == []


@pytest.mark.parametrize("channel", ["replicas", "need"])
def test_replicas_and_need_are_the_same_for_every_operator(seen: Views, channel: str) -> None:
    for name, columns in seen.operators.items():
        assert measured(seen, columns.channels[channel]) == seen.page[channel][name], name
    total = [sum(row) for row in zip(*seen.page[channel].values(), strict=True)]
    assert measured(seen, seen.series.channels[channel]) == total


def test_a_reader_with_a_need_of_its_own_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above can fail: a dashboard that averaged over five windows, not ten, differs."""
    path = tmp_path / "journal.jsonl"
    served(path)
    honest = views(path)
    monkeypatch.setattr(demanding, "RECENT", 5)
    tail = Tail(path)
    while tail.advance():
        pass
    assert tail.state is not None
    other = {n: tail.state.columns("recent", n).channels["need"] for n in honest.operators}
    assert other != {n: c.channels["need"] for n, c in honest.operators.items()}


def test_a_reader_that_counts_its_saving_otherwise_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.jsonl"
    served(path)
    monkeypatch.setattr(
        accounting.Account,
        "saved_cost",
        property(lambda a: a.saved_replica_time),
    )
    by_time = views(path)
    monkeypatch.undo()
    assert by_time.now.cost.saved_share != near(views(path).compared["saved_cost"])
