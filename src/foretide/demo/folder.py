"""The demo's folder: marked as the demo's own, locked while it runs, and emptied of nothing
else.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foretide.errors import InvalidConfig

MARKER = ".foretide-demo"
MADE = (
    "pipeline",
    "journal.jsonl*",
    "learned-*.json*",
    "learned-forecasts-*.npz*",
    "tweets.sqlite*",
    "spark.log",
    "driver.log",
    "report.html",
    "control.json*",
    "kafka",
)
"""What the demo writes into its folder, as patterns."""


@contextmanager
def demo_folder(folder: Path) -> Iterator[Path]:
    """A folder for one demo: made, or cleared of what an earlier demo left there.

    Any other file in it stays. A folder that holds something and was not made by the demo is an
    error, and so is one in which a demo still runs.
    """
    if folder.exists() and not folder.is_dir():
        raise InvalidConfig(f"--folder {folder} is a file: give a directory")
    if folder.exists() and any(folder.iterdir()) and not (folder / MARKER).is_file():
        raise InvalidConfig(
            f"{folder} holds something that is not an older demo: choose an empty folder with "
            "--folder"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(folder / MARKER, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InvalidConfig(
            f"cannot use --folder {folder}: {error.strerror}; choose one you can write to"
        ) from error
    try:
        _lock(fd, folder)
        _lock_pipeline(folder)
        clear(folder)
        yield folder
    finally:
        os.close(fd)


def _lock(fd: int, folder: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InvalidConfig(
            f"a demo is running in {folder}: wait for it to end, or choose another --folder"
        ) from None


def _lock_pipeline(folder: Path) -> None:
    """Nothing is removed under a pipeline that runs, whoever started it."""
    lock = folder / "pipeline" / "lock"
    if lock.is_file():
        with open(lock, "rb") as file:
            _lock(file.fileno(), folder)


def clear(folder: Path) -> None:
    """Remove what an earlier demo wrote, and nothing else."""
    for pattern in MADE:
        for path in folder.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
