"""Events from a Kafka topic over every kind of edge: the driver, its Python workers and the broker
are killed at seeded moments; every event reaches the sinks exactly once.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from broker import Topics

from foretide.demo.broker import Broker
from foretide.spark.edge.kafka_client import client_config, topic_name
from foretide.spark.edge.kafka_read import read_slices
from foretide.spark.edge.kafka_records import Place, Slice
from foretide.spark.edge.kafka_topics import prefix_in
from foretide.spark.edge.outbox import Outbox

pytestmark = [pytest.mark.spark, pytest.mark.long]
EVENTS = 400
LIMIT_S = 240.0
PAUSE_S = 0.01
KILLS = ("driver", "workers", "broker", "driver and broker", "driver")


def steps(path: Path) -> int:
    """Batches delivered and staged so far: grows with every step a pipeline takes."""
    taken = 0
    for outbox in (path / "edges").glob("*"):
        delivered = [int(f.name[2:]) for f in outbox.glob("b-*")]
        taken += 2 * (max(delivered, default=-1) + 1) + sum(1 for _ in outbox.glob(".staging-*"))
    return taken


class Life:
    """One process of the pipeline, in a session of its own."""

    def __init__(self, path: Path, servers: str, topic: str, edges: str) -> None:
        script = str(Path(__file__).with_name("killable.py"))
        self.path = path
        with open(path / "log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, script, str(path / "run"), servers, topic, edges],
                start_new_session=True, stdout=log, stderr=log,
            )  # fmt: skip

    def last_words(self) -> str:
        return (self.path / "log").read_text()[-2000:]

    def after(self, moment: int) -> None:
        """Return when the pipeline has taken so many steps more."""
        until, before = time.monotonic() + LIMIT_S, steps(self.path / "run")
        while steps(self.path / "run") < before + moment and self.process.poll() is None:
            assert time.monotonic() < until, "the pipeline does not move"
            time.sleep(PAUSE_S)
        assert self.process.poll() is None, self.last_words()

    def kill_workers(self) -> int:
        """Kill the Python processes in which tasks run; how many there were."""
        session = _session(self.process.pid)
        daemons = {p for p, (_, command) in session.items() if "worker.daemon" in command}
        workers = [p for p, (parent, _) in session.items() if parent in daemons]
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        return len(workers)

    def settle(self) -> None:
        """Return when the pipeline has failed, or gone on without the processes it lost."""
        until, before = time.monotonic() + LIMIT_S, steps(self.path / "run")
        while steps(self.path / "run") < before + 2 and self.process.poll() is None:
            assert time.monotonic() < until, "the pipeline neither fails nor goes on"
            time.sleep(PAUSE_S)

    def kill(self) -> None:
        for pid in _session(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def _session(leader: int) -> dict[int, tuple[int, str]]:
    """Living processes of a session: id -> (parent, command line)."""
    alive = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{entry}/stat").read_text().rpartition(") ")[2].split()
            command = Path(f"/proc/{entry}/cmdline").read_text()
        except OSError:
            continue
        if int(fields[3]) == leader and command:
            alive[int(entry)] = int(fields[1]), command
    return alive


def delivered_ids(path: Path, servers: str, edges: str) -> list[int]:
    """The ids in both sinks: in the files of the output, or read with the client from the places
    that manifests name.
    """
    ids = list[int]()
    for name in ("left", "right"):
        if edges == "kafka":
            ids += _in_topic(path, servers, name)
            continue
        for file in (path / "output" / f"from_{name}").glob("*.parquet"):
            ids += pq.ParquetFile(file).read(columns=["id"])["id"].to_pylist()
    return ids


def _in_topic(path: Path, servers: str, name: str) -> list[int]:
    prefix, schema = prefix_in(path, "killable", None), pa.schema([("id", pa.int64())])
    outbox, folder = Outbox(path / "edges" / name), f"sink.from_{name}"
    slices = [
        Slice(topic_name(prefix, name, folder), Place.parse(place), 0, events)
        for batch in outbox.batches()
        for place, events in outbox.manifest(batch).files.get(folder, ())
    ]
    found = read_slices(client_config(servers, {}), slices, schema) if slices else ()
    return [i for batch in found for i in batch.column("id").to_pylist()]


def restart(broker: Broker) -> None:
    broker.kill()
    broker.start()


@pytest.mark.parametrize("edges", ["directory", "kafka", "mixed"])
def test_every_event_arrives_once_after_kills_of_driver_workers_and_broker(
    own_broker: Broker, tmp_path: Path, edges: str
) -> None:
    topics = Topics(own_broker.servers)
    topic = topics.create("in", 3)
    topics.send(topic, [json.dumps({"id": i}) for i in range(EVENTS)])
    start = partial(Life, tmp_path, own_broker.servers, topic, edges)
    moments = np.random.default_rng(20261116).integers(2, 7, size=len(KILLS))
    life = start()
    for kind, moment in zip(KILLS, moments, strict=True):
        life.after(int(moment))
        if kind == "workers":
            assert life.kill_workers() > 0
            life.settle()
        if kind == "broker":  # and the pipeline waits
            restart(own_broker)
            life.settle()
        life.kill()
        if kind == "driver and broker":
            restart(own_broker)
        life = start()
    life.after(2)
    restart(own_broker)
    assert life.process.wait(LIMIT_S) == 0, life.last_words()
    assert sorted(delivered_ids(tmp_path / "run", own_broker.servers, edges)) == list(range(EVENTS))
