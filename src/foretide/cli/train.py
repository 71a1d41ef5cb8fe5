"""``foretide train``: a forecaster learns from a load before a run needs it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from foretide.cli.out import labelled, say
from foretide.cli.simulate import (
    CountColumnOption,
    RateColumnOption,
    ScaleOption,
    SpeedOption,
    TimeColumnOption,
    UnitOption,
)
from foretide.errors import InvalidConfig
from foretide.forecast import FORECASTERS
from foretide.forecast.pretrained import train, write_pretrained
from foretide.load import CsvFormat
from foretide.load import load as load_named


def command(
    load: Annotated[str, typer.Argument(help="a shape (see: foretide loads) or a CSV file")],
    out: Annotated[Path, typer.Option("-o", "--out", help="the file to write")],
    model: Annotated[
        str, typer.Option("--model", help="the forecaster; see: foretide models")
    ] = "bigru",
    window_s: Annotated[
        float | None,
        typer.Option("--window", help="seconds per window of the runs to come; default: per row"),
    ] = None,
    speed: SpeedOption = None,
    scale: ScaleOption = 1.0,
    time_column: TimeColumnOption = None,
    count_column: CountColumnOption = None,
    rate_column: RateColumnOption = None,
    unit: UnitOption = None,
) -> None:
    """Train a forecaster on a load, for run --pretrained and simulate --pretrained.

    Example: [bold]foretide train periodic --model bigru -o bigru.npz[/]
    """
    name = FORECASTERS[model].name
    if window_s is not None and not 0 < window_s < float("inf"):
        raise InvalidConfig(f"--window {window_s:g}: a window lasts more than 0 seconds")
    if not out.parent.is_dir():
        raise InvalidConfig(f"-o {out}: there is no directory {out.parent}")
    form = CsvFormat(time_column, count_column, rate_column, unit)
    series = load_named(load, speed, scale, form)
    for note in series.notes:
        labelled("note:", "cyan", note)
    with Console(stderr=True).status(f"{name} learns from {series.name} ..."):
        trained = train(series, name, window_s or series.interval_s)
    write_pretrained(out, trained)
    windows = f"{len(series.rates(trained.window_s)):,} windows of {trained.window_s:g} s"
    say(f"{name} learned from {windows}: {out}, {out.stat().st_size / 1e6:.1f} MB")
    say(f"use it: foretide run MODULE:PIPELINE --window {trained.window_s:g} --pretrained {out}")
