"""Published systems on a real standalone cluster: what is special about each happens because its
planner says so.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import standalone as standalone_module
from standalone import standalone

from foretide.spark.control.lead_time import LeadTimes, default_path

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    with standalone(tmp_path) as url:
        yield url


def run(script: str, master: str, folder: Path, *more: str) -> dict[str, Any]:
    helpers = Path(standalone_module.__file__).parent
    path = os.pathsep.join([str(helpers), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script)), master, str(folder), *more],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    seen: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    assert seen.get("failed", []) == []
    return seen


def test_executors_grow_and_shrink_because_drs_says_so(master: str, tmp_path: Path) -> None:
    seen = run("drs_on_cluster.py", master, tmp_path / "run")
    assert seen["executors"][0] == seen["executors"][-1] == 1
    assert max(seen["executors"]) > 1
    assert max(seen["replicas"]) > 2
    assert seen["replicas"][-1] < max(seen["replicas"])
    assert any("fewer suffice" in reason for reason in seen["reasons"])


@pytest.mark.parametrize("system", ["fugu-local", "fugu-global"])
def test_a_hot_executor_sheds_operators_and_a_cold_one_is_given_back(
    system: str, master: str, tmp_path: Path
) -> None:
    seen = run("fugu_on_cluster.py", master, tmp_path / "run", system)
    assert max(seen["executors"]) > 1
    assert seen["executors"][-1] == 1
    operator, source, destination, _ = seen["moves"][0]
    assert source != destination
    assert [destination[0], operator] in seen["loads"], "its tasks ran where the plan put them"
    assert all(move[3] >= 0 for move in seen["moves"]), "the standstill of every move is kept"


def test_what_fugu_rl_learned_on_a_cluster_survives_a_restart(master: str, tmp_path: Path) -> None:
    first = run("fugu_on_cluster.py", master, tmp_path / "run", "fugu-rl", "60")
    assert first["visits"] > 3, "an executor learned from what it did"
    again = run("fugu_on_cluster.py", master, tmp_path / "run", "fugu-rl", "30")
    assert again["visits"] > first["visits"], "the second run went on with the table of the first"


def rises_and_falls(replicas: list[int]) -> bool:
    return replicas[0] < max(replicas) > replicas[-1]


def test_pa_sps_activates_replicas_of_its_pool(master: str, tmp_path: Path) -> None:
    """Executors for all of the pool come at the start and stay; replicas come and go on them."""
    seen = run("published_on_cluster.py", master, tmp_path / "run", "pa-sps")
    assert rises_and_falls(seen["replicas"])
    held = seen["executors"][len(seen["executors"]) // 4 :]
    assert set(held) == {2}, "four replicas need two executors with two cores each"


def test_bgelasor_forecasts_with_its_network_and_executors_follow(
    master: str, tmp_path: Path
) -> None:
    seen = run("published_on_cluster.py", master, tmp_path / "run", "bgelasor")
    assert seen["forecasts"][0] == ["work"], "a pretrained network forecasts in the first window"
    assert rises_and_falls(seen["replicas"])
    assert max(seen["executors"]) > 1
    assert seen["executors"][-1] == 1


def test_dabs_storm_changes_degrees_while_its_grouping_cycles(master: str, tmp_path: Path) -> None:
    seen = run("published_on_cluster.py", master, tmp_path / "run", "dabs-storm")
    assert rises_and_falls(seen["replicas"])
    assert max(seen["executors"]) > 1
    phases = seen["phases"]
    assert phases[0] == "ROUND_ROBIN"
    assert "RUN" in phases
    assert "SEND_ALL" in phases[phases.index("RUN") :], "the sketches are asked for again"
    assert 0 <= seen["dropped"] < seen["offered"], "losses by the timeout are counted"


def test_state_moves_with_its_operator(master: str, tmp_path: Path) -> None:
    seen = run("state_on_cluster.py", master, tmp_path / "run")
    for executor, ran_on in seen["ran_on"]:
        assert ran_on == [executor], "its tasks ran where the plan put them"
    assert len(seen["moves"]) == 3
    assert all(standstill_s >= 0 for _, _, standstill_s in seen["moves"])
    assert sorted(seen["counts"]) == [800] * 5, "no count was lost on the way"


def said(lines: list[dict[str, Any]]) -> list[bool]:
    """Whether each reason carries the lead time of its own journal line."""
    return [
        f"in {line['lead_s']:.0f} s, when capacity asked for now would work" in line["reason"]
        for line in lines
        if line["lead_s"]
    ]


def test_the_same_load_in_slots_and_in_executors_is_planned_for_their_lead_times(
    master: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A free slot works with the next micro-batch; an executor when it has registered, which the
    run measures and remembers.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    slots = run("lead_on_cluster.py", "local[8]", tmp_path / "slots")
    leads = [line["lead_s"] for line in slots["lines"] if line["lead_s"] is not None]
    assert leads, "the time between two batches is measured"
    assert all(line["lead_s"] <= line["window_s"] for line in slots["lines"] if line["lead_s"])
    assert said(slots["lines"])
    assert all(said(slots["lines"]))
    assert max(line["replicas"] for line in slots["lines"]) > 1

    executors = run("lead_on_cluster.py", master, tmp_path / "executors")
    assert max(executors["executors"]) > 1
    assert said(executors["lines"])
    assert all(said(executors["lines"]))
    remembered = LeadTimes(default_path()).lead_s("standalone")
    assert remembered is not None
    assert remembered > 0
