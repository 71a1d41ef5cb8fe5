"""The option ``--pretrained``: a system with a forecaster that learned before."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foretide.errors import InvalidConfig
from foretide.forecast.pretrained import Pretrained, read_pretrained
from foretide.load import Load, read_csv
from foretide.systems import System

PretrainedOption = Annotated[
    Path | None,
    typer.Option("--pretrained", help="a file that foretide train wrote: no waiting to learn"),
]


def with_file(
    system: System, file: Path, window_s: float, forecaster: str | None = None
) -> tuple[System, Pretrained]:
    """The system with the forecaster of the file, which must fit the run."""
    trained = read_pretrained(file)
    if forecaster not in (None, trained.model):
        raise InvalidConfig(
            f"--pretrained {file} holds model '{trained.model}', not '{forecaster}': leave out "
            "--forecaster, or train that model"
        )
    trained.check_window(window_s)
    return system.with_pretrained(trained), trained


def with_past(
    system: System,
    history: Path | None,
    file: Path | None,
    window_s: float,
    forecaster: str | None,
) -> tuple[System, Load | None]:
    """The system with the forecaster of ``--pretrained``, and the past of ``--history`` or, without
    one, of that forecaster.
    """
    past = read_csv(history) if history else None
    if file is None:
        return system, past
    changed, learned = with_file(system, file, window_s, forecaster)
    return changed, past or learned.past
