import json
from pathlib import Path

import pytest
from runs import FollowingEnvironment
from typer.testing import CliRunner

from foretide.cli import app
from foretide.cli.systems import FIRST
from foretide.errors import InvalidConfig
from foretide.figures.comparison import Comparison
from foretide.sim import compare as comparing
from foretide.systems import SYSTEMS

KEYS = {
    "system",
    "cost",
    "cost_ratio",
    "target_cost_ratio",
    "replica_seconds",
    "adaptations",
    "saved_resources",
    "throughput_degradation",
    "processed_share",
    "latency_mean_ms",
    "latency_p50_ms",
    "latency_p90_ms",
    "latency_p99_ms",
    "slo_share",
    "input_mape",
    "replica_mape",
    "utilization_mean",
    "utilization_max",
    "need_share",
    "saved_cost",
}


@pytest.fixture(autouse=True)
def quick_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands on a scripted world in this process; the engine has tests of its own."""
    real = comparing.compare

    def quick(
        case: comparing.Scenario, systems: list, progress: comparing.Progress, processes: int | None
    ) -> Comparison:
        return real(case, systems, progress, 1, FollowingEnvironment)

    monkeypatch.setattr(comparing, "compare", quick)


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_compare_prints_one_json_object_and_nothing_else() -> None:
    found = json.loads(invoke("compare", "--app", "chain", "--systems", "srea,static", "--json"))
    assert set(found) == {
        "app",
        "load",
        "window_s",
        "lead_s",
        "warm_up_s",
        "share",
        "optimum_cost",
        "target_optimum_cost",
        "systems",
    }
    assert [s["system"] for s in found["systems"]] == ["srea", "static"]
    assert all(set(s) == KEYS for s in found["systems"])
    assert (found["app"], found["load"], found["window_s"]) == (
        "chain",
        "stable:mean=50,days=1",
        30.0,
    )


def test_compare_after_a_warm_up_says_so(tmp_path: Path) -> None:
    report = tmp_path / "compare.html"
    arguments = ("--app", "chain", "--systems", "srea", "--lead", "10", "--warm-up", "600")
    assert json.loads(invoke("compare", *arguments, "--json"))["warm_up_s"] == 600.0
    assert ", after 600 s" in invoke("compare", *arguments, "--report", str(report))
    page = report.read_text()
    assert "warm-up</dt><dd>10 min" in page
    assert "lead time</dt><dd>10 s" in page


def test_another_share_is_promised_and_the_report_says_so(tmp_path: Path) -> None:
    report = tmp_path / "compare.html"
    arguments = ("compare", "--app", "chain", "--systems", "srea", "--share", "0.8")
    assert json.loads(invoke(*arguments, "--json"))["share"] == 0.8
    invoke(*arguments, "--report", str(report))
    assert "latency target</dt><dd>80 % within " in report.read_text()


def test_simulate_is_a_comparison_of_one() -> None:
    found = json.loads(
        invoke("simulate", "--app", "two-paths", "--load", "progressive", "--window", "5", "--json")
    )
    assert [s["system"] for s in found["systems"]] == ["foretide"]
    assert found["window_s"] == 5.0


def test_people_get_a_table_a_sentence_and_a_report(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text = invoke(
        "compare", "--app", "chain", "--systems", "srea,static-peak", "--report", str(page)
    )
    assert "chain under stable" in text
    assert "srea" in text
    assert "optimum" in text
    assert page.stat().st_size > 50_000


def test_a_csv_with_speed_and_scale(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("timestamp,rate\n" + "".join(f"{60 * i},{600 + i}\n" for i in range(120)))
    found = json.loads(
        invoke(
            "simulate",
            "--app",
            "chain",
            "--load",
            str(trace),
            "--speed",
            "1",
            "--scale",
            "0.1",
            "--window",
            "10",
            "--json",
        )
    )
    assert found["load"] == "trace"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("compare", "--systems", "sera"), "did you mean 'srea'"),
        (("compare", "--systems", ","), "--systems is empty"),
        (("simulate", "--app", "twiter-linear"), "did you mean 'twitter-linear'"),
        (("simulate", "--load", "perodic"), "did you mean 'periodic'"),
        (("simulate", "--window", "0"), "more than 0 seconds"),
        (("simulate", "--window", "inf"), "less than one window of inf s"),
        (("simulate", "--window", "1e-9"), "more than 20,000,000 windows"),
        (("simulate", "--speed", "1e-300"), "more than 20,000,000 windows"),
        (("simulate", "--scale", "1e300"), "must be a number from 0"),
        (("simulate", "--engine", "fluids"), "did you mean 'fluid'"),
        (("compare", "--app", "chain", "--systems", "fugu-local"), "no system could run here"),
    ],
)
def test_mistakes_are_sentences(arguments: tuple[str, ...], says: str) -> None:
    with pytest.raises(InvalidConfig, match=says):
        CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def test_apps_and_loads_are_listed() -> None:
    assert "twitter-complex" in invoke("apps")
    assert "frame-rate-short" in invoke("loads")


def test_a_settings_file_brings_prices_and_a_system_of_ones_own(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(
        '[system]\nname = "static"\n[system.planner_constants]\nreplicas = 9\n'
        "[prices]\nup = 0\ndown = 0\nroute = 0\n"
    )
    found = json.loads(
        invoke("compare", "--app", "chain", "--systems", "srea", "--settings", str(mine), "--json")
    )
    assert [s["system"] for s in found["systems"]] == ["srea", "mine"]
    own = found["systems"][1]
    assert own["cost"] == pytest.approx(own["replica_seconds"] / 30 * 8000)  # changes cost nothing
    alone = json.loads(invoke("simulate", "--app", "chain", "--settings", str(mine), "--json"))
    assert alone["systems"][0]["replica_seconds"] == own["replica_seconds"]


def test_who_is_left_out_is_told_as_it_is_written(tmp_path: Path) -> None:
    """Brackets are no markup: pip install 'foretide[deep]' must reach the reader whole."""
    mine = tmp_path / "mine[deep].toml"
    mine.write_text('[system]\nname = "fugu-local"\n')
    result = CliRunner().invoke(
        app, ["compare", "--app", "chain", "--systems", "srea", "--settings", str(mine)]
    )
    assert "left out: mine[deep]: it never planned" in result.stderr


def test_a_load_that_never_needs_a_change_is_named_before_the_comparison(tmp_path: Path) -> None:
    flat = tmp_path / "flat.csv"
    flat.write_text("time,count\n" + "".join(f"{60 * i},60\n" for i in range(30)))
    steep = tmp_path / "steep.csv"
    steep.write_text("time,count\n" + "".join(f"{60 * i},{9000 * i}\n" for i in range(30)))
    said = [
        CliRunner().invoke(
            app, ["compare", "--app", "chain", "--load", str(load), "--systems", "srea,static"]
        )
        for load in (flat, steep)
    ]
    assert [r.exit_code for r in said] == [0, 0]
    assert ["there is nothing to scale" in r.stderr for r in said] == [True, False]


def test_a_load_of_one_s_own_says_whose_pipeline_it_runs_through(tmp_path: Path) -> None:
    load = tmp_path / "mine.csv"
    load.write_text("timestamp,count\n" + "".join(f"{60 * i},{600 + i}\n" for i in range(12)))
    done = CliRunner().invoke(app, ["simulate", "--load", str(load), "--system", "static"])
    assert "without --app this load runs through twitter-linear, a built-in app" in done.stderr
    assert "a row every 60 s and the window is 30 s: --window 60 takes 2 times fewer" in done.stderr
    given = ["simulate", "--app", "chain", "--load", str(load), "--system", "static"]
    done = CliRunner().invoke(app, [*given, "--window", "60"])
    assert "without --app" not in done.stderr
    assert "a row every" not in done.stderr


def test_the_first_use_of_the_simulator_says_that_it_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = ["simulate", "--app", "chain", "--system", "static"]
    monkeypatch.setattr("foretide.cli.simulate.is_compiled", lambda package: False)
    assert "the simulator is compiled first" in CliRunner().invoke(app, arguments).stderr
    monkeypatch.setattr("foretide.cli.simulate.is_compiled", lambda package: True)
    assert "compiled" not in CliRunner().invoke(app, arguments).stderr


def test_the_list_of_systems_says_which_to_try_first() -> None:
    assert set(FIRST) <= set(SYSTEMS)
    assert f"--systems {','.join(FIRST)}" in CliRunner().invoke(app, ["systems"]).stderr
