"""A restarted loop forecasts in its first window with what the last one learned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foretide.apps import app
from foretide.autoscaler import Autoscaler
from foretide.errors import JournalError
from foretide.forecast.retrain import core
from foretide.forecast_memory import ForecastMemory
from foretide.learned import Learned, forecasts_path
from foretide.load import Load
from foretide.sim.environment import Simulation
from foretide.systems import System, system

SMALL = {"lookback": 12, "horizon": 2, "hidden": 8, "rounds": 2}
WAVE = 100 * (1 + 0.5 * np.sin(2 * np.pi * np.arange(600) / 24))
CHAIN = app("twitter-linear")


def bgelasor() -> System:
    pytest.importorskip("jax")
    cadence = replace(system("bgelasor").cadence, fit_every=40)
    return system("bgelasor", forecaster_constants=SMALL, cadence=cadence)


def loop_of(used: System, seconds: int = 6000) -> Autoscaler:
    environment = Simulation(CHAIN, Load("wave", np.repeat(WAVE, 10)[:seconds]))
    return used.autoscaler(CHAIN.topology, environment, environment)


def test_a_restart_goes_on_within_one_window(tmp_path: Path) -> None:
    used, path = bgelasor(), forecasts_path(tmp_path / "journal.jsonl", "bigru")
    first = loop_of(used)
    with Learned(path, ForecastMemory(first, used.forecasts_as, 10.0, 0.0), every=10) as kept:
        for i in range(1, 61):
            kept.note(first.step(i * 10.0))
    source = CHAIN.topology.sources[0]
    assert core(first.forecasters[source]).trained is not None  # type: ignore[attr-defined]

    again = loop_of(used)
    with Learned(path, ForecastMemory(again, used.forecasts_as, 10.0, 630.0)):
        assert len(again.history) == 63  # three windows passed between the two runs
        np.testing.assert_array_equal(again.history.rates(source)[:60], first.history.rates(source))
        assert np.isnan(again.history.rates(source)[60:]).all()
        for name in CHAIN.topology.names:
            old, new = first.forecasters[name], again.forecasters[name]
            recent = first.history.rates(name, 50)
            assert new.forecast(recent, 4) == old.forecast(recent, 4)
        decision = again.step(640.0)
    assert decision.plan is not None
    network = core(again.forecasters[source])
    recent = again.history.offered(source, used.cadence.lookback)
    assert decision.forecasts[source] == network.forecast(
        recent, decision.forecasts[source].horizon
    )


def test_other_windows_or_other_forecasters_start_anew(tmp_path: Path) -> None:
    path, used = tmp_path / "learned-forecasts-auto.npz", system("spea", forecaster="auto")
    first = loop_of(used)
    with Learned(path, ForecastMemory(first, used.forecasts_as, 10.0, 0.0)) as kept:
        for i in range(1, 61):
            kept.note(first.step(i * 10.0))
    content, longer, other = path.read_bytes(), loop_of(used), loop_of(used)
    with Learned(path, ForecastMemory(longer, used.forecasts_as, 30.0, 600.0)):
        assert len(longer.history) == 0
        assert not longer.forecasters
    path.write_bytes(content)
    changed = system("spea", forecaster="auto", quantile=0.9)
    with Learned(path, ForecastMemory(other, changed.forecasts_as, 10.0, 600.0)):
        assert len(other.history) == 60
        assert not other.forecasters


def test_rates_are_kept_for_a_forecaster_that_learns_nothing(tmp_path: Path) -> None:
    path, used = tmp_path / "learned-forecasts-basic.npz", system("srea")
    first = loop_of(used)
    with Learned(path, ForecastMemory(first, used.forecasts_as, 10.0, 0.0)) as kept:
        for i in range(1, 6):
            kept.note(first.step(i * 10.0))
    again = loop_of(used)
    with Learned(path, ForecastMemory(again, used.forecasts_as, 10.0, 50.0)):
        source = CHAIN.topology.sources[0]
        np.testing.assert_array_equal(again.history.rates(source), first.history.rates(source))


@pytest.mark.parametrize("damage", [b"", b"PK", b"{}", b"\x93NUMPY"])
def test_a_damaged_file_is_one_sentence_and_stays(tmp_path: Path, damage: bytes) -> None:
    path, used = tmp_path / "learned-forecasts-basic.npz", system("srea")
    path.write_bytes(damage)
    memory = ForecastMemory(loop_of(used), used.forecasts_as, 10.0, 0.0)
    with (
        pytest.raises(JournalError, match="remove the file to learn anew"),
        Learned(path, memory),
    ):
        pass
    assert path.read_bytes() == damage
