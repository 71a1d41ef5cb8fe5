"""What the offsets of each kind of source mean; estimates where they mean nothing."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foretide.spark.edge.checkpoint import Checkpoint
from foretide.spark.edge.protocol import Manifest
from foretide.spark.run.arrivals import (
    CounterFeed,
    Feed,
    FileFeed,
    KafkaFeed,
    OpenSource,
    Outside,
    RateFeed,
)


def logged(root: Path, batch: int, at: float, *offsets: Any) -> None:
    """Spark's offset log of one batch."""
    (root / "offsets").mkdir(parents=True, exist_ok=True)
    lines = ["v1", json.dumps({"batchTimestampMs": at * 1e3}), *map(json.dumps, offsets)]
    (root / "offsets" / str(batch)).write_text("\n".join(lines))


def of(root: Path, feed: Feed) -> Outside:
    return Outside(Checkpoint(root), [OpenSource("s", (feed,))])


def test_a_rate_source_counts_on_while_a_batch_runs(tmp_path: Path) -> None:
    log = tmp_path / "sources" / "0"
    log.mkdir(parents=True)
    (log / "0").write_text("v1\n1000000")
    outside = of(tmp_path, RateFeed(log, 100.0))
    logged(tmp_path, 0, 1002.0, 2)
    assert outside.arrived(Manifest(-1, 0.0, 1), 1002.5) == 200
    assert outside.arrived(Manifest(-1, 0.0, 1), 1060.0) == 6000, "the batch of 200 still runs"
    assert outside.arrived(Manifest(0, 1060.0, 1, {"s": 200}), 1060.0) == 6000


@pytest.mark.parametrize(("seconds", "events"), [(1, 2), (3, 12), (4, 20), (5, 30), (6, 40)])
def test_a_rate_source_that_ramps_up(seconds: int, events: int) -> None:
    """Spark's own figures for 10 rows per second and a ramp-up of 4 seconds."""
    assert RateFeed(Path("none"), 10.0, 4).between(None, seconds) == pytest.approx(events)


def test_kafka_counts_from_where_the_query_began(tmp_path: Path) -> None:
    (tmp_path / "0").write_text('v1\n{"t":{"0":40,"1":0}}')
    feed = KafkaFeed(tmp_path)
    assert feed.between(None, {"t": {"0": 45, "1": 7}}) == 12
    assert feed.between({"t": {"0": 45, "1": 7}}, {"t": {"0": 45, "1": 9, "2": 4}}) == 6


def test_files_count_whether_or_not_a_batch_took_them(tmp_path: Path) -> None:
    inputs, log = tmp_path / "in", tmp_path / "sources" / "0"
    inputs.mkdir()
    log.mkdir(parents=True)
    for i in range(4):
        pq.write_table(pa.table({"a": list(range(10 + i))}), inputs / f"{i}.parquet")
    (inputs / "_SUCCESS").write_text("")
    feed = FileFeed(log, str(inputs), "parquet")
    assert feed.beyond(None, 0.0) == 46
    entries = [{"path": f"file://{inputs}/{i}.parquet", "batchId": i} for i in range(3)]
    (log / "0").write_text("v1\n" + json.dumps(entries[0]))
    (log / "1.compact").write_text("v1\n" + "\n".join(json.dumps(e) for e in entries[:2]))
    (log / "2").write_text("v1\n" + json.dumps(entries[2]))
    assert feed.between({"logOffset": 0}, {"logOffset": 2}) == 11 + 12
    assert feed.beyond({"logOffset": 2}, 0.0) == 13
    (inputs / "2.parquet").unlink()
    assert feed.between({"logOffset": 1}, {"logOffset": 2}) == 12, "counted before it was removed"


def test_a_relative_folder_is_the_one_of_spark_s_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text("{}\n{}\n")
    (tmp_path / "0").write_text(
        "v1\n" + json.dumps({"path": f"file://{tmp_path}/in/a.json", "batchId": 0})
    )
    monkeypatch.chdir(tmp_path)
    feed = FileFeed(tmp_path, "in", "json")
    assert feed.beyond(None, 0.0) == 2
    assert feed.beyond({"logOffset": 0}, 0.0) == 0, "a batch took the file: it does not wait"


def test_text_is_counted_by_lines_and_odd_formats_are_unknown(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1\n2\n3")
    assert FileFeed(tmp_path, str(tmp_path), "csv").beyond(None, 0.0) == 3
    assert FileFeed(tmp_path, str(tmp_path), "orc").beyond(None, 0.0) is None


def test_any_other_source_is_extrapolated_while_a_batch_runs(tmp_path: Path) -> None:
    """50 events in 10 s: 5 per second, also for the batch that runs and after it."""
    feed = CounterFeed()
    outside = of(tmp_path, feed)
    logged(tmp_path, 0, 100.0, {"page": 1})
    assert outside.arrived(Manifest(-1, 0.0, 1), 105.0) is None, "nothing to estimate from"
    outside.finished(0, 80)
    logged(tmp_path, 1, 110.0, {"page": 2})
    outside.finished(1, 50)
    done = Manifest(1, 112.0, 1, {"s": 130})
    assert outside.arrived(done, 118.0) == 130, "Spark would take at once what waits"
    logged(tmp_path, 2, 120.0, {"page": 4})
    assert feed.per_unit == 50
    assert outside.arrived(done, 126.0) == 130 + 100 + 30
    outside.counted(2, {"s": 90})
    assert outside.arrived(done, 126.0) == 130 + 90 + 30
