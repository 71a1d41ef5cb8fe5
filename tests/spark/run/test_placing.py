"""Operators on chosen executors: seats, moves and their standstill, and the share of a replica."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foretide.balance import GROUPINGS
from foretide.model import Move
from foretide.spark.run.placing import Placement, Seats
from foretide.spark.worker.columns import KEY, STAMP
from foretide.spark.worker.executor import executor_name
from foretide.spark.worker.placed import Deal

LOCATIONS = {"0": "executor_h_0", "1": "executor_h_1"}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("foretide.spark.run.placing.time.time", lambda: now[0])
    return now


def test_replicas_take_the_executors_in_turn() -> None:
    assert Seats(("0", "1"), ("x", "y")).of(3) == ("x", "y", "x")
    assert Seats().of(3) == ()


def test_a_move_counts_from_the_end_of_the_last_batch_or_from_the_request(
    clock: list[float],
) -> None:
    placement = Placement()
    placement.ask({"a": ("0",)}, LOCATIONS)
    placement.began("a", placement.seats("a"), now=101.0)
    placement.ended("a", now=102.0)
    assert placement.moves() == ()
    clock[0] = 102.5
    placement.ask({"a": ("1",)}, LOCATIONS)
    placement.began("a", placement.seats("a"), now=103.25)
    assert placement.moves() == (Move("a", ("0",), ("1",), 0.75),)
    assert placement.moves() == ()
    clock[0] = 103.5
    placement.ask({"a": ("0",)}, LOCATIONS)
    placement.ended("a", now=105.0)
    placement.began("a", placement.seats("a"), now=105.5)
    assert placement.moves() == (Move("a", ("1",), ("0",), 0.5),)


def test_an_operator_stays_while_its_new_executor_does_not_run(clock: list[float]) -> None:
    placement = Placement()
    placement.ask({"a": ("0",)}, LOCATIONS)
    placement.ask({"a": ("host-1",), "b": ("1", "host-1")}, LOCATIONS)
    assert placement.seats("a").executors == ("0",)
    assert placement.seats("b").executors == ("1",)


@pytest.mark.parametrize("grouping", ["shuffle", "key-hash", "load-aware"])
def test_every_event_is_one_replica_s(grouping: str, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), (STAMP, pa.float64())])
    files = []
    for i in range(3):
        ids = np.arange(40 * i, 40 * (i + 1))
        table = pa.table({"id": ids, STAMP: ids / 7.0, "other": ids}, None)
        files.append(str(tmp_path / f"{i}.parquet"))
        pq.write_table(table, files[-1])
    deal = Deal(4, GROUPINGS.build(grouping), ("id",), schema)
    shares = [
        [i for batch in deal.share(r, files) for i in batch.column("id").to_pylist()]
        for r in range(4)
    ]
    assert sorted(i for share in shares for i in share) == list(range(120))
    assert min(map(len, shares)) > 10
    (first, *_) = deal.share(0, files)
    assert [n for n in first.schema.names if n != KEY] == ["id", STAMP]


def test_a_process_that_no_executor_started_belongs_to_the_driver() -> None:
    assert executor_name() in ("driver", None)
