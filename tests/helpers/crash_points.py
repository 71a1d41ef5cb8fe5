"""Every file operation of the delivery protocol as a crash point, without Spark.

The project's own OperatorQuery, Channels, Outbox, Inbox, Checkpoint, Accounts and recovery run over
a small engine that keeps Spark's order: log the offsets, run the batch, log the commit, purge old
logs. An audit hook counts every call that changes a file (open for writing, rename, unlink, rmdir,
mkdir, link) and ends the process, by an exception that nothing catches, before the chosen one. Then
all is constructed anew, as after a restart, and runs to its end.

A torn crash leaves an empty file behind the open. A power cut also takes from the disk what was not
synced, in one of three ways (see ``PowerCut``).
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import StructType

from foretide.balance.shuffle import Shuffle
from foretide.errors import PipelineFailed
from foretide.load import Load
from foretide.spark.declare.generator import Generator
from foretide.spark.declare.wiring import Wired
from foretide.spark.edge.inbox import Inbox
from foretide.spark.edge.protocol import Output, Position
from foretide.spark.edge.recovery import Place, recover
from foretide.spark.run import arrivals
from foretide.spark.run.accounts import Accounts
from foretide.spark.run.arrivals import GeneratedFeed, OpenSource
from foretide.spark.run.channels import Channel, Channels
from foretide.spark.run.folder import RunFolder
from foretide.spark.run.limits import Limits
from foretide.spark.run.output import OutputFolder
from foretide.spark.run.query import Facilities, OperatorQuery
from foretide.spark.run.runners import Outcome
from foretide.spark.worker.columns import STAMP, TO

EVENTS, PER_BATCH, RETAIN = 24, 6, 3
SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), (STAMP, pa.float64())])
Row = tuple[int, int]
Sent = tuple[str, Row]


class Crash(BaseException):
    """The process is gone."""


class Injector:
    """Counts the operations under ``root`` and ends the process before number ``at``."""

    def __init__(self) -> None:
        self.on, self.dead, self.torn = False, False, False
        self.at: int | None = None
        self.count = 0
        self.root = "/nowhere"
        self.struck = ""
        sys.addaudithook(self._heard)  # a hook stays for the life of the process

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "open":
            path, mode, flags = args
            if not str(path).startswith(self.root):
                return
            if set(mode or "") & set("wax+") or (not mode and flags & (os.O_WRONLY | os.O_RDWR)):
                self.operation("write", str(path))
        elif event in ("os.rename", "os.link", "os.remove", "os.rmdir", "os.mkdir"):
            self.operation(event, str(args[0]))

    def operation(self, what: str, path: str = "") -> None:
        if not self.on:
            return
        if self.dead:
            raise Crash
        self.count += 1
        if self.count == self.at:
            self.dead, self.struck = True, f"{what} {path}"
            if self.torn and what == "write":
                self.on = False
                Path(path).touch()
            raise Crash

    @contextmanager
    def life(self, root: Path, at: int | None, torn: bool) -> Iterator[None]:
        self.root, self.at, self.torn = str(root), at, torn
        self.count, self.dead, self.on = 0, False, True
        try:
            yield
        finally:
            self.on = False


INJECTOR = Injector()


class PowerCut:
    """A disk that keeps what was synced. ``cut`` takes the rest away in one of three ways:

    - ``lost``: the disk is as it was at the last sync;
    - ``empty``: every name is there, files that were not synced are empty (ext4's way);
    - ``mixed``: every file that was not synced is whole, empty or gone.
    """

    def __init__(self, root: Path, image: Path, way: str | None) -> None:
        self.root, self.image, self.way = root, image, way
        self.synced: set[int] = set()
        self.sync_all(root)

    def sync_all(self, folder: Path) -> None:
        self.synced = {f.stat().st_ino for f in self.root.rglob("*") if f.is_file()}
        self._keep()

    def sync(self, path: Path) -> None:
        if path.is_file():
            self.synced.add(path.stat().st_ino)
        self._keep()

    def _keep(self) -> None:
        if self.way != "lost":
            return
        on, INJECTOR.on = INJECTOR.on, False
        shutil.rmtree(self.image, ignore_errors=True)

        def copy(source: str, target: str) -> None:
            if os.stat(source).st_ino in self.synced:
                os.link(source, target)
            else:
                Path(target).touch()

        shutil.copytree(self.root, self.image, copy_function=copy)
        INJECTOR.on = on

    def cut(self, rng: random.Random) -> None:
        if self.way == "lost":
            shutil.rmtree(self.root)
            shutil.copytree(self.image, self.root)
            return
        for file in [f for f in self.root.rglob("*") if f.is_file()]:
            if file.stat().st_ino not in self.synced:
                fate = "empty" if self.way == "empty" else rng.choice(["whole", "empty", "gone"])
                if fate != "whole":
                    file.unlink()
                if fate == "empty":
                    file.touch()


def put(file: Path, text: str) -> None:
    """Spark's way to write a log: a temporary file, then a rename."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.tmp")
    temporary.write_text(text)
    os.rename(temporary, file)


@dataclass
class Outside:
    """What outlives every process and every power cut: the user's database."""

    stored: dict[int, list[int]] = field(default_factory=dict)
    seen: dict[int, list[list[int]]] = field(default_factory=dict)

    def write(self, rows: Sequence[Row], batch: int) -> None:
        ids = sorted(i for i, _ in rows)
        self.seen.setdefault(batch, []).append(ids)
        INJECTOR.operation("before the writer's transaction")
        self.stored.setdefault(batch, ids)
        INJECTOR.operation("after the writer's transaction")


class Rows:
    """As much of a DataFrame and of its session as the query's driver code uses."""

    def __init__(self, rows: Sequence[Row] = (), again: Callable[[], None] = lambda: None) -> None:
        self.rows, self.save = rows, again

    sparkSession = read = write = property(lambda self: self)  # noqa: N815

    def schema(self, schema: object) -> Rows:
        return self

    def format(self, name: str) -> Rows:
        return self

    def mode(self, name: str) -> Rows:
        return self

    def parquet(self, *paths: str) -> Any:
        files: list[Path] = []
        for path in map(Path, paths):
            files += sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        return [row for f in files for row in rows_of(f)]


def rows_of(file: Path) -> list[Row]:
    table = pq.ParquetFile(file).read()
    return list(zip(table["id"].to_pylist(), table["n"].to_pylist(), strict=True))


class FileChannels(Channels):
    """Writes what a function sends by itself, in two files per channel."""

    def write(self, sent: Any, output: Output, staging: Path, per_file: int) -> None:
        target = staging / "data"
        for to in sorted({to for to, _ in sent}):
            folder = target if self._plain else target / f"{TO}={to}"
            folder.mkdir(parents=True)
            rows = [row for where, row in sent if where == to]
            for part in range(2):
                ids, ns = [i for i, _ in rows[part::2]], [n for _, n in rows[part::2]]
                table = pa.table([ids, ns, [0.0] * len(ids)], schema=SCHEMA)
                with open(folder / f"part-{part}.parquet", "wb") as f:
                    pq.write_table(table, f)


class Query(OperatorQuery):
    """One operator. ``function`` gives pairs (channel, row); a stateful one adds up ids instead."""

    def __init__(
        self,
        engine: Engine,
        name: str,
        inputs: tuple[tuple[str, ...], tuple[Any, ...]],
        channels: Channels,
        function: Callable[[Row], list[Sent]],
        stateful: bool = False,
    ) -> None:
        producers, sources = inputs
        step = SimpleNamespace(
            name=name,
            kind="frame",
            on_error="stop",
            new_grouping=lambda name: Shuffle(),
            grouped_by=lambda keeps: None,
        )
        wired = Wired(step, tuple(sources), tuple(producers), StructType([]), {}, stateful)  # type: ignore[arg-type]
        super().__init__(wired, channels, engine.facilities)
        feeds = [OpenSource(s.name, (GeneratedFeed(s.open, 0.0),)) for s in sources]
        self.outside = arrivals.Outside(self.checkpoint, feeds)
        self._runner = self  # type: ignore[assignment]
        self.function, self.state, self.batch = function, engine.path / "state" / name, -1

    def run(self, portion: Any, write: Callable[[Any], None]) -> Outcome:
        rows = portion.frame.rows if isinstance(portion.frame, Rows) else portion.frame
        if self.wired.stateful:
            self.add_up(rows)
        write([sent for row in rows for sent in self.function(row)])
        return Outcome()

    def add_up(self, rows: Sequence[Row]) -> None:
        """Spark's state store: a version per batch, from the one before."""
        before = [int(f.name) for f in self.state.glob("*") if f.name.isdigit()]
        last = max((b for b in before if b < self.batch), default=None)
        total = 0 if last is None else int((self.state / str(last)).read_text())
        put(self.state / str(self.batch), str(total + sum(i for i, _ in rows)))

    def taken(self, batch: int) -> list[Row]:
        pieces = self._waiting(batch)
        return [row for some in pieces.values() for p in some for row in rows_of(Path(p.name))]


class Engine:
    """One life of a driver over the folder of a pipeline."""

    def __init__(self, folder: RunFolder, outside: Outside, seed: int) -> None:
        self.folder, self.path = folder, folder.path
        self.outside, self.rng = outside, random.Random(seed)
        self.queries: dict[str, Query] = {}
        replicas = dict.fromkeys(("split", "loop", "count", "last"), 1)
        limits = Limits(self.folder, 1.0, replicas, dict.fromkeys(replicas, 8))
        self.facilities = Facilities(
            Rows(), "toy", 1.0, 1, "shuffle", 0.0, self.folder, None,  # type: ignore[arg-type]
            replicas, limits, OutputFolder(Rows(), self.path / "output"),  # type: ignore[arg-type]
            lambda: False, lambda name, error: cast(PipelineFailed, error),
        )  # fmt: skip
        self._declare()
        recover({n: self._place(q) for n, q in self.queries.items()})
        manifests = {n: q.outbox.latest() for n, q in self.queries.items()}
        self.accounts = Accounts(manifests)
        object.__setattr__(self.facilities, "accounts", self.accounts)
        self.check_backlogs()

    @staticmethod
    def _place(query: Query) -> Place:
        written_out = any(s.write is not None for s in query.channels.sinks)
        producers = query.wired.producers
        return Place(query.name, query.checkpoint, query.outbox, producers, written_out)

    def _declare(self) -> None:
        rng = self.rng

        def split(row: Row) -> list[Sent]:
            return [("0" if rng.random() < 0.5 else "1", row)]

        def loop(row: Row) -> list[Sent]:
            if row[0] % 11 == 3:
                return [("dead", row)]
            return [("0" if row[1] < 3 and rng.random() < 0.4 else "1", (row[0], row[1] + 1))]

        burst = Load("burst", np.array([float(EVENTS)]), 1.0)
        source = SimpleNamespace(name="events", open=Generator(burst))
        given = SimpleNamespace(output=None)
        stored = SimpleNamespace(name="db", write=self.outside.write, input=given)
        kept = SimpleNamespace(name="kept", write=None, input=given)

        def channels(*folders: tuple[str, ...], sinks: Any = (), diverts: bool = False) -> Channels:
            ways = tuple(Channel(str(i), None, (), f) for i, f in enumerate(folders))
            gives = dict.fromkeys((None, "0", "1"), StructType([]))
            return FileChannels(ways, sinks, StructType([]), gives, diverts, False)

        one = (("to.loop",), ("to.count", "sink.right"))
        two = (("to.loop",), ("to.last",))
        looping = channels(*two, diverts=True)
        last = channels(("sink.db", "sink.kept"), sinks=(stored, kept))
        self.queries = {
            "split": Query(self, "split", ((), (source,)), channels(*one), split),
            "loop": Query(self, "loop", (("split", "loop"), ()), looping, loop),
            "count": Query(self, "count", (("split",), ()), channels(), lambda row: [], True),
            "last": Query(self, "last", (("loop",), ()), last, lambda row: [("0", row)]),
        }  # fmt: skip

    def check_backlogs(self) -> None:
        """The accounts' backlog = events in files after the consumer's last delivered batch."""
        for consumer, q in self.queries.items():
            done = q.outbox.newest()
            for producer in q.wired.producers:
                at = q.checkpoint.offsets(done).end[-1].get(producer, "0.0") if done >= 0 else "0.0"
                assert isinstance(q.inbox, Inbox)
                waiting = sum(p.events for p in q.inbox.pieces(producer, Position.parse(at)))
                counted = self.backlog(producer, consumer)
                assert counted == waiting, f"backlog {producer}->{consumer}: {counted}, {waiting}"

    def backlog(self, producer: str, consumer: str) -> int:
        carried = self.accounts.latest(producer).delivered.get(f"to.{consumer}", 0)
        return carried - self.accounts.latest(consumer).consumed.get(producer, 0)

    def one_batch(self, q: Query) -> bool:
        """One micro-batch in Spark's order; False when there is nothing to do."""
        last, committed = q.checkpoint.last_batch(), q.checkpoint.last_commit()
        if last is not None and last > committed:
            batch = last
        elif (planned := self._plan(q, last)) is None:
            return False
        else:
            batch = 0 if last is None else last + 1
            log = q.checkpoint.root / "offsets"
            put(log / str(batch), f'v1\n{{"batchTimestampMs": 1000}}\n{planned}\n')
            for old in [f for f in log.glob("*") if f.name.isdigit()]:
                if int(old.name) < batch - RETAIN:
                    old.unlink()
        q.batch = batch
        rows: Sequence[Row] = ()
        if q.wired.sources:
            span = q.checkpoint.offsets(batch)
            start = (span.start[0] or {"events": 0})["events"]
            rows = [(i, 0) for i in range(start, span.end[0]["events"])]
        elif q.wired.stateful:
            rows = q.taken(batch)
        q._batch(Rows(rows, lambda: q.add_up(q.taken(batch))), batch)  # type: ignore[arg-type]
        put(q.checkpoint.root / "commits" / str(batch), "v1\n{}")
        return True

    @staticmethod
    def _plan(q: Query, last: int | None) -> str | None:
        start = None if last is None else q.checkpoint.offsets(last).end
        if q.wired.sources:
            at = start[0]["events"] if start else 0
            return None if at == EVENTS else json.dumps({"events": min(EVENTS, at + PER_BATCH)})
        before = start[-1] if start else q.inbox.start()
        reached = q.inbox.advance(before, 2 if q.wired.stateful else 8)
        return None if reached == before else json.dumps(reached)

    def run(self) -> None:
        """Operators take turns in any order, some several times in a row, until none has work."""
        order = random.Random(len(self.queries))
        idle: set[str] = set()
        while len(idle) < len(self.queries):
            name = order.choice(sorted(set(self.queries) - idle))
            if self.one_batch(self.queries[name]):
                idle.clear()
            else:
                idle.add(name)


def ids(path: Path, pattern: str) -> list[int]:
    return [i for f in path.glob(pattern) for i, _ in rows_of(f)]


def wrong(folder: RunFolder, outside: Outside) -> list[str]:
    """What is not exactly once, in words."""
    path = folder.path
    right, dead = ids(path, "**/sink.right/*.parquet"), ids(path, "**/dead/*.parquet")
    stored = [i for batch in outside.stored.values() for i in batch]
    found = []
    for name, out in (("db", stored), ("kept", ids(path, "**/sink.kept/*.parquet"))):
        counts = Counter(out + right + dead)
        if sorted(out + right + dead) != list(range(EVENTS)):
            twice = [i for i, n in counts.items() if n > 1]
            found.append(
                f"{name}: lost {sorted(set(range(EVENTS)) - set(counts))}, doubled {twice}"
            )
    if any(len({tuple(s) for s in seen}) > 1 for seen in outside.seen.values()):
        found.append("the writer saw two contents of one batch")
    versions = [f for f in (path / "state" / "count").glob("*") if f.name.isdigit()]
    states = {int(f.name): f.read_text() for f in versions}
    if int(states[max(states)] if states else 0) != sum(right):
        found.append("the state is wrong")
    engine = Engine(folder, outside, 0)
    edges = [(p, c) for c, q in engine.queries.items() for p in q.wired.producers]
    left = {edge: engine.backlog(*edge) for edge in edges}
    if any(left.values()):
        found.append(f"backlogs at the end: {left}")
    consumed = sum(engine.accounts.latest("split").consumed.values())
    if consumed != EVENTS:
        found.append(f"split consumed {consumed}")
    if staged := [f.name for f in path.glob("edges/*/.staging-*")]:
        found.append(f"left over: {staged}")
    return found


@dataclass(frozen=True)
class Trial:
    """What one chain of crashes led to. ``ended`` before the last crash point was reached."""

    ended: bool
    crashes: tuple[str, ...]
    wrong: tuple[str, ...]


def trial(points: Sequence[int], seed: int, torn: bool = False, power: str | None = None) -> Trial:
    """Crash at each of ``points`` (operations of its life), then run to the end. With ``power``
    every crash is a power cut of that kind on a disk that keeps what was synced.
    """
    base = Path(
        tempfile.mkdtemp(prefix="crash-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    )
    root, outside, crashes = base / "pipeline", Outside(), list[str]()
    root.mkdir()
    disk, rng = PowerCut(root, base / "image", power), random.Random(seed)
    try:
        with synced_by(disk if power else None):
            for life, at in enumerate([*points, None]):
                folder = None
                try:
                    with INJECTOR.life(root, at, torn):
                        folder = RunFolder(root, "power" if power else "process")
                        Engine(folder, outside, seed * 100 + life).run()
                except Crash:
                    crashes.append(INJECTOR.struck)
                    if power:
                        disk.cut(rng)
                        disk.sync_all(root)  # all that is left is on the disk
                else:
                    return Trial(at is not None, tuple(crashes), tuple(wrong(folder, outside)))
                finally:
                    if folder is not None:
                        folder.release()
        raise AssertionError("unreachable")
    except Exception as error:
        return Trial(False, tuple(crashes), (f"{type(error).__name__}: {error}",))
    finally:
        shutil.rmtree(base)


@contextmanager
def synced_by(disk: PowerCut | None) -> Iterator[None]:
    """The project's syncs go to a disk of ours."""
    from foretide.spark.edge import checkpoint, outbox

    if disk is None:
        yield
        return
    before = outbox.sync_all, outbox.sync, checkpoint.sync  # type: ignore[attr-defined]
    ours = disk.sync_all, disk.sync, disk.sync
    outbox.sync_all, outbox.sync, checkpoint.sync = ours  # type: ignore[attr-defined]
    try:
        yield
    finally:
        outbox.sync_all, outbox.sync, checkpoint.sync = before  # type: ignore[attr-defined]
