"""``foretide bench``: the published figures again, ours beside them."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from foretide.bench import PAPERS

app = typer.Typer(help="Reproduce published figures.", no_args_is_help=True)


@app.callback()
def main() -> None:
    """Reproduce published figures."""


@app.command("papers")
def papers(
    names: Annotated[list[str] | None, typer.Argument(help="papers; default: all")] = None,
    seed: Annotated[int, typer.Option(help="the same seed gives the same events")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output, nothing else")] = False,
) -> None:
    """Run the papers' experiments in the simulator. Example: [bold]foretide bench papers drs[/]"""
    told = {}
    for name in [PAPERS[n].name for n in names or PAPERS.names]:
        tables = PAPERS.build(name, seed=seed)
        told[name] = [t.as_dict() for t in tables]
        if not as_json:
            typer.echo(f"## {PAPERS[name].source}\n")
            for table in tables:
                typer.echo("\n".join(table.lines()) + "\n")
    if as_json:
        typer.echo(json.dumps(told))
