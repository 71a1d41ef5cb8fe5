"""No journal that ran short shows a saving: not the figures, the closing lines, the dashboard, the
report or the comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from foretide.cli.screen import summary
from foretide.figures.record import RunRecord
from foretide.figures.summary import Summary, summarize
from foretide.journal import Run, encode
from foretide.model import Decision, Latency, Prices, Sample, Snapshot
from foretide.report.words import verdict
from foretide.topology import Operator, Topology
from foretide.web.lines import DecisionLine, decode
from foretide.web.records import Now
from foretide.web.state import Journalled, RunState

CHAIN = Topology((Operator("a", max_replicas=12), Operator("b", inputs=("a",), max_replicas=12)))
SERVICE_S = 0.1
WINDOW_S = 10.0


@dataclass(frozen=True)
class Window:
    """What one window of a generated run was like: ``kept`` of what came and waited was processed,
    ``early`` of that within the target.
    """

    offered: int
    replicas: int
    kept: float
    early: float | None


WINDOWS = st.lists(
    st.builds(
        Window,
        st.integers(0, 2000),
        st.integers(1, 12),
        st.one_of(st.just(1.0), st.floats(0, 1)),
        st.one_of(st.none(), st.just(1.0), st.floats(0, 1)),
    ),
    min_size=1,
    max_size=12,
)
RUNS = st.builds(
    Run,
    st.just("r"),
    st.just("s"),
    st.just(CHAIN),
    st.just(WINDOW_S),
    st.just(0.0),
    target_latency_s=st.one_of(st.none(), st.floats(0.5, 30)),
    share=st.one_of(st.none(), st.floats(0.5, 0.999)),
)


def journal(windows: list[Window]) -> list[Decision]:
    waiting, decisions = 0.0, []
    for i, w in enumerate(windows, 1):
        waiting += w.offered
        done = round(w.kept * waiting)
        waiting -= done
        busy_s = done * SERVICE_S
        left = (
            None
            if w.early is None or not done
            else Latency(done, 1, 1, 1, 1, within=round(w.early * done))
        )
        samples = {
            "a": Sample(w.offered, done, waiting, w.replicas, {"b": done}, busy_s, w.offered),
            "b": Sample(done, done, 0, w.replicas, busy_s=busy_s),
        }
        at = i * WINDOW_S
        decisions.append(
            Decision(at, "observed", "act", Snapshot(at, WINDOW_S, samples, latency=left))
        )
    return decisions


def dashboard(run: Run, decisions: list[Decision]) -> Now:
    state = RunState(run)
    for d in decisions:
        line = decode(encode(d))
        assert isinstance(line, DecisionLine)
        state.add(line)
    return state.now(Journalled(), len(decisions))


def ran_short(run: Run, windows: list[Window]) -> bool:
    """By counting, without the code under test: fewer events within the target than promised,
    fewer replicas than the load of the windows needed, or events left behind.
    """
    least = 0.99 if run.share is None else run.share
    decisions = journal(windows)
    counts = [d.snapshot for d in decisions if d.snapshot is not None]
    latencies = [s.latency for s in counts if s.latency is not None]
    late = sum(x.count for x in latencies) * least > sum(x.within or 0 for x in latencies) + 1e-6
    first = next((i for i, s in enumerate(counts) if s.samples["a"].processed > 0), len(counts))
    needed = [2 * max(1, -(-w.offered // 100)) for w in windows[first:]]
    ran = [min(2 * w.replicas, n) for w, n in zip(windows[first:], needed, strict=True)]
    below = sum(ran) + 1e-6 < least * sum(needed)
    return late or below


@settings(deadline=None, max_examples=300)
@given(RUNS, WINDOWS)
def test_no_run_that_ran_short_shows_a_saving(run: Run, windows: list[Window]) -> None:
    assume(ran_short(run, windows))
    decisions = journal(windows)
    small = summarize(RunRecord.of_journal(run, decisions))
    assert (small.figures.saved_cost, small.figures.saved_resources) == (None, None)
    assert small.short
    closing = summary(run, decisions)
    assert "saved" not in closing
    assert small.short in closing
    now = dashboard(run, decisions)
    assert (now.cost.saved_share, now.cost.short) == (None, small.short)
    assert "less" not in verdict([small])
    assert small.short in verdict([small])
    assert not said_cheapest(small)


def said_cheapest(small: Summary) -> bool:
    """Whether a comparison would call the run the best of those that kept the promise."""
    other = replace(small, figures=replace(small.figures, system="other", cost_ratio=9.0))
    text = verdict([small, other])
    return "the only one that kept" in text or "the cheapest of" in text


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(100, 1000), min_size=4, max_size=12))
@example([100] * 5)
def test_a_run_that_served_everything_shows_its_saving(loads: list[int]) -> None:
    """The rule does not hide real savings: exactly the need, all in time. All readers show the
    cost, starts and stops included, against that of the peak; none says "saved" where it is more.
    """
    run = Run("r", "s", CHAIN, WINDOW_S, 0.0, target_latency_s=5.0, share=0.99)
    windows = [Window(n, -(-n // 100), 1.0, 1.0) for n in loads]
    small = summarize(RunRecord.of_journal(run, journal(windows)))
    replicas = [w.replicas for w in windows]
    assert small.short is None
    assert small.figures.saved_resources is not None
    static = 2 * max(replicas) * len(replicas) * WINDOW_S * Prices().replica_second
    expected = 1 - cost_by_hand(replicas) / static
    assert small.figures.saved_cost == pytest.approx(expected)
    assert abs(small.figures.saved_resources - (1 - fmean(replicas) / max(replicas))) < 1e-9
    now, closing = dashboard(run, journal(windows)), summary(run, journal(windows))
    assert now.cost.saved_share == pytest.approx(expected)
    assert now.cost.static_peak == pytest.approx(static)
    assert ("saved" in closing) is (expected >= 5e-4)
    assert ("less than static peak" in verdict([small])) is (expected >= 5e-4)


def test_a_system_that_kept_the_promise_below_the_need_is_named_without_a_saving() -> None:
    """A hump waits within the target: all in time, with one replica less than it keeps busy."""
    run = Run("r", "s", CHAIN, WINDOW_S, 0.0, target_latency_s=5.0, share=0.99)
    windows = [Window(300, 2, 1.0, 1.0)] * 3
    small = summarize(RunRecord.of_journal(run, journal(windows)))
    other = replace(small, figures=replace(small.figures, system="other", slo_share=0.8))
    text = verdict([small, other])
    assert text.startswith("s kept 100 % of events within the latency target at ")
    assert text.endswith(f"No saving is claimed: {small.short}.")
    dear = summarize(RunRecord.of_journal(run, journal([Window(300, 9, 1.0, 1.0)] * 3)))
    text = verdict([small, replace(dear, figures=replace(dear.figures, system="dear"))])
    assert text.startswith(
        "dear was the only one that kept 99 % of events within the latency target and ran short of "
        "nothing: "
    )
    assert f" s kept 100 % at {small.figures.cost_ratio:.2f} times; no saving is claimed: " in text
    none = verdict([other, replace(other, figures=replace(other.figures, system="third"))])
    assert none.startswith("No system kept 99 % of events within the latency target. other came")


def cost_by_hand(replicas: list[int]) -> float:
    """What two operators with these replicas cost: replica time, starts, stops and routes."""
    prices, changes = Prices(), [b - a for a, b in pairwise(replicas)]
    running = sum(replicas) * WINDOW_S * prices.replica_second
    moved = sum(max(0, d) * prices.up + max(0, -d) * prices.down for d in changes)
    return 2 * (running + moved + prices.route * sum(d != 0 for d in changes))
