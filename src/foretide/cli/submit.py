"""``foretide submit``: spark-submit, with Foretide attached to the application."""

from __future__ import annotations

import typer

SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def command(context: typer.Context) -> None:
    """Submit a PySpark application and attach to it. Takes spark-submit's own options; settings are
    [bold]--conf spark.foretide.target=10[/] (also mode, maxExecutors, share, targets, window).

    Example: [bold]foretide submit --master yarn --conf spark.foretide.target=10 app.py[/]
    """
    from foretide.spark.attach.submit import submit

    if not context.args or context.args[0] in ("-h", "--help"):
        typer.echo(context.get_help())
        return
    submit(context.args)
