"""A forecast that knows what comes is ahead of the load; one that repeats what it sees is not."""

import numpy as np
import pytest

from foretide.figures.ahead import ahead
from foretide.figures.record import RunRecord
from foretide.journal import Run
from foretide.model import Decision, Forecast, Sample, Snapshot
from foretide.topology import Operator, Topology

TOPOLOGY = Topology((Operator("parse"),))
RATES = [20.0, 20.0, 60.0, 140.0, 60.0, 20.0, 20.0, 0.0, 0.0]


def journal(knows: bool) -> RunRecord:
    """Windows of 5 s; every forecast is two windows long."""
    decisions = []
    for i, rate in enumerate(RATES):
        coming = [*RATES, 0.0, 0.0][i + 1 : i + 3] if knows else [rate, rate]
        sample = Sample(5 * rate, 5 * rate, 0, 1, busy_s=1.0, offered=5 * rate)
        snapshot = Snapshot(5.0 * (i + 1), 5.0, {"parse": sample})
        forecasts = {"parse": Forecast.of(np.array(coming))}
        decisions.append(Decision(snapshot.at, "unchanged", "act", snapshot, forecasts))
    return RunRecord.of_journal(Run("demo", "foretide", TOPOLOGY, 5.0, 0.0), decisions)


def test_a_forecast_that_knows_what_comes_is_ahead() -> None:
    seen = ahead(journal(knows=True))
    assert seen is not None
    assert (seen.windows, seen.error_ratio, seen.seconds) == (5, 0.0, 10.0)
    assert seen.share == pytest.approx(4 / 5), "from 60 to 60 there is nothing to be ahead of"
    assert str(seen) == (
        "Forecast 10 s ahead: nearer to the load that came than the load of the moment in 80 % of "
        "5 windows; its errors were 0.00 times as large."
    )


def test_a_forecast_that_repeats_what_it_sees_is_never_ahead() -> None:
    seen = ahead(journal(knows=False))
    assert seen is not None
    assert (seen.share, seen.error_ratio) == (0.0, 1.0)


def test_a_run_without_forecasts_says_nothing() -> None:
    assert ahead(RunRecord.of_journal(Run("demo", "srea", TOPOLOGY, 5.0, 0.0), [])) is None
