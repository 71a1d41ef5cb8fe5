"""``foretide demo --app``: every example under the demo's load, and errors a user can act on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from foretide.cli import app
from foretide.cli.demo_app import APPS, between, example, in_and_out
from foretide.demo.tweets import demo_load
from foretide.errors import InvalidConfig, MissingExtra
from foretide.examples.database import SqliteTable
from foretide.spark import Generator
from foretide.spark.edge.protocol import Manifest
from foretide.spark.run.accounts import Accounts
from foretide.topology import Operator, Topology


@pytest.mark.parametrize("name", APPS)
def test_every_example_gets_the_load_and_keeps_its_tables_in_the_folder(
    name: str, tmp_path: Path
) -> None:
    load = between(demo_load(120), APPS[name])
    try:
        declared = example(name, load, tmp_path)
    except MissingExtra as error:
        pytest.skip(str(error))
    assert len(declared.topology().names) >= 2
    for source in declared.sources.values():
        assert isinstance(source.open, Generator)
        assert source.open.load is load
        assert source.open.after_s > 0
    tables = [s.write for s in declared.sinks.values() if isinstance(s.write, SqliteTable)]
    assert all(t.path.parent == tmp_path for t in tables)
    assert tables or all(s.write is None for s in declared.sinks.values())


def test_the_load_goes_from_the_app_s_rest_to_its_top() -> None:
    rates = between(demo_load(600), APPS["opinion"]).rates()
    assert np.quantile(rates, 0.1) == pytest.approx(APPS["opinion"].rest, rel=0.3)
    assert rates.max() == pytest.approx(APPS["opinion"].top, rel=0.2)
    assert rates.min() >= 0


def test_what_cannot_run_is_a_sentence(tmp_path: Path) -> None:
    def invoke(*options: str) -> None:
        place = ["--folder", str(tmp_path / "demo")]
        CliRunner().invoke(app, ["demo", *options, *place], catch_exceptions=False)

    with pytest.raises(InvalidConfig, match="unknown demo app 'dnss'; did you mean 'dns'"):
        invoke("--app", "dnss")
    with pytest.raises(InvalidConfig, match="goes with the demo's own pipeline"):
        invoke("--app", "dns", "--edges", "kafka")


def test_events_are_counted_at_the_sources_and_at_the_sinks() -> None:
    topology = Topology((Operator("parse"), Operator("store", ("parse",))))
    accounts = Accounts(
        {
            "parse": Manifest(3, 1.0, 1, {"lines": 120}, {"to.store": 100}),
            "store": Manifest(2, 1.0, 1, {"parse": 90}, {"sink.table": 80, "dead": 10}),
        }
    )
    running: Any = SimpleNamespace(accounts=accounts, topology=topology)
    assert in_and_out(running) == {"in": 120, "out": 80}
