"""``foretide train`` and ``--pretrained``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from foretide.cli import app
from foretide.errors import InvalidConfig
from foretide.forecast.pretrained import read_pretrained


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    file = tmp_path / "auto.npz"
    said = invoke("train", "periodic:days=2", "--model", "auto", "--window", "10", "-o", str(file))
    assert "auto learned from" in said
    assert f"foretide run MODULE:PIPELINE --window 10 --pretrained {file}" in said
    return file


def test_a_simulation_uses_the_file(trained: Path) -> None:
    options = ("--app", "twitter-linear", "--load", "periodic:days=1", "--system", "bgelasor")
    said = invoke("simulate", *options, "--window", "10", "--pretrained", str(trained), "--json")
    assert json.loads(said)["systems"][0]["system"] == "bgelasor"
    assert read_pretrained(trained).model == "auto"
    assert np.isfinite(read_pretrained(trained).rates).all()


def test_what_cannot_be_used_is_a_sentence(trained: Path, tmp_path: Path) -> None:
    pipeline = "foretide.examples.words:pipeline"
    with pytest.raises(InvalidConfig, match="windows of 10 s and the run has windows of 5 s"):
        invoke("run", pipeline, "--window", "5", "--pretrained", str(trained))
    with pytest.raises(InvalidConfig, match="holds model 'auto', not 'lr'"):
        invoke("run", pipeline, "--forecaster", "lr", "--pretrained", str(trained))
    with pytest.raises(InvalidConfig, match="there is no directory"):
        invoke("train", "periodic", "--model", "smooth", "-o", str(tmp_path / "no" / "file"))
    with pytest.raises(InvalidConfig, match="did you mean 'bigru'"):
        invoke("train", "periodic", "--model", "bigruu", "-o", str(trained))
