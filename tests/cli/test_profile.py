"""``foretide profile`` and ``run --profile``: the larger of benchmark and measurement is taken."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from foretide.cli.profile import KIND, Measured, Profile, profile_of, read_profile, write_profile
from foretide.errors import InvalidConfig
from foretide.history import History
from foretide.model import Decision, Forecast, Sample, Snapshot
from foretide.plan.pa_sps import PaSps
from foretide.topology import Operator, Topology

ONE = Topology((Operator("work", max_replicas=50),))


def window(at: float, events: float, busy_s: float | None) -> Snapshot:
    return Snapshot(at, 10.0, {"work": Sample(events, events, 0, 1, busy_s=busy_s)})


def test_service_times_are_over_all_windows() -> None:
    snapshots = [window(10, 100, 2.0), window(20, 300, 10.0), window(30, 50, None)]
    decisions = [
        Decision(at=s.at, outcome="observed", mode="advise", snapshot=s) for s in snapshots
    ]
    found = profile_of("p", [*decisions, Decision(at=40, outcome="waiting", mode="advise")])
    assert found.operators == {"work": Measured(0.03, 400)}


@pytest.mark.parametrize(("benchmark_s", "replicas"), [(0.01, 4), (0.05, 10), (None, 4)])
def test_pa_sps_takes_the_larger_of_benchmark_and_measurement(
    benchmark_s: float | None, replicas: int
) -> None:
    """20 ms are measured and 200 events/s expected: 4 replicas; a benchmark of 50 ms makes 10."""
    history = History(ONE)
    history.benchmarked({} if benchmark_s is None else {"work": benchmark_s})
    history.append(window(10, 2000, 40.0))
    plan = PaSps().plan(ONE, history, {"work": Forecast((200.0,))})
    assert plan.replicas == {"work": replicas}


def test_before_anything_was_measured_the_benchmark_counts() -> None:
    history = History(ONE)
    assert history.service_time_s("work") is None
    history.benchmarked({"work": 0.05})
    assert history.service_time_s("work") == 0.05
    history.start_from({"work": 0.2}, {})
    assert history.service_time_s("work") == 0.2


def test_a_file_that_is_no_profile_of_the_pipeline_is_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "profile.json"
    write_profile(file, Profile(KIND, "words", {"split": Measured(0.001, 10)}))
    assert read_profile(file, "words") == {"split": 0.001}
    cases: dict[str, tuple[str, Callable[[], object]]] = {
        "is the profile of 'words', not of 'tweets'": (
            file.read_text(),
            lambda: read_profile(file, "tweets"),
        ),
        "is not a profile": ("{}", lambda: read_profile(file, "words")),
        "must be more than 0 s": (
            file.read_text().replace("0.001", "0.0"),
            lambda: read_profile(file, "words"),
        ),
    }
    for said, (content, read) in cases.items():
        file.write_text(content)
        with pytest.raises(InvalidConfig, match=said):
            read()
    with pytest.raises(InvalidConfig, match="cannot read"):
        read_profile(tmp_path / "absent", "words")


PIPELINE = """
import time
import numpy as np
from foretide.load import Load
from foretide.spark import Generator, Pipeline

pipeline = Pipeline("waits", trigger_s=0.5)
pipeline.source("events", Generator(Load("steady", np.full(600, 20.0))))


@pipeline.operator(inputs="events", schema="id long")
def work(event):
    time.sleep(0.02)
    return {"id": event["id"]}


pipeline.sink("out", inputs="work")
"""


@pytest.mark.spark
@pytest.mark.long
def test_a_pipeline_is_profiled_on_spark(tmp_path: Path) -> None:
    file, out = tmp_path / "waits.py", tmp_path / "profile.json"
    file.write_text(PIPELINE)
    command = ["profile", f"{file}:pipeline", "--seconds", "15", "-o", str(out)]
    done = subprocess.run(
        [sys.executable, "-c", f"from foretide.cli import app; app({command})"],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "ms per event" in done.stdout
    assert json.loads(out.read_text())["kind"] == KIND
    assert read_profile(out, "waits")["work"] >= 0.02
