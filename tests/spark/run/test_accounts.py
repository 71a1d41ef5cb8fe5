"""Bookkeeping of batches: totals, backlogs, windows, latency."""

from pathlib import Path

import numpy as np
import pytest

from foretide.spark.edge.protocol import Manifest
from foretide.spark.run.accounts import MOST, Accounts, Delivery, Inputs, Partial, Window
from foretide.spark.run.batch import BatchRun
from foretide.spark.run.runners import Outcome
from foretide.spark.worker.meter import Report
from foretide.spark.worker.stamps import latency, summary


def report(replica: int, processed: int, busy_s: float, stamps: list[float]) -> Report:
    return Report(replica, processed, 0, busy_s, 0, 0.0, 0.0, sum(stamps), np.array(stamps))


def test_backlog_is_delivered_minus_consumed() -> None:
    accounts = Accounts(
        {"a": Manifest(4, 1.0, 2, {}, {"to.b": 100}), "b": None}, {"b": Inputs(("a",))}
    )
    assert accounts.backlog("b", at=0.0) == 100
    accounts.add("b", Delivery(Manifest(0, 2.0, 1, {"a": 60}), {"a": 60}, {}))
    assert (accounts.backlog("b", at=0.0), accounts.carried("a", "b")) == (40, 100)


def test_a_pipeline_is_idle_when_its_last_batch_is_delivered() -> None:
    accounts = Accounts({"a": None}, {"a": Inputs(outside=lambda latest, at: 60)})
    accounts.begin("a", lambda: Partial(events=60))
    assert (accounts.backlog("a", at=0.0), accounts.idle(at=0.0)) == (0, False)
    accounts.add("a", Delivery(Manifest(0, 2.0, 1, {"src": 60}), {"src": 60}, {}))
    assert accounts.idle(at=0.0)


def test_a_window_holds_what_came_since_the_last_one() -> None:
    accounts = Accounts({"a": None})
    reports = [report(0, 2, 0.5, [8.0, 9.0]), report(2, 1, 0.25, [5.0])]
    accounts.add("a", Delivery(Manifest(0, 10.0, 3), {"src": 3}, {"to.b": 2}, reports, 6.0))
    window = accounts.take()["a"]
    assert (window.processed, window.busy_s, window.sojourn_s, window.emitted("to.b")) == (
        3,
        0.75,
        2.0,
        2,
    )
    assert window.by_replica(3) == ((0.5, 0.0, 0.25), (2.0, 0.0, 1.0))
    found = latency(*window.ages(), target_s=3.0)
    assert found is not None
    assert (found.count, found.within, found.p50_ms, found.p99_ms) == (3, 2, 2000, 5000)
    assert found.mean_ms == pytest.approx(8000 / 3)
    accounts.add("a", Delivery(Manifest(1, 11.0, 3), {"src": 9}, {}))
    assert accounts.take()["a"].sojourn_s is None, "what was not measured is not 0"
    empty = accounts.take()["a"]
    assert (empty.processed, empty.busy_s, empty.sojourn_s, empty.by_replica(3)) == (
        0,
        None,
        None,
        None,
    )


def test_a_accounts_that_nobody_reads_does_not_grow_for_ever() -> None:
    accounts = Accounts({"a": None})
    for i in range(MOST + 5):
        accounts.add("a", Delivery(Manifest(i, 0.0, 1, {"src": i + 1}), {"src": 1}, {}))
    assert (accounts.latest("a").consumed["src"], accounts.take()["a"].processed) == (
        MOST + 5,
        MOST,
    )


def test_summaries_keep_percentiles_of_many_events() -> None:
    stamps = np.random.default_rng(1).exponential(size=20_000)
    found = latency([summary(stamps)], [20_000.0], float(stamps.sum()))
    assert found is not None
    for measured, q in ((found.p50_ms, 50), (found.p90_ms, 90)):
        assert measured == pytest.approx(np.percentile(stamps, q) * 1e3, rel=0.03)


def test_dropped_events_are_done_and_not_processed() -> None:
    """Of a batch of 30 events, 20 are dropped in its first piece; a window ends between."""
    accounts = Accounts({"a": None}, {"a": Inputs(outside=lambda latest, at: 30)})
    accounts.begin("a", lambda: Partial(events=20, late=20))
    assert accounts.backlog("a", at=0.0) == 10
    assert accounts.take()["a"].processed == 0
    done = Report(0, processed=10, diverted=20, busy_s=1.0, late=20)
    accounts.add("a", Delivery(Manifest(0, 2.0, 1, {"src": 30}), {"src": 30}, {}, [done]))
    window = accounts.take()["a"]
    assert (window.processed, window.late, window.diverted) == (10, 20, 20)
    assert accounts.backlog("a", at=0.0) == 0


def test_the_fixed_cost_of_a_piece_is_what_it_took_beyond_its_slowest_task() -> None:
    run = BatchRun(Path())
    for busy_s in ((0.5, 2.0), (1.0, 0.25)):
        run.finish(Outcome(20, [report(i, 10, s, []) for i, s in enumerate(busy_s)]), {})
    assert run.longest_s == (2.0, 1.0)
    cut = Delivery(Manifest(0, 0.0, 2), {"src": 40}, {}, took_s=4.0, longest_s=run.longest_s)
    whole = Delivery(Manifest(1, 0.0, 2), {"src": 20}, {}, took_s=1.7, longest_s=(1.2,))
    unknown = Delivery(Manifest(2, 0.0, 2), {"src": 20}, {}, took_s=9.0)
    assert Window([cut, whole, unknown]).fixed_s == pytest.approx((1.0 + 0.5) / 3)
    assert Window([unknown]).fixed_s is None
    run.finish(Outcome(20), {})
    assert not run.longest_s, "a piece whose tasks do not report"
