"""``foretide bench``: the published figures again, ours beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from foretide.forecast import FORECASTERS
from foretide.papers import PAPERS
from foretide.papers.forecasting import MODELS, Setting
from foretide.papers.forecasting import table as forecasting_table
from foretide.papers.pages import write
from foretide.papers.paper import Bench

app = typer.Typer(help="Reproduce published figures.", no_args_is_help=True)


@app.callback()
def main() -> None:
    """Reproduce published figures."""


@app.command("papers")
def papers(
    names: Annotated[list[str] | None, typer.Argument(help="papers; default: all")] = None,
    seed: Annotated[int, typer.Option(help="the same seed gives the same events", min=0)] = 1,
    seeds: Annotated[
        int | None,
        typer.Option(help="runs to average where a table repeats its runs", min=1),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="a directory with the authors' loads; default: built-in shapes"),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="train networks too: hours on two cores")
    ] = False,
    write_to: Annotated[
        Path | None, typer.Option("--write", help="renew the tables of the pages in this directory")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="one JSON object on standard output, nothing else")
    ] = False,
) -> None:
    """Run the papers' experiments in the simulator.

    Example: [bold]foretide bench papers drs[/]
    """
    results = {}
    bench = Bench(seed, seeds, data, full)
    for name in [PAPERS[n].name for n in names or PAPERS.names]:
        tables = PAPERS.build(name, bench=bench)
        results[name] = [t.as_dict() for t in tables]
        if write_to is not None:
            write(write_to, name, tables)
        if not as_json:
            typer.echo(f"## {PAPERS[name].source}\n")
            for table in tables:
                typer.echo("\n".join(table.lines()) + "\n")
    if as_json:
        typer.echo(json.dumps(results))


@app.command("forecast")
def forecast(
    models: Annotated[
        str, typer.Option(help="names with commas between; ARIMA is always there")
    ] = ",".join(MODELS),
    days: Annotated[int, typer.Option(help="days of each load", min=3)] = 60,
    window: Annotated[
        float, typer.Option(help="seconds per window; a load's day lasts 1440 s", min=1.0)
    ] = 10.0,
    horizon: Annotated[int, typer.Option(help="windows ahead", min=1)] = 6,
    seeds: Annotated[int, typer.Option(help="trainings to average", min=1)] = 3,
    as_json: Annotated[
        bool, typer.Option("--json", help="one JSON object on standard output, nothing else")
    ] = False,
) -> None:
    """BGElasor's table of forecasters, ours beside the published ratios; trains networks, so it
    takes a while.

    Example: [bold]foretide bench forecast --seeds 1 --days 12[/]
    """
    asked = tuple(
        dict.fromkeys(FORECASTERS[n.strip()].name for n in models.split(",") if n.strip())
    )
    with Console(stderr=True).status("") as status:
        table = forecasting_table(
            Setting(days, window, horizon, seeds, asked), lambda what: status.update(f"{what} ...")
        )
    typer.echo(json.dumps(table.as_dict()) if as_json else "\n".join(table.lines()))
