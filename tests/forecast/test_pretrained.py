"""Pretrained forecasters: written, read, refused, and at work in a loop from its first window."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from foretide.apps import app
from foretide.errors import InvalidConfig
from foretide.forecast.pretrained import (
    Pretrained,
    read_pretrained,
    train,
    write_pretrained,
)
from foretide.forecast.retrain import lesson
from foretide.forecast.state_file import decoded, encoded
from foretide.load import Load
from foretide.sim.environment import Simulation
from foretide.systems import system

SMALL = {"lookback": 12, "horizon": 2, "hidden": 8, "rounds": 3}


def wave(windows: int, level: float = 100.0) -> Load:
    rates = level * (1 + 0.5 * np.sin(2 * np.pi * np.arange(windows) / 24))
    return Load("wave", rates * 10.0, interval_s=10.0, started_at=0.0)


@pytest.fixture(scope="module")
def network() -> Pretrained:
    pytest.importorskip("jax")
    return train(wave(400), "bigru", 10.0, **SMALL)


def test_a_file_holds_the_model_and_the_end_of_its_load(
    network: Pretrained, tmp_path: Path
) -> None:
    write_pretrained(tmp_path / "bigru.npz", network)
    again = read_pretrained(tmp_path / "bigru.npz")
    assert (again.model, dict(again.constants)) == ("bigru", SMALL)
    assert (again.past.started_at, again.past.duration_s) == (0.0, 4000.0)
    np.testing.assert_array_equal(again.past.rates(), wave(400).rates())
    recent = wave(500).rates()
    assert again.build().forecast(recent, 3) == network.build().forecast(recent, 3)
    assert again.digest == network.digest


@pytest.mark.parametrize("model", ["smooth", "auto", "median-lags", "basic"])
def test_every_kind_of_model_can_be_trained(model: str, tmp_path: Path) -> None:
    trained = train(wave(400), model, 10.0)
    write_pretrained(tmp_path / "file", trained)
    recent = wave(430).rates()
    expected = trained.build().forecast(recent, 2)
    assert read_pretrained(tmp_path / "file").build().forecast(recent, 2) == expected


def test_a_loop_forecasts_with_it_in_its_first_window(network: Pretrained) -> None:
    chain = app("twitter-linear")
    environment = Simulation(chain, wave(60))
    used = system("bgelasor").with_pretrained(network).remembering(network.past.rates())
    loop = used.autoscaler(chain.topology, environment, environment)
    first = loop.step(10.0)
    assert set(first.forecasts) == set(chain.topology.sources)
    source = chain.topology.sources[0]
    expected = network.build().forecast(np.append(network.past.rates(), 100.0), 1).mean[0]
    assert first.forecasts[source].mean[0] == pytest.approx(expected, rel=0.2)
    assert first.forecasts[source].mean[0] != pytest.approx(loop.history.rates(source)[-1])
    assert first.plan is not None


def test_it_learns_anew_from_its_own_load_and_the_new_windows(network: Pretrained) -> None:
    used = system("bgelasor").with_pretrained(network).remembering(network.past.rates())
    assert len(lesson(used.new_forecaster(), np.ones(7))) == 407


def test_too_short_a_load_is_a_sentence() -> None:
    pytest.importorskip("jax")
    with pytest.raises(InvalidConfig, match="has 20 windows of 10 s, too few to train"):
        train(wave(20), "bigru", 10.0)


def test_windows_of_another_length_are_refused(network: Pretrained) -> None:
    network.check_window(10.0)
    with pytest.raises(InvalidConfig, match="run with --window 10, or train with --window 5"):
        network.check_window(5.0)


def content(trained: Pretrained, **changes: object) -> bytes:
    fields = {
        "kind": "foretide pretrained forecaster",
        "version": 1,
        "model": trained.model,
        "constants": trained.constants,
        "state": trained.state,
        "window_s": trained.window_s,
        "rates": trained.rates,
        "load": trained.load,
        "ended_at": trained.ended_at,
    }
    return encoded(fields | changes)


class Harm:
    """Unpickling this would call a function."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, ("harmed",)


def foreign(trained: Pretrained, tmp_path: Path) -> dict[str, bytes]:
    good = content(trained)
    np.savez(tmp_path / "object.npz", state=np.array([{"kind": 1}], dtype=object))
    return {
        "empty": b"",
        "text": b"hello",
        "a pickle": pickle.dumps(Harm()),
        "cut": good[: len(good) // 2],
        "a byte changed": good[:2000] + bytes([good[2000] ^ 255]) + good[2001:],
        "an array of objects": (tmp_path / "object.npz").read_bytes(),
        "another kind": encoded({"kind": "other"}),
        "a newer version": content(trained, version=2),
        "an unknown model": content(trained, model="bigrue"),
        "unknown constants": content(trained, constants={"depth": 3}),
        "no state": content(trained, state={}),
        "negative rates": content(trained, rates=-trained.rates),
        "no window": content(trained, window_s=0.0),
    }


def test_a_damaged_or_foreign_file_is_a_sentence(network: Pretrained, tmp_path: Path) -> None:
    file = tmp_path / "file.npz"
    file.write_bytes(content(network))
    read_pretrained(file)
    for name, data in foreign(network, tmp_path).items():
        file.write_bytes(data)
        with pytest.raises(InvalidConfig, match=r"cannot use .*foretide train LOAD") as error:
            read_pretrained(file)
        assert "\n" not in str(error.value), name
    with pytest.raises(InvalidConfig, match=r"cannot read .*: No such file"):
        read_pretrained(tmp_path / "absent")


def test_a_file_that_would_fill_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foretide.forecast.state_file.LARGEST_BYTES", 1000)
    with pytest.raises(InvalidConfig, match="more than"):
        decoded(encoded({"rates": np.zeros(1000)}))
