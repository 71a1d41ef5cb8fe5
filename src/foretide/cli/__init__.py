"""The command line: one file per command, thin; what a command does lives in the library.

Every failure that Foretide raises on purpose ends as one sentence on standard error and exit code
2.
"""

from __future__ import annotations

import sys
import warnings
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from foretide import __version__
from foretide.cli import (
    attach_report,
    bench,
    calibrate,
    catalog,
    dashboard,
    demo,
    examples,
    forecast,
    profile,
    report,
    run,
    simulate,
    submit,
    systems,
    train,
)
from foretide.cli.out import labelled
from foretide.errors import ForetideError


class _App(typer.Typer):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        warnings.showwarning = _warned
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(
                    errors="replace"
                )  # a place that cannot write a sign gets a question mark
        try:
            return super().__call__(*args, **kwargs)
        except ForetideError as error:
            labelled("error:", "bold red", str(error))
            raise SystemExit(2) from None


_shown = warnings.showwarning


def _warned(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Foretide's own warnings are sentences for people; those of libraries keep their file and
    line.
    """
    if category is UserWarning:
        labelled("warning:", "yellow", str(message))
    else:
        _shown(message, category, *where, **more)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"foretide {__version__}")
        raise typer.Exit


app = _App(
    name="foretide",
    help="Scales streaming pipelines on Apache Spark before the load arrives.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="the version")
    ] = False,
) -> None:
    """Scales streaming pipelines on Apache Spark before the load arrives."""


app.command("demo")(demo.command)
app.command("run")(run.command)
app.command("submit", context_settings=submit.SETTINGS)(submit.command)
app.command("dashboard")(dashboard.command)
app.command("simulate")(simulate.simulate)
app.command("compare")(simulate.compare)
app.command("calibrate")(calibrate.command)
app.command("forecast")(forecast.command)
app.command("profile")(profile.command)
app.command("train")(train.command)
app.command("attach-report")(attach_report.command)
app.command("report")(report.command)
app.command("systems")(systems.list_systems)
app.command("models")(systems.list_models)
app.command("apps")(catalog.list_apps)
app.command("loads")(catalog.list_loads)
app.command("examples")(examples.command)
app.add_typer(bench.app, name="bench")
