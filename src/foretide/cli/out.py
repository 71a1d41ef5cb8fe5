"""What commands print with: names, paths and reasons are shown as they are, never read as
markup.
"""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from foretide.errors import InvalidConfig

WIDE = 400


def console() -> Console:
    """Standard output; where it is no terminal, wide enough that no line of a table is broken or
    cut.
    """
    screen = Console(markup=False, highlight=False)
    return (
        screen
        if screen.is_terminal
        else Console(markup=False, highlight=False, width=max(screen.width, WIDE))
    )


def say(text: str) -> None:
    """One line on standard output, however long: paths in it can be copied."""
    console().print(text, soft_wrap=True)


def labelled(label: str, style: str, text: str) -> None:
    """One line on standard error: a label in colour, then the text."""
    Console(stderr=True).print(
        Text.assemble((label, style), f" {text}"), highlight=False, soft_wrap=True
    )


def titled(title: str) -> Table:
    """A plain table that also reads well when piped to a file."""
    return Table(title=Text(title), title_justify="left", box=None, pad_edge=False)


def check_writable(file: Path) -> None:
    """Raise InvalidConfig where a report could not be written, before the work for it is done."""
    if file.is_dir():
        raise InvalidConfig(f"--report {file} is a directory: give a file, as {file}/report.html")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        writable = os.access(file if file.exists() else file.parent, os.W_OK)
    except OSError as error:
        raise InvalidConfig(f"--report {file} cannot be written: {error.strerror}") from error
    if not writable:
        raise InvalidConfig(f"--report {file} cannot be written: choose another place")
