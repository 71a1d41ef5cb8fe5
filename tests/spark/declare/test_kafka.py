"""Kafka topics as sources and sinks: what comes in, what goes out, what is refused and how."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path

import pytest
from broker import Topics
from pyspark.sql import SparkSession

from foretide.demo.broker import PASSWORD, USER, Broker
from foretide.errors import InvalidConfig, PipelineFailed
from foretide.spark import Pipeline, Running, kafka
from foretide.spark.declare.kafka_admin import API_MS

pytestmark = pytest.mark.spark
SCHEMA = "id long, text string"


def login(password: str) -> dict[str, str]:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": f'{module} required username="{USER}" password="{password}";',
    }


def values(n: int, first: int = 0) -> list[str]:
    return [json.dumps({"id": i, "text": f"event {i}"}) for i in range(first, first + n)]


def upper(pipeline: Pipeline, **settings: object) -> None:
    @pipeline.operator(inputs="in", max_replicas=2, **settings)
    def work(event: dict[str, object]) -> dict[str, object]:
        return {"id": event["id"], "text": str(event["text"]).upper()}


def finished(running: Running, sink: str, events: int) -> None:
    """Return when so many events came out; the running pipeline's own failure otherwise."""
    until = time.monotonic() + 120
    with running.accounts.changed:
        while running.accounts.latest("work").delivered.get(sink, 0) < events:
            running.check()
            assert time.monotonic() < until, running.accounts.latest("work")
            running.accounts.changed.wait(0.5)


def test_json_in_json_out_each_event_once_stamped_by_its_record(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.create("in", 3), topics.create("out", 2)
    at_ms = 1_700_000_000_123
    topics.send(source, values(300), timestamp_ms=at_ms)
    p = Pipeline("clicks", trigger_s=0.5)
    p.source("in", kafka(source, topics.servers, schema=SCHEMA, starting="earliest"))
    upper(p)
    p.sink("out", "work", kafka(target, topics.servers, format="json", key="id"))
    p.sink("kept", "work")
    with Running(p, spark, tmp_path) as running:
        finished(running, "sink.out", 300)
        topics.send(source, values(50, first=300), timestamp_ms=at_ms)
        finished(running, "sink.out", 350)
        running.wait(60)
        kept = running.read("kept").select("id", "_at").collect()
        assert running.backlog("work") == 0
    assert {r._at for r in kept} == {at_ms / 1000}
    out = [json.loads(v) for v in topics.read(target)]
    assert sorted(e["id"] for e in out) == list(range(350))
    assert all(e["text"] == f"EVENT {e['id']}" for e in out)


def test_a_reader_drops_the_batch_that_a_crash_had_written_twice(
    spark: SparkSession, topics: Topics
) -> None:
    """The rule of docs/kafka.md: ids of the newest batch of a sink that were seen are repeats."""
    p = Pipeline("clicks")
    p.operator("in", name="work")(lambda event: event)
    target = topics.create("out", 2)
    p.sink("out", "work", kafka(target, topics.servers, format="json", key="id"))
    write = p.sinks["out"].write
    assert write is not None
    for batch in (0, 1, 1):
        write(spark.range(10 * batch, 10 * batch + 10, 1, 2), batch)
    records = topics.records(target)
    assert {h["foretide-sink"] for _, h in records} == {"clicks.out"}
    assert len(records) == 30
    once = {(h["foretide-batch"], json.loads(value)["id"]) for value, h in records}
    assert sorted(once) == sorted((str(i // 10), i) for i in range(20))


def test_records_that_do_not_parse_become_dead_letters(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    source = topics.create("in")
    topics.send(source, [*values(20), "no json", '{"id": "text"}', "", "[1]"])
    p = Pipeline("clicks", trigger_s=0.5)
    p.source("in", kafka(source, topics.servers, schema=SCHEMA, starting="earliest"))
    upper(p, on_error="divert")
    p.sink("kept", "work")
    with Running(p, spark, tmp_path) as running:
        finished(running, "dead", 4)
        assert running.read("kept").count() == 20
        dead = sorted(json.loads(r._event) for r in running.read("dead:work").collect())
        consumed = running.accounts.consumed("work")
    assert consumed == 24
    assert [d.partition(" is not JSON")[0] for d in dead] == [
        f"record {i} of partition 0 of topic {source}" for i in (20, 21, 22, 23)
    ]


def test_a_record_that_does_not_parse_stops_a_pipeline_that_does_not_divert(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    source = topics.create("in")
    topics.send(source, [*values(2), "no json"])
    for kind, advice in (("operator", "on_error='divert'"), ("frame", "operator or batches")):
        p = Pipeline("clicks", trigger_s=0.5)
        p.source("in", kafka(source, topics.servers, schema=SCHEMA, starting="earliest"))
        if kind == "operator":
            upper(p)
        else:
            p.frame(inputs="in", name="work")(lambda frame: frame.where("id >= 0"))
        p.sink("kept", "work")
        with (
            Running(p, spark, tmp_path / kind) as running,
            pytest.raises(PipelineFailed, match=f"record 2 of partition 0 .*{advice}"),
        ):
            finished(running, "sink.kept", 3)


AVRO = json.dumps(
    {
        "type": "record",
        "name": "Click",
        "fields": [{"name": "id", "type": "long"}, {"name": "text", "type": ["null", "string"]}],
    }
)


def test_avro_in_and_out(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    source, target = topics.create("in"), topics.create("out")
    encoded = kafka(source, topics.servers, format="avro", schema=AVRO, starting="earliest")
    encoded(spark.sql("select id, cast(id as string) as text from range(30)"), 0)
    topics.send(source, [b"\xff" * 11])
    p = Pipeline("clicks", trigger_s=0.5)
    p.source("in", encoded)
    upper(p, on_error="divert")
    p.sink("out", "work", kafka(target, topics.servers, format="avro", schema=AVRO))
    with Running(p, spark, tmp_path) as running:
        finished(running, "sink.out", 30)
        running.wait(60)
        assert running.accounts.latest("work").delivered["dead"] == 1
    assert sum(topics.ends(target).values()) == 30


def test_plain_columns_and_starting_offsets(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.create("in", 2), topics.create("out")
    topics.send(source, ["a", "b", "c"], partition=0, key=b"k")
    topics.send(source, ["d", "e"], partition=1, key=b"k")
    p = Pipeline("plain", trigger_s=0.5)
    p.source("in", kafka(source, topics.servers, starting={0: 1, 1: -2}))
    p.frame(inputs="in", name="work")(lambda f: f.selectExpr("key", "upper(value) as value", "_at"))
    p.sink("out", "work", kafka(target, topics.servers))
    with Running(p, spark, tmp_path) as running:
        finished(running, "sink.out", 4)
    assert sorted(topics.read(target)) == [b"B", b"C", b"D", b"E"]


def test_a_source_whose_topic_is_deleted_later_ends_with_a_sentence(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    source = topics.create("in")
    topics.send(source, values(10))
    p = Pipeline("clicks", trigger_s=0.5)
    p.source("in", kafka(source, topics.servers, schema=SCHEMA, starting="earliest"))
    upper(p)
    p.sink("kept", "work")
    with Running(p, spark, tmp_path) as running:
        finished(running, "sink.kept", 10)
        topics.delete(source)
        with pytest.raises(PipelineFailed, match=r"operator 'work': its Kafka topic, .* gone"):
            finished(running, "sink.kept", 11)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"topic": "no-such-topic"}, "source 'in': there is no topic 'no-such-topic' at"),
        ({"starting": {0: 5}}, "has the partitions 0 to 1; give a starting offset for each"),
        ({"options": {"kafka.security.protocol": "NOPE"}}, "refuses the option security.protocol"),
    ],
)
def test_a_wrong_source_is_a_sentence_before_anything_starts(
    spark: SparkSession,
    topics: Topics,
    tmp_path: Path,
    given: dict[str, object],
    sentence: str,
) -> None:
    topic = str(given.pop("topic", None) or topics.create("in", 2))
    p = Pipeline("clicks")
    p.source("in", kafka(topic, topics.servers, schema=SCHEMA, **given))  # type: ignore[arg-type]
    upper(p)
    with pytest.raises(InvalidConfig, match=sentence):
        Running(p, spark, tmp_path)
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "plain records need a column 'value' of type string or binary; its input has id"),
        ({"format": "json", "key": "name"}, "key column 'name' is not among its input's: id, text"),
        ({"format": "avro"}, "format 'avro' needs the Avro schema"),
    ],
)
def test_a_sink_with_wrong_columns_is_a_sentence(
    spark: SparkSession,
    topics: Topics,
    tmp_path: Path,
    settings: dict[str, object],
    sentence: str,
) -> None:
    topic = topics.create()
    p = Pipeline("clicks")
    p.source("in", kafka(topic, topics.servers, schema=SCHEMA))
    upper(p)
    p.sink("out", "work", kafka(topic, topics.servers, **settings))  # type: ignore[arg-type]
    with pytest.raises(InvalidConfig, match=sentence):
        Running(p, spark, tmp_path)


def test_no_broker_is_a_sentence_within_fifteen_seconds(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    p = Pipeline("clicks")
    p.source("in", kafka("t", "127.0.0.1:1", schema=SCHEMA))
    upper(p)
    assert int(API_MS) < 15_000  # the client gives up by then
    with pytest.raises(InvalidConfig, match=r"no Kafka broker answers at 127\.0\.0\.1:1"):
        Running(p, spark, tmp_path)


def test_wrong_credentials_are_a_sentence_without_them(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    p = Pipeline("clicks")
    p.source("in", kafka("t", broker.sasl_servers, schema=SCHEMA, options=login("not-this-one")))
    upper(p)
    with pytest.raises(InvalidConfig, match="refuses the credentials") as refused:
        Running(p, spark, tmp_path)
    assert "not-this-one" not in str(refused.value)


def test_secrets_reach_kafka_and_nothing_else(
    spark: SparkSession,
    broker: Broker,
    topics: Topics,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    source, target = topics.create("in"), topics.create("out")
    topics.send(source, values(10))
    caplog.set_level(logging.DEBUG, "foretide")
    caplog.set_level(logging.INFO)
    options = login(PASSWORD)
    p = Pipeline("clicks", trigger_s=0.5)
    secured = kafka(
        source, broker.sasl_servers, schema=SCHEMA, starting="earliest", options=options
    )
    p.source("in", secured)
    upper(p)
    p.sink("out", "work", kafka(target, broker.sasl_servers, format="json", options=options))
    with Running(p, spark, tmp_path) as running:
        finished(running, "sink.out", 10)
        progress = running.queries["work"].query.lastProgress  # type: ignore[union-attr]
    assert sum(topics.ends(target).values()) == 10
    written = b"".join(f.read_bytes() for f in tmp_path.rglob("*") if f.is_file())
    shown = "".join(capfd.readouterr()) + caplog.text + repr(p.sources) + repr(secured)
    assert PASSWORD.encode() not in written
    assert PASSWORD not in shown + str(progress)


def test_what_kafka_refuses_at_once() -> None:
    for make, sentence in (
        (lambda: kafka("t", "no-port"), "not a list of Kafka servers"),
        (lambda: kafka("t", "a:1", starting="newest"), "unknown starting point 'newest'"),
        (lambda: kafka("t", "a:1", format="jsn"), "did you mean 'json'"),  # type: ignore[arg-type]
        (lambda: kafka("t", "a:1", format="avro", schema="id long"), "an Avro schema is JSON"),
        (lambda: kafka("t", "a:1", format="plain", schema="id long"), "leave out schema"),
        (lambda: kafka("t", "a:1", "b"), "kafka takes kafka"),
        (lambda: Pipeline("p").source("in", kafka("a:1")), "source 'in': name the topic first"),
        (lambda: Pipeline("p").sink("out", "x", kafka("a:1")), "sink 'out': name the topic"),
    ):
        with pytest.raises(InvalidConfig, match=sentence):
            make()
