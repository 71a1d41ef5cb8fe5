"""Runs: many independent simulations on the machine's cores, in the given order."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

C = TypeVar("C")
R = TypeVar("R")


def side_by_side(
    run: Callable[[C], R], cases: Sequence[C], processes: int | None = None
) -> list[R]:
    """``[run(c) for c in cases]`` on ``processes`` processes (default: one per core). ``run`` must
    be a module's function.
    """
    workers = min(processes or os.cpu_count() or 1, len(cases))
    if workers <= 1:
        return [run(case) for case in cases]
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(run, cases))
