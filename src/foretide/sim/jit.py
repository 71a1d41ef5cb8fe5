"""One decorator for compiled entry points, with a cache that never serves stale machine code.

Numba checks only the file of the function itself when it loads cached code; a change in a compiled function of another file would
go unnoticed. So indexes older than any source file of this package are dropped when the package is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

# Compiled code allocates nothing, so it needs no reference counts on the state's arrays: without them it is ten times faster.
_OPTIONS: dict[str, Any] = {"_nrt": False}
_INNER: dict[str, Any] = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, **_OPTIONS}


def _drop_stale(folder: Path) -> None:
    newest = max(source.stat().st_mtime for source in folder.glob("*.py"))
    for index in (folder / "__pycache__").glob("*.nbi"):
        try:
            if index.stat().st_mtime < newest:
                index.unlink()
        except OSError:  # another process dropped it first, or the folder is read-only: then it was installed whole
            continue


_drop_stale(Path(__file__).parent)


def entry(function: F) -> F:
    """Compiled on first use and kept on disk: for functions that Python calls."""
    compiled: F = numba.njit(cache=True, **_OPTIONS)(function)
    return compiled


def inner(function: F) -> F:
    """Compiled into its callers: for functions that only compiled code calls."""
    compiled: F = numba.njit(**_INNER)(function)
    return compiled
