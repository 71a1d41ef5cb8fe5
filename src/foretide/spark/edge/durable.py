"""Writing files so that they survive what they are meant to survive.

A rename makes a file whole for every process of a running machine. After a power cut a file system
may have the new name without the data, unless both were synced in the right order: data first, then
the rename, then the folder that holds the name.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)


def sync_all(folder: Path) -> None:
    """Return when everything written to the file system of ``folder`` is on the disk, whoever wrote
    it: the files of Spark's tasks and of its checkpoint too.
    """
    fd = os.open(folder, os.O_RDONLY)
    try:
        if not hasattr(_libc, "syncfs"):
            os.sync()
        elif _libc.syncfs(fd):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(fd)


def sync(path: Path) -> None:
    """Return when a file, or the names in a folder, are on the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
