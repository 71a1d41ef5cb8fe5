"""Sketches against the exact percentiles of everything that went into them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.journal import decode, encode
from foretide.model import Decision, Sample, Snapshot
from foretide.quantities import latency, merged_latency
from foretide.sketch import ACCURACY, merged, quantiles, sketch

WINDOWS = st.lists(st.lists(st.floats(1e-4, 1e4), min_size=1, max_size=60), min_size=1, max_size=8)


@settings(deadline=None, max_examples=60)
@given(WINDOWS, st.sampled_from([0.5, 0.9, 0.99]))
def test_merged_sketches_have_the_percentiles_of_all_events(
    windows: list[list[float]], share: float
) -> None:
    whole = merged(sketch(np.array(w)) for w in windows)
    every_ms = np.sort(np.concatenate([np.array(w) for w in windows])) * 1e3
    rank = share * (len(every_ms) - 1)
    low, high = every_ms[int(np.floor(rank))], every_ms[int(np.ceil(rank))]
    slack = ACCURACY + 0.001
    assert low * (1 - slack) <= quantiles(whole, (share,))[0] <= high * (1 + slack)


def test_weights_count_events() -> None:
    assert sketch(np.array([1.0, 2.0]), np.array([3.0, 1.0])) == sketch(
        np.array([1.0, 1.0, 1.0, 2.0])
    )


def test_an_age_of_zero_is_a_small_latency_and_nothing_is_no_sketch() -> None:
    assert quantiles(sketch(np.zeros(5)), (0.5,))[0] < 0.01
    assert merged([]) == (0, ())


def test_a_window_of_many_events_is_a_short_journal_line() -> None:
    rng = np.random.default_rng(1)
    ages_s = rng.lognormal(0.7, 0.5, 20_000)
    window = latency(ages_s, target_s=5.0, mergeable=True)
    decision = Decision(
        1, "observed", "act", Snapshot(1, 10, {"a": Sample(1, 1, 0, 1)}, latency=window)
    )
    line = encode(decision)
    assert len(line) < 3000
    read = decode(line)
    assert isinstance(read, Decision)
    assert read.snapshot is not None
    assert read.snapshot.latency == window


def test_a_run_has_percentiles_where_every_window_has_a_sketch() -> None:
    rng = np.random.default_rng(2)
    quiet, busy = rng.uniform(0.1, 0.2, 900), rng.uniform(4, 5, 100)
    parts = [latency(ages, mergeable=True) for ages in (quiet, busy)]
    whole = merged_latency(parts)
    assert whole is not None
    every_ms = np.concatenate((quiet, busy)) * 1e3
    assert whole.p50_ms == pytest.approx(np.quantile(every_ms, 0.5), rel=0.02)
    assert whole.p99_ms == pytest.approx(np.quantile(every_ms, 0.99), rel=0.02)
    assert whole.mean_ms == pytest.approx(every_ms.mean())
    without = merged_latency([*parts, latency(np.array([1.0]))])
    assert without is not None
    assert without.sketch is None
    assert without.p50_ms == max(p.p50_ms for p in parts if p)
