"""``--app``: a recorded run and a pipeline as twins; prices in money; progress and estimates."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from runs import FollowingEnvironment
from typer.testing import CliRunner

from foretide.apps import App, Service
from foretide.cli import app
from foretide.cli.progress import estimates, progress, warn_if_slow
from foretide.cli.scenario import Options, build, money, profiled, target
from foretide.errors import InvalidConfig
from foretide.journal import Journal, Run
from foretide.load import Load
from foretide.model import Decision, Plan, Prices
from foretide.sim.compare import Scenario
from foretide.sim.environment import Simulation
from foretide.sim.events.batch import BatchCosts
from foretide.systems import system
from foretide.topology import Operator, Topology

TOPOLOGY = Topology((Operator("parse"), Operator("store", inputs=("parse",))))
STARTED_AT = 1_700_000_000.0


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded run: three minutes in micro-batches, 2 ms and 30 ms per event."""
    folder = tmp_path_factory.mktemp("runs") / "mine"
    pipeline = App(
        "mine", "two operators", "test", TOPOLOGY,
        {"parse": Service(0.002), "store": Service(0.03)}, arrivals="poisson",
    )  # fmt: skip
    load = Load("rising", np.linspace(20, 60, 180))
    costs = BatchCosts(2.0, task_s=0.0, overheads_s={"parse": 0.3, "store": 0.4})
    environment = Simulation(pipeline, load, mode="batch", batch=costs, window_s=10.0)
    run = Run("mine", "ds2", TOPOLOGY, 10.0, STARTED_AT, "act", 8.0, settings={"trigger_s": 2.0})
    with Journal(folder / "journal.jsonl", run) as journal:
        for i in range(18):
            environment.apply(Plan({"store": 3}))
            snapshot = environment.read(10.0 * (i + 1))
            journal.append(
                Decision(
                    STARTED_AT + snapshot.at,
                    "observed",
                    "act",
                    replace(snapshot, at=STARTED_AT + snapshot.at),
                )
            )
    return folder


def test_a_recorded_run_is_an_app_with_its_own_load_and_target(run_folder: Path) -> None:
    twin = target(str(run_folder), 60.0)
    assert twin.app.name == "mine"
    assert twin.app.service["store"].mean_s == pytest.approx(0.03, rel=0.02)
    assert twin.app.target_latency_s == 8.0
    assert twin.load is not None
    assert twin.load.started_at == STARTED_AT
    assert twin.load.total == pytest.approx(7200, rel=0.1)
    scenario = build(Options(str(run_folder), target_s=5.0, price="0.36/h"), Prices())
    assert (scenario.engine, scenario.app.target_latency_s) == ("batch", 5.0)
    assert scenario.conditions.started_at == STARTED_AT
    assert scenario.prices.replica_second == pytest.approx(1e-4)
    assert build(Options(str(run_folder), load="progressive"), Prices()).load.name == "progressive"


def test_compare_and_calibrate_take_a_run(run_folder: Path) -> None:
    compared = CliRunner().invoke(
        app,
        ["compare", "--app", str(run_folder), "--systems", "ds2,static-peak", "--price", "0.19/h",
         "--processes", "1"],
        catch_exceptions=False,
    )  # fmt: skip
    assert "mine under as recorded in" in compared.stdout
    assert " cost " in compared.stdout
    fitted = CliRunner().invoke(app, ["calibrate", str(run_folder), "--json"])
    store = json.loads(fitted.stdout)["operators"][1]
    assert store["operator"] == "store"
    assert store["service_ms"] == pytest.approx(30, rel=0.02)
    assert store["batch_overhead_s"] == pytest.approx(0.4, abs=0.1)
    shown = CliRunner().invoke(app, ["calibrate", str(run_folder)]).stdout
    assert f"foretide compare --app {run_folder}" in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("compare", "--app", "{folder}"), "there is no journal"),
        (("compare", "--app", "{folder}/none"), "give an app's name, a run's folder, or MODULE"),
        (("compare", "--price", "cheap"), "write the price of a replica as 0.19/h"),
        (("compare", "--price", "-1/h"), "write the price of a replica as 0.19/h"),
        (("compare", "--target", "0"), "the latency target is more than 0 seconds"),
        (("compare", "--share", "95"), "--share 95: give a number between 0 and 1, as 0.95"),
        (("compare", "--report", "{folder}"), "is a directory: give a file"),
        (("compare", "--report", "{folder}/file/page.html"), "cannot be written: "),
        (("forecast", "stable", "--report", "{folder}/file/page.html"), "cannot be written: "),
        (("calibrate", "{folder}"), "give the folder of a run, or its journal"),
    ],
)
def test_mistakes_are_sentences_before_anything_runs(
    arguments: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidConfig, match=says):
        CliRunner().invoke(
            app, [a.format(folder=tmp_path) for a in arguments], catch_exceptions=False
        )


def test_money_keeps_the_published_proportions() -> None:
    prices = money("0.19/h")
    assert prices.replica_second == pytest.approx(0.19 / 3600)
    assert prices.break_even_s == pytest.approx(Prices().break_even_s)


def test_quick_takes_the_end_of_the_load() -> None:
    scenario = build(Options("chain", load="periodic:days=60", window_s=30.0, quick=True), Prices())
    assert scenario.windows == 2_000


def long_scenario() -> Scenario:
    return build(Options("chain", load="periodic:days=60", window_s=10.0), Prices())


def test_a_long_comparison_is_announced_with_an_estimate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scenario = long_scenario()
    warn_if_slow(scenario, [system("srea")], lambda *_: {"srea": 7300.0, "static": 3.0})
    said = " ".join(capsys.readouterr().err.split())
    assert f"{scenario.windows:,} windows will take about: srea 2.0 h. Cheaper: --fast" in said
    warn_if_slow(scenario, [system("srea")], lambda *_: {"srea": 29.0})
    assert capsys.readouterr().err == ""


def test_an_estimate_is_the_pace_of_the_first_windows_and_what_comes_before_it_once() -> None:
    """Nine seconds until the first window, 0.3 for each after it: four are enough to know."""
    times = iter([0.0, *(9.0 + 0.3 * window for window in range(100))])
    scenario = long_scenario()
    taken = estimates(scenario, [system("srea")], lambda: next(times), FollowingEnvironment)
    assert taken["srea"] == pytest.approx(9.0 + 0.3 * (scenario.windows - 1))
    assert next(times) == pytest.approx(9.0 + 0.3 * 5)


def test_a_pipe_gets_lines() -> None:
    with progress(Console(stderr=True, force_terminal=False)) as report:
        assert type(report).__name__ == "Lines"


@pytest.mark.spark
def test_a_pipeline_is_profiled(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import time\n"
        "from foretide.load import load\n"
        "from foretide.spark import Pipeline\n"
        'pipeline = Pipeline("mine", trigger_s=1.0)\n'
        'pipeline.source("numbers", load("stable:mean=10,days=1"))\n'
        '@pipeline.operator(inputs="numbers", schema="id long")\n'
        "def slow(event):\n"
        "    time.sleep(0.02)\n"
        '    return {"id": event["id"]}\n'
    )
    profile = profiled(f"{tmp_path / 'mine.py'}:pipeline", 40.0)
    assert profile.app.topology.names == ("slow",)
    assert 0.02 <= profile.app.service["slow"].mean_s < 0.06
