"""Decorators for compiled functions, with a cache that never serves stale machine code.

Numba checks only the file of the function itself when it loads cached code; a change in a compiled
function of another file would go unnoticed. So indexes older than any source file of the packages
with compiled code are dropped when this module is imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])
COMPILED_PACKAGES = ("balance", "forecast", "plan", "sim")


def _drop_stale(root: Path) -> None:
    folders = [root / name for name in COMPILED_PACKAGES]
    newest = max(
        (source.stat().st_mtime for folder in folders for source in folder.rglob("*.py")),
        default=0.0,
    )
    for index in (index for folder in folders for index in folder.rglob("__pycache__/*.nbi")):
        try:
            if index.stat().st_mtime < newest:
                index.unlink()
        except OSError:
            # Another process dropped it first, or the folder is read-only: an installed package,
            # whose index is not stale.
            continue


_drop_stale(Path(__file__).parent)


def is_compiled(package: str) -> bool:
    """Whether machine code of a package is on disk, or cannot be looked for: where the package's
    folder is read-only, Numba keeps it elsewhere.
    """
    folder = Path(__file__).parent / package
    return not os.access(folder, os.W_OK) or any(folder.rglob("__pycache__/*.nbi"))


def entry(function: F) -> F:
    """Compiled on first use and kept on disk: for functions that Python calls."""
    compile_: Any = numba.njit(cache=True)
    return cast(F, compile_(function))


def inner(function: F) -> F:
    """Compiled into its callers: for functions that compiled code calls."""
    compile_: Any = numba.njit
    return cast(F, compile_(function))


# Code that allocates nothing needs no reference counts on the arrays it is given: without them an
# engine is ten times faster.
_LEAN: dict[str, Any] = {"_nrt": False}
_LEAN_INNER: dict[str, Any] = {
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    **_LEAN,
}


def lean_entry(function: F) -> F:
    """``entry`` for code that neither allocates nor slices arrays."""
    compile_: Any = numba.njit(cache=True, **_LEAN)
    return cast(F, compile_(function))


def lean_inner(function: F) -> F:
    """``inner`` for code that neither allocates nor slices arrays; Python cannot call it."""
    compile_: Any = numba.njit(**_LEAN_INNER)
    return cast(F, compile_(function))
