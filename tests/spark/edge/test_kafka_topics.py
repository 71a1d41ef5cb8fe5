"""What tasks append to topics and read from them: a real broker, no Spark."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from broker import Topics
from hypothesis import given
from hypothesis import strategies as st

from foretide.demo.broker import PASSWORD, USER, Broker
from foretide.errors import InvalidConfig, PipelineFailed
from foretide.spark.edge import kafka_client, kafka_read
from foretide.spark.edge.kafka import KafkaEdges
from foretide.spark.edge.kafka_client import Cluster, client_config
from foretide.spark.edge.kafka_read import read_slices
from foretide.spark.edge.kafka_records import Config, Place, Slice, evenly
from foretide.spark.edge.kafka_topics import Topics as EdgeTopics
from foretide.spark.edge.kafka_topics import prefix_in
from foretide.spark.edge.kafka_write import Outgoing, Writing, produce
from foretide.spark.edge.source import read_files
from foretide.spark.worker.columns import STAMP, TO

pytestmark = pytest.mark.spark
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), (STAMP, pa.float64())])


def rows(ids: Sequence[int], text: str = "x") -> pa.RecordBatch:
    columns = [list(ids), [text] * len(ids), [float(i) for i in ids]]
    return pa.RecordBatch.from_arrays([pa.array(c) for c in columns], schema=SCHEMA)


def written(writing: Writing, *batches: pa.RecordBatch) -> list[tuple[str, Place, int]]:
    return [
        (row["topic"], Place.parse(row["place"]), row["events"])
        for made in produce(writing)(iter(batches))
        for row in made.to_pylist()
    ]


def ids_of(found: Iterator[pa.RecordBatch]) -> list[int]:
    return [i for batch in found for i in batch.column("id").to_pylist()]


@pytest.fixture
def config(broker: Broker) -> Config:
    return client_config(broker.servers, {})


def to(topic: str, config: Config, **more: int) -> Writing:
    return Writing(config, "a", 7, {"0": Outgoing(("id", "text", STAMP), {topic: 1})}, **more)


def test_chunks_come_back_whole_and_in_slices(topics: Topics, config: Config) -> None:
    chunks = written(
        to(topics.create(), config, per_chunk=100), rows(range(250)), rows(range(250, 300))
    )
    assert [n for _, _, n in chunks] == [100, 100, 50, 50] or [n for _, _, n in chunks] == [100] * 3
    for tasks in (1, 3, 7):
        shares = [ids_of(read_slices(config, share, SCHEMA)) for share in evenly(chunks, tasks)]
        assert sorted(i for share in shares for i in share) == list(range(300))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_fetch_does_not_hold_up_the_next_read_of_another_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker answers one fetch of a client after the other: one that waits delays the next."""
    monkeypatch.setattr(kafka_read, "client", lambda kind, config, pid: dict(config))
    options: Any = kafka_read._consumer(client_config("a:1", {}))
    assert int(options["fetch.wait.max.ms"]) <= 10
    options = kafka_read._consumer(client_config("a:1", {"kafka.fetch.wait.max.ms": "70"}))
    assert options["fetch.wait.max.ms"] == "70"


def test_a_second_attempt_in_the_same_partition_is_not_read(topics: Topics, config: Config) -> None:
    topic = topics.create()
    lost = written(to(topic, config), rows(range(10)))
    kept = written(to(topic, config), rows(range(100, 110)))
    written(to(topic, config), rows(range(10)))
    assert sum(topics.ends(topic).values()) == 3
    assert ids_of(read_slices(config, evenly(kept, 1)[0], SCHEMA)) == list(range(100, 110))
    other = Slice(topic, Place(0, kept[0][1].offset, lost[0][1].attempt), 0, 10)
    with pytest.raises(PipelineFailed, match="is not the one that was delivered"):
        ids_of(read_slices(config, [other], SCHEMA))


def test_events_go_to_the_outlet_that_they_name(topics: Topics, config: Config) -> None:
    one, two, dead = topics.create("one"), topics.create("two", 3), topics.create("dead")
    writing = Writing(
        config,
        "a",
        0,
        {
            "0": Outgoing(("id", "text", STAMP), {one: 1, two: 3}),
            "dead": Outgoing(("text", STAMP), {dead: 1}),
        },
    )
    batch = rows(range(6)).append_column(TO, pa.array(["0", "dead", "0", "0", "dead", "0"]))
    chunks = written(writing, batch)
    assert sorted((t, n) for t, _, n in chunks) == sorted([(one, 4), (two, 4), (dead, 2)])
    for topic in (one, two):
        share = evenly([c for c in chunks if c[0] == topic], 1)[0]
        assert ids_of(read_slices(config, share, SCHEMA)) == [0, 2, 3, 5]


def test_large_events_are_split_over_chunks_and_a_too_large_one_is_a_sentence(
    topics: Topics, config: Config
) -> None:
    topic = topics.create()
    chunks = written(to(topic, config), rows(range(40), text="é" * 20_000))
    assert len(chunks) > 2
    assert sorted(ids_of(read_slices(config, evenly(chunks, 1)[0], SCHEMA))) == list(range(40))
    with pytest.raises(PipelineFailed, match="an event is larger than topic"):
        written(to(topic, config), rows([1], text="x" * 2_000_000))


def test_records_that_retention_removed_are_a_sentence(topics: Topics, config: Config) -> None:
    topic = topics.create()
    chunks = written(to(topic, config), rows(range(5)))
    written(to(topic, config), rows(range(5)))
    cluster = Cluster(config)
    cluster.delete_up_to(topic, {0: 1})
    for future in cluster._deleting.values():
        future.result(10)
    with pytest.raises(PipelineFailed, match="are gone from topic"):
        ids_of(read_slices(config, evenly(chunks, 1)[0], SCHEMA))


def test_a_deleted_topic_is_a_sentence_for_readers_and_writers(
    topics: Topics, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_read, "FIRST_S", 1.0)
    topic = topics.create()
    chunks = written(to(topic, config), rows(range(5)))
    topics.delete(topic)
    with pytest.raises(PipelineFailed, match=f"topic {topic} is gone|are gone from topic {topic}"):
        ids_of(read_slices(config, evenly(chunks, 1)[0], SCHEMA))
    with pytest.raises(PipelineFailed, match=f"topic {topic} is gone"):
        written(to(topic, config), rows(range(5)))


def test_topics_are_made_with_enough_partitions_or_refused(topics: Topics, config: Config) -> None:
    cluster = Cluster(config)
    name = f"made-{topics.create()}"
    cluster.ensure({name: 5})
    cluster.ensure({name: 5})
    assert cluster.topics()[name] == 5
    assert cluster.retention_s(name) is None
    short = topics.create("short", 2, {"retention.ms": "60000"})
    assert cluster.retention_s(short) == 60
    with pytest.raises(InvalidConfig, match=f"topic {short} has 2 partitions, and its operators"):
        cluster.ensure({short: 5})


@pytest.mark.parametrize(("per_file", "counts"), [(0, [250]), (100, [100, 100, 50])])
def test_readers_on_disk_get_files_beside_the_records(
    topics: Topics, config: Config, tmp_path: Path, per_file: int, counts: list[int]
) -> None:
    topic = topics.create()
    way_out = Outgoing(("id", "text", STAMP), {topic: 1}, str(tmp_path))
    writing = Writing(config, "a", 7, {"0": way_out}, per_file=per_file)
    rows_written = [
        row
        for made in produce(writing)(iter([rows(range(130)), rows(range(130, 250))]))
        for row in made.to_pylist()
    ]
    files = [r for r in rows_written if r["topic"] is None]
    assert [r["events"] for r in files] == counts
    assert sum(r["stamp_sum"] for r in files) == sum(range(250))
    assert {f.name for f in tmp_path.iterdir()} == {r["place"] for r in files}
    found = read_files([(str(tmp_path / r["place"]), r["events"]) for r in files], SCHEMA)
    assert ids_of(found) == list(range(250))
    chunks = [
        (r["topic"], Place.parse(r["place"]), r["events"]) for r in rows_written if r["topic"]
    ]
    assert ids_of(read_slices(config, evenly(chunks, 1)[0], SCHEMA)) == list(range(250))


@pytest.mark.parametrize(("age_s", "warns"), [(1000.0, False), (4000.0, True)])
def test_events_that_wait_half_the_retention_are_a_warning_once(
    topics: Topics, config: Config, caplog: pytest.LogCaptureFixture, age_s: float, warns: bool
) -> None:
    short = topics.create("short", 1, {"retention.ms": "6000000"})
    edges = EdgeTopics(Cluster(config), "p")
    edges.ensure({short: 1, "for-ever": 1})
    for topic in ("for-ever", short, short):
        edges.check_age(topic, time.time() - age_s)
    said = [r.getMessage() for r in caplog.records if "retention" in r.getMessage()]
    assert len(said) == warns
    if warns:
        assert said[0].startswith(f"topic {short} keeps records for 6000 s, and events have waited")
        assert said[0].endswith("raise its retention.ms before they are lost")


@pytest.mark.parametrize(
    ("servers", "options", "sentence"),
    [
        ("127.0.0.1:1", {}, r"no Kafka broker answers at 127\.0\.0\.1:1"),
        ("127.0.0.1:1", {"kafka.no.such": "1"}, r"refuses the option no\.such"),
        ("sasl", {"kafka.sasl.password": "wrong-one"}, "refuses the credentials of the edges"),
    ],
)
def test_a_cluster_that_cannot_be_used_is_a_sentence(
    broker: Broker, servers: str, options: dict[str, str], sentence: str
) -> None:
    if servers == "sasl":
        servers = broker.sasl_servers
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        options = {f"kafka.{k}": v for k, v in login.items()} | options
        options["kafka.sasl.username"] = USER
    with pytest.raises(InvalidConfig, match=sentence) as refused:
        Cluster(client_config(servers, options)).topics()
    assert "wrong-one" not in str(refused.value)


def test_a_start_without_a_broker_gives_up_within_fifteen_seconds_and_writes_nothing(
    tmp_path: Path,
) -> None:
    assert kafka_client.ANSWER_S < 15
    with pytest.raises(InvalidConfig, match="no Kafka broker answers at"):
        KafkaEdges(tmp_path / "edges", "127.0.0.1:1", {}, lambda: prefix_in(tmp_path, "p", None))
    assert list(tmp_path.iterdir()) == []


def test_java_options_reach_the_edges_client(broker: Broker, topics: Topics) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    options = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": f'{module} required username="{USER}" password="{PASSWORD}";',
    }
    topic, config = topics.create(), client_config(broker.sasl_servers, options)
    chunks = written(to(topic, config), rows(range(3)))
    assert ids_of(read_slices(config, evenly(chunks, 1)[0], SCHEMA)) == [0, 1, 2]
    assert PASSWORD not in repr(to(topic, config))
    for store in ("truststore", "keystore"):
        with pytest.raises(InvalidConfig, match=rf"the JKS file of ssl\.{store}\.location"):
            client_config("a:1", {f"kafka.ssl.{store}.location": "x.jks"})
    with pytest.raises(InvalidConfig, match=r"give kafka\.sasl\.username"):
        client_config("a:1", {"kafka.sasl.jaas.config": "Krb5LoginModule required;"})


class Lines(logging.Handler):
    """Log messages, to be waited for one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.said: queue.Queue[str] = queue.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.said.put(record.getMessage())


def test_a_broker_that_goes_and_comes_back_is_said_and_waited_for(
    own_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_client, "WATCH_S", 0.5)
    lines, log = Lines(), logging.getLogger(kafka_client.__name__)
    log.addHandler(lines)
    config = client_config(own_broker.servers, {})
    topic = Topics(own_broker.servers).create()
    chunks = written(to(topic, config), rows(range(5)))
    cluster = Cluster(config)
    cluster.watch()
    try:
        own_broker.kill()
        assert "the pipeline waits" in lines.said.get(timeout=60)
        with ThreadPoolExecutor() as beside:
            reading = beside.submit(
                lambda: ids_of(read_slices(config, evenly(chunks, 1)[0], SCHEMA))
            )
            writing = beside.submit(lambda: written(to(topic, config), rows(range(5, 9))))
            own_broker.start()
            assert reading.result(60) == [0, 1, 2, 3, 4]
            assert [n for _, _, n in writing.result(60)] == [4]
        assert "answers again" in lines.said.get(timeout=60)
    finally:
        cluster.close()
        log.removeHandler(lines)


@given(st.lists(st.integers(1, 50), max_size=12), st.integers(1, 9))
def test_an_even_split_takes_every_event_once(counts: list[int], tasks: int) -> None:
    chunks = [("t", Place(0, i, "x"), n) for i, n in enumerate(counts)]
    shares = evenly(chunks, tasks)
    taken = sorted(
        (s.place.offset, i) for share in shares for s in share for i in range(s.start, s.end)
    )
    assert taken == [(i, j) for i, n in enumerate(counts) for j in range(n)]
    sizes = [sum(s.end - s.start for s in share) for share in shares]
    assert len(sizes) == tasks
    assert max(sizes) - min(sizes) <= 1
