"""The demo: its own decisions, its SQLite table, and the whole of it on Spark without a browser."""

import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from foretide.apps import App, Service
from foretide.cli.run import SHARE, SYSTEM
from foretide.demo import TARGET_LATENCY_S, WARM_UP_S, WINDOW_S, balance, free_port
from foretide.demo.tweets import (
    LOOKUP_S,
    REPUTATION_S,
    Table,
    demo_load,
    demo_past,
    spam_score,
)
from foretide.errors import PipelineFailed
from foretide.figures.ahead import ahead
from foretide.figures.metrics import figures
from foretide.figures.record import RunRecord
from foretide.journal import Run, read
from foretide.load import Load
from foretide.model import Decision
from foretide.sim.environment import Simulation
from foretide.sim.events.batch import BatchCosts
from foretide.systems import system
from foretide.topology import Operator, Topology


def test_a_taken_port_means_the_next_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert free_port(port) != port
    assert free_port(0) == 0


def test_missing_or_doubled_events_are_a_failure() -> None:
    with pytest.raises(PipelineFailed, match="10 of 10 events came in and 9 rows"):
        balance(10, 10, {"sport": 9})
    with pytest.raises(PipelineFailed, match="8 of 10 events came in and 9 rows"):
        balance(8, 10, {"sport": 9}, stopped=True)


def test_a_batch_that_comes_again_is_written_once(tmp_path: Path) -> None:
    table = Table(tmp_path / "tweets.sqlite")
    assert table.counts() == {}
    rows = [(i, 1, 0.0, "goal", 0.1, "sport", "00") for i in range(3)]
    table.write(rows, batch=0)
    table.write(rows, batch=0)
    table.write(rows[:1], batch=1)
    assert table.counts() == {"sport": 4}


def test_the_load_repeats_every_two_minutes_and_goes_on_from_its_past() -> None:
    rates = demo_load(240).rates(5.0)
    assert rates[:7].max() < 20
    assert rates[7:12].max() > 120
    assert rates[12:24].max() < 20
    assert np.corrcoef(rates[:24], rates[24:])[0, 1] > 0.98
    past = demo_past(130.0).rates(5.0)  # 10 s into a season
    assert np.corrcoef(past[-26:-2], rates[:24])[0, 1] > 0.98


def test_the_forecast_runs_ahead_of_the_load_from_the_first_hump_on() -> None:
    """Two windows ahead it is nearer to what comes than the present load is, in most windows, as
    the demo's own system forecasts with the demo's own past.
    """
    late_s = 3.0  # the loop starts a little after the pipeline
    counts = np.concatenate((np.zeros(WARM_UP_S), demo_load(180, WARM_UP_S).counts))
    rates = Load("the demo", counts[int(late_s) :]).rates(WINDOW_S)
    past = demo_past(late_s).before(0.0, WINDOW_S)
    forecaster = system(SYSTEM).remembering(past).new_forecaster()
    ahead, naive = [], []
    for t in range(1, len(rates) - 1):
        ahead.append(abs(forecaster.forecast(rates[:t], 2).mean[1] - rates[t + 1]))
        naive.append(abs(rates[t - 1] - rates[t + 1]))
    assert np.mean(np.array(ahead) < np.array(naive)) > 0.6
    assert sum(ahead) < 0.25 * sum(naive)


def test_bait_scores_higher_than_news() -> None:
    assert (
        spam_score("cheap pills $$$ http://pills.example")
        > 0.5
        > spam_score("breaking: the court budget")
    )


def start(folder: Path, *more: str) -> subprocess.Popen[str]:
    command = ["demo", "--minutes", "1", "--folder", str(folder), "--port", "0", *more]
    script = f"from foretide.cli import app; app({command})"
    return subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.spark
def test_the_demo_ends_with_every_event_stored_and_a_report(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    out, errors = (process := start(folder)).communicate(timeout=500)
    assert process.returncode == 0, out + errors
    total = int(demo_load(60, WARM_UP_S).whole_counts().sum())
    assert f"events in {total} = events out {total}" in out
    assert ("ran short" in out) != ("times the clairvoyant optimum" in out), out
    assert "within the target" in out
    with sqlite3.connect(folder / "tweets.sqlite") as db:
        assert db.execute("SELECT count(DISTINCT id), count(*) FROM tweets").fetchone() == (
            total,
            total,
        )
    db.close()
    run, decisions = read(folder / "journal.jsonl")
    assert run.topology.names == ("parse", "spam", "topic", "store")
    assert [d.error for d in decisions if d.outcome == "failed"] == []
    assert any(d.outcome == "applied" for d in decisions)
    assert (folder / "report.html").stat().st_size > 10_000


@pytest.mark.spark
def test_ctrl_c_ends_the_demo_with_a_summary(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    process = start(folder)
    journal, until = folder / "journal.jsonl", time.monotonic() + 240
    while (
        time.monotonic() < until
        and process.poll() is None
        and (not journal.exists() or journal.read_bytes().count(b"\n") < 3)
    ):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, out + errors
    assert "stopped early" in out
    assert "report:" in out


@pytest.mark.slow
@pytest.mark.parametrize(("overhead_s", "most"), [(0.4, 1.25), (0.8, 1.45)])
def test_in_the_twin_the_demo_keeps_its_target_and_saves(overhead_s: float, most: float) -> None:
    """The demo's system, load and past on a simulated pipeline with the demo's service times and
    what a micro-batch costs on a small machine, idle and busy.
    """
    service = {"parse": 0.0002, "spam": REPUTATION_S, "topic": LOOKUP_S, "store": 0.0003}
    names = tuple(service)
    topology = Topology(
        tuple(
            Operator(name, inputs=names[max(0, i - 1) : i], max_replicas=12)
            for i, name in enumerate(names)
        )
    )
    app = App("tweets", "", "", topology, {n: Service(s) for n, s in service.items()})
    counts = np.concatenate((np.zeros(WARM_UP_S), demo_load(180, WARM_UP_S).counts, np.zeros(30)))
    twin = Simulation(
        app,
        Load("the demo", counts),
        mode="batch",
        batch=BatchCosts(2.0, task_s=0.0, overheads_s=dict.fromkeys(names, overhead_s)),
        window_s=WINDOW_S,
        target_latency_s=TARGET_LATENCY_S,
    )
    promised = system(SYSTEM).promised(TARGET_LATENCY_S, SHARE)
    past = demo_past(0.0).before(0.0, WINDOW_S)
    book: list[Decision] = []
    loop = promised.remembering(past).autoscaler(topology, twin, twin, "act", book.append)
    for window in range(1, int(len(counts) / WINDOW_S) + 1):
        loop.step(WINDOW_S * window)
    measured = twin.latencies_ms()
    assert measured is not None
    assert np.mean(measured[0] <= 1e3 * TARGET_LATENCY_S) >= 0.97
    run = Run("tweets", SYSTEM, topology, WINDOW_S, 0.0, "act", TARGET_LATENCY_S)
    record = RunRecord.of_journal(run, book)
    cost = figures(record)
    assert cost.cost_ratio is not None
    assert cost.cost_ratio <= most
    assert cost.saved_cost is not None
    assert cost.saved_cost > 0.0
    foresight = ahead(record)
    assert foresight is not None
    assert foresight.windows >= 30
    assert foresight.share >= 0.5, str(foresight)
    assert foresight.error_ratio <= 0.5, str(foresight)
