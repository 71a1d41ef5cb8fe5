"""What directory sinks hold, in few files: ``output/<sink>/part-<first batch>-<last
batch>.parquet``.

A delivered batch keeps a sink's events in a folder of its own. A publisher gathers those folders,
one file for many batches, and makes the file visible by one rename; its name says which batches it
holds. So every event is in the output exactly once, also after a crash: a start removes the folders
of batches that a file already holds. The folders of a gathering go at the next one, so that a
reader who has just listed them can still read them.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from foretide.spark.edge.durable import sync
from foretide.spark.edge.outbox import Outbox

log = logging.getLogger(__name__)
FIRST_S, MOST_S = 5.0, 60.0
"""Seconds between two gatherings: few at first, so that there is something to see, then more."""
_PART = re.compile(r"part-(\d+)-(\d+)\.parquet")


@dataclass
class Gathered:
    """One sink (or the dead letters of one operator). ``held`` guards the folders of its outbox."""

    target: Path
    outbox: Outbox
    folder: str
    schema: StructType
    held: AbstractContextManager[object]
    pending: list[int] = field(default_factory=list)
    published: list[int] = field(default_factory=list)

    def place(self, batch: int) -> Path:
        return self.outbox.folder(batch) / self.folder

    def files(self) -> list[Path]:
        return sorted(self.target.glob("part-*.parquet"))

    def open(self) -> None:
        """What an earlier run left: batches that a file holds, and batches that wait."""
        self.target.mkdir(parents=True, exist_ok=True)
        matches = [_PART.fullmatch(f.name) for f in self.files()]
        last = max((int(m[2]) for m in matches if m), default=-1)
        waiting = [b for b in self.outbox.batches() if self.place(b).is_dir()]
        self.published = [b for b in waiting if b <= last]
        self.pending = [b for b in waiting if b > last]
        self.remove_published()

    def remove_published(self) -> None:
        with self.held:
            newest = self.outbox.newest()
            for batch in self.published:
                self._remove(batch, newest)
        self.published = []

    def _remove(self, batch: int, newest: int) -> None:
        """Remove a sink's folder, and the whole batch when nothing but its manifest is left. The
        newest batch stays, for its totals and against replay.
        """
        batch_folder, place = self.outbox.folder(batch), self.place(batch)
        if place.is_dir():
            self._drop(place)
        if batch >= newest or not batch_folder.is_dir():
            return
        if os.listdir(batch_folder) == ["manifest.json"]:
            self._drop(batch_folder)

    def _drop(self, folder: Path) -> None:
        """Remove a folder by one rename: a reader finds it whole or not at all."""
        gone = self.outbox.root / f".published-{self.folder}"
        shutil.rmtree(gone, ignore_errors=True)
        os.rename(folder, gone)
        shutil.rmtree(gone, ignore_errors=True)


class OutputFolder:
    """Gathers all directory sinks of a running pipeline, on a thread of its own."""

    def __init__(self, spark: SparkSession, root: Path, power: bool = False) -> None:
        self.root = root
        self._spark = spark
        self._power = power
        self._sinks: dict[str, Gathered] = {}
        self._gathering = threading.Lock()
        self._listing = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self, name: str, sink: Gathered) -> None:
        """Add a sink before its operator's query starts."""
        sink.open()
        self._sinks[name] = sink

    def start(self) -> None:
        if self._sinks:
            self._thread = threading.Thread(target=self._loop, daemon=True, name="foretide-output")
            self._thread.start()

    def delivered(self, name: str, batch: int) -> None:
        """A batch with events for a sink was delivered."""
        if name in self._sinks:
            with self._listing:
                self._sinks[name].pending.append(batch)

    def read(self, name: str) -> DataFrame:
        """All that a sink holds now: gathered files, and the batches since."""
        sink = self._sinks[name]
        with self._listing:
            places = [*sink.files(), *map(sink.place, sink.pending)]
        if not places:
            return self._spark.createDataFrame([], sink.schema)
        return self._spark.read.schema(sink.schema).parquet(*map(str, places))

    def _loop(self) -> None:
        pause_s = FIRST_S
        while not self._ended.wait(pause_s):
            if self._gather_all():
                pause_s = min(MOST_S, 2 * pause_s)

    def _gather_all(self) -> bool:
        """Gather what waits in every sink; whether there was anything."""
        gathered = False
        with self._gathering:
            for name, sink in self._sinks.items():
                try:
                    gathered = self._gather(sink) or gathered
                except (OSError, PySparkException, Py4JError) as error:
                    if not self._ended.is_set():  # a session that is being stopped refuses jobs
                        log.warning("the output of '%s' is gathered later: %s", name, error)
        return gathered

    def _gather(self, sink: Gathered) -> bool:
        sink.remove_published()
        with self._listing:
            batches = list(sink.pending)
        if not batches:
            return False
        staging = self.root / f".staging-{sink.target.name}"
        shutil.rmtree(staging, ignore_errors=True)
        places = [str(sink.place(b)) for b in batches]
        frame = self._spark.read.schema(sink.schema).parquet(*places)
        frame.coalesce(1).write.parquet(str(staging))
        (part,) = staging.glob("*.parquet")
        if self._power:
            sync(part)
        with self._listing:
            os.rename(part, sink.target / f"part-{batches[0]}-{batches[-1]}.parquet")
            del sink.pending[: len(batches)]
            sink.published = batches
        if self._power:
            sync(sink.target)
        shutil.rmtree(staging, ignore_errors=True)
        return True

    def stop(self) -> None:
        """Gather the rest; called when no query runs any more."""
        if self._thread is None or self._ended.is_set():
            return
        self._ended.set()
        self._thread.join()
        self._gather_all()
        for sink in self._sinks.values():
            sink.remove_published()
