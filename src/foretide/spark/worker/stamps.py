"""Latency from arrival stamps: small mergeable summaries, weighted percentiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from foretide import quantities
from foretide.model import Array, Latency
from foretide.spark.worker.columns import STAMP

KEPT = 256
"""Stamps kept per replica and batch: exact up to that many events, evenly spaced quantiles beyond.
"""


def summary(stamps: Array, kept: int = KEPT) -> Array:
    """At most ``kept`` stamps that stand for all: the middle of each of ``kept`` equal shares of
    the sorted ones.

    >>> summary(np.arange(10.0), kept=5).tolist()
    [1.0, 3.0, 5.0, 7.0, 9.0]
    """
    if len(stamps) <= kept:
        return np.array(stamps, dtype=float)
    at = ((np.arange(kept) + 0.5) * len(stamps) / kept).astype(int)
    return np.asarray(np.sort(stamps)[at], dtype=float)


def read_back(
    folder: Path, files: Mapping[str, Sequence[tuple[str, int]]]
) -> tuple[Array, float, float] | None:
    """(a summary of the stamps, how many, their sum) of what a DataFrame function gave, from the
    first reader's files.
    """
    for reader, held in files.items():
        read = [
            pq.read_table(folder / reader / name, columns=[STAMP])[STAMP].drop_null().to_numpy()
            for name, _ in held
        ]
        stamps = np.concatenate(read)
        return summary(stamps), float(len(stamps)), float(stamps.sum())
    return None


def latency(
    ages_s: Sequence[Array],
    counts: Sequence[float],
    total_s: float,
    target_s: float | None = None,
    mergeable: bool = False,
) -> Latency | None:
    """Percentiles over groups of ages; group i stands for ``counts[i]`` events. ``total_s`` is the
    exact sum of all ages. With ``mergeable`` the record holds the distribution too.

    >>> l = latency([np.array([1.0, 3.0])], [2.0], 4.0, target_s=2.0)
    >>> l.mean_ms, l.p50_ms, l.p99_ms, l.within
    (2000.0, 1000.0, 3000.0, 1.0)
    """
    groups = [(a, c) for a, c in zip(ages_s, counts, strict=True) if len(a)]
    count = sum(c for _, c in groups)
    if not count:
        return None
    ages = np.maximum(np.concatenate([a for a, _ in groups]), 0.0)
    weights = np.concatenate([np.full(len(a), c / len(a)) for a, c in groups])
    return quantities.latency(ages, weights, target_s, total_s / count, mergeable)
