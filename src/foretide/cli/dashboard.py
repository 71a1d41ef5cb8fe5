"""``foretide dashboard``: look at a run, finished or running."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from foretide.autoscaler import stopping_on_signals
from foretide.errors import InvalidConfig


def command(
    run: Annotated[Path, typer.Argument(help="a run's folder, or a journal file")],
    host: Annotated[str, typer.Option(help="address to serve on; any but loopback asks readers for the token")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="port to serve on; 0 takes any free one", min=0, max=65535)] = 8765,
    token_file: Annotated[Path | None, typer.Option(help="file that holds the token; without it one is made and printed")] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="no switch between advise and act")] = False,
) -> None:
    """Open the dashboard of a run, finished or running. Example: [bold]foretide dashboard runs/demo[/]"""
    from foretide.web.server import journal_file, serve  # here, so that no other command waits for a web server to be imported

    journal = journal_file(run)
    if not journal.is_file():
        raise InvalidConfig(f"{journal} is not there: give a run's folder that holds journal.jsonl, or a journal file")
    stop = threading.Event()
    with stopping_on_signals(stop), serve(journal, host, port, _token(token_file), control=not read_only) as site:
        console = Console()
        console.print(f"dashboard of [bold]{run}[/]: [bold cyan]{site.url}[/]", highlight=False, soft_wrap=True)
        if token_file is None:
            asked = "reading and switching ask" if site.private else "switching between advise and act asks"
            console.print(f"token, which {asked} for: {site.token}", highlight=False, soft_wrap=True)
        console.print("Ctrl-C ends it.")
        stop.wait()


def _token(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"cannot read the token from {path}: {error}") from error
