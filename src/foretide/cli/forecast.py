"""``foretide forecast``: forecasters on a load, scored walk-forward."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from foretide.cli.out import check_writable, console, labelled, say, titled
from foretide.cli.simulate import (
    CountColumnOption,
    RateColumnOption,
    TimeColumnOption,
    UnitOption,
)
from foretide.errors import InvalidConfig
from foretide.forecast import FORECASTERS
from foretide.forecast.evaluate import stride
from foretide.forecast.leaderboard import Leaderboard, leaderboard
from foretide.load import CsvFormat, Load
from foretide.load import load as load_named
from foretide.report.forecasts import COLUMNS, cell, verdict, write_forecasts

SHOWN = [c for c in COLUMNS if c[1] not in ("origins", "seeds")]
DEFAULT = "auto,basic,smooth,lr,fft,regression,lr-lags,median-lags,seasonal,seasonal-lags"


def command(
    load: Annotated[str, typer.Argument(help="a shape (see: foretide loads) or a CSV file")],
    models: Annotated[
        str, typer.Option(help="names with commas between (see: foretide models), or: all")
    ] = DEFAULT,
    horizon: Annotated[int, typer.Option(help="windows ahead", min=1)] = 6,
    seeds: Annotated[int, typer.Option(help="runs to average where a model is random", min=1)] = 1,
    every: Annotated[
        int | None,
        typer.Option(
            help="score every n-th window; default: about 2,000 windows of the last sixth", min=1
        ),
    ] = None,
    time_column: TimeColumnOption = None,
    count_column: CountColumnOption = None,
    rate_column: RateColumnOption = None,
    unit: UnitOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="one JSON object on standard output, nothing else")
    ] = False,
    report: Annotated[
        Path | None, typer.Option("--report", help="write an HTML report to this file")
    ] = None,
) -> None:
    """Score forecasters walk-forward on the last sixth of a load; they learn from what came before.

    Example: [bold]foretide forecast periodic --models basic,auto --horizon 6[/]
    """
    if report is not None:
        check_writable(report)
    series = load_named(load, form=CsvFormat(time_column, count_column, rate_column, unit))
    for note in series.notes:
        labelled("note:", "cyan", note)
    step = every or stride(len(series))
    with Console(stderr=True).status("") as status:
        board = leaderboard(
            series.rates(),
            _models(models),
            horizon,
            seeds,
            step,
            lambda model: status.update(f"{model} ..."),
        )
    for name, why in board.left_out.items():
        labelled("left out:", "yellow", f"{name}: {why}")
    if report is not None:
        write_forecasts(report, series, board, shlex.join(["foretide", *sys.argv[1:]]))
    if as_json:
        sys.stdout.write(json.dumps(as_dict(series, board), allow_nan=False) + "\n")
        return
    _print(series, board)
    if report is not None:
        say(f"report: {report}")


def as_dict(load: Load, board: Leaderboard) -> dict[str, object]:
    """The JSON contract of ``foretide forecast``."""
    return {
        "load": load.name,
        "rows": len(load),
        "horizon": board.horizon,
        "every": board.every,
        "models": [asdict(s) for s in board.scores],
    }


def _models(names: str) -> list[str] | None:
    if names.strip() == "all":
        return None
    wanted = list(dict.fromkeys(filter(None, (n.strip() for n in names.split(",")))))
    if not wanted:
        raise InvalidConfig("--models is empty: give names with commas between, or 'all'")
    return [FORECASTERS[n].name for n in wanted]


def _print(load: Load, board: Leaderboard) -> None:
    origins = max(s.origins for s in board.scores)
    title = f"{load.name}: {len(load):,} rows, {board.horizon} windows ahead, {origins:,} origins"
    table = titled(title + (f", every {board.every}th window" if board.every > 1 else ""))
    table.add_column("model", no_wrap=True)
    for label, _ in SHOWN:
        table.add_column(label, justify="right")
    for score in board.scores:
        table.add_row(score.model, *(cell(score, key) for _, key in SHOWN))
    screen = console()
    screen.print(table)
    screen.print(verdict(board))
