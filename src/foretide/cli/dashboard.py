"""``foretide dashboard``: look at a run, finished or running."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from foretide.autoscaler import stopping_on_signals
from foretide.cli.out import console, say
from foretide.errors import InvalidConfig

HEAD_BYTES = 1 << 20


def command(
    run: Annotated[Path, typer.Argument(help="a run's folder, or a journal file")],
    host: Annotated[
        str, typer.Option(help="address to serve on; other than loopback, readers need the token")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="port to serve on; 0 picks a free one", min=0, max=65535)
    ] = 8765,
    token_file: Annotated[
        Path | None,
        typer.Option(help="file that holds the token; without it a token is made and printed"),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="no switch between advise and act")
    ] = False,
) -> None:
    """Open the dashboard of a run, finished or running.

    Example: [bold]foretide dashboard runs/demo[/]
    """
    # imported here, so that no other command loads a web server
    from foretide.web.server import journal_file, serve

    journal = journal_file(run)
    if journal.is_file():
        _check(journal)
    else:
        journal = run if run.suffix == ".jsonl" else run / "journal.jsonl"
        say(f"{journal} does not exist yet: the page waits for the run to start")
    stop = threading.Event()
    with (
        stopping_on_signals(stop),
        serve(journal, host, port, _token(token_file), control=not read_only) as site,
    ):
        console().print(
            Text.assemble("dashboard of ", (str(run), "bold"), ": ", (site.url, "bold cyan")),
            soft_wrap=True,
        )
        uses = [
            use
            for use, asked in (
                ("reading", site.private),
                ("switching between advise and act", not read_only),
            )
            if asked
        ]
        if token_file is None and uses:
            say(f"token for {' and '.join(uses)}: {site.token}")
        say("Press Ctrl-C to stop.")
        stop.wait()


def _check(journal: Path) -> None:
    """Refuse a file that is no journal; a new journal may not hold a whole line yet."""
    try:
        with open(journal, "rb") as f:
            head = f.read(HEAD_BYTES)
    except OSError as error:
        raise InvalidConfig(f"cannot read the journal {journal}: {error.strerror}") from error
    if b"\n" in head and b'{"run":' not in head:
        raise InvalidConfig(f"{journal} holds no run: it is not a Foretide journal")


def _token(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"cannot read the token from {path}: {error}") from error
