"""A store on HDFS, or on any other file system that Spark's Hadoop client speaks, used through
Spark's own JVM in the driver.

A file is written under another name and renamed, which HDFS does atomically and refuses where the
name is taken. The process in which Spark plans a source has no JVM to ask. So all that is written
is also kept in a folder of the driver's disk, the copy, which that process reads; a start fills it
anew from the store.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from foretide.files import replace_file
from foretide.spark.edge.store import StorePath

Answer = TypeVar("Answer")


class HadoopFiles:
    """The few operations that a store needs, on one file system. OSError when one fails."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        jvm: Any = spark._jvm
        settings = spark._jsc.hadoopConfiguration()
        self._jvm = jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        self._files = _answer(lambda: self._path(url).getFileSystem(settings))
        self._renamer = _answer(
            lambda: jvm.org.apache.hadoop.fs.FileContext.getFileContext(
                self._files.getUri(), settings
            )
        )

    def is_file(self, name: str) -> bool:
        try:
            return bool(_answer(lambda: self._files.getFileStatus(self._path(name)).isFile()))
        except FileNotFoundError:
            return False

    def exists(self, name: str) -> bool:
        return bool(_answer(lambda: self._files.exists(self._path(name))))

    def names(self, name: str) -> list[str]:
        """What is directly below, in order."""
        try:
            listed = _answer(lambda: self._files.listStatus(self._path(name)))
        except FileNotFoundError:
            return []
        return sorted(str(status.getPath().getName()) for status in listed)

    def read(self, name: str) -> bytes:
        def whole() -> bytes:
            stream = self._files.open(self._path(name))
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

        return _answer(whole)

    def write(self, name: str, data: bytes, *, overwrite: bool) -> None:
        """The whole file at once; FileExistsError when it is there and may not be replaced."""
        folder, _, last = name.rpartition("/")
        written = self._path(f"{folder}/.{last}.{uuid4().hex}.tmp")
        rename = self._jvm.org.apache.hadoop.fs.Options.Rename
        how = self._jvm.java.lang.reflect.Array.newInstance(rename.NONE.getDeclaringClass(), 1)
        how[0] = rename.OVERWRITE if overwrite else rename.NONE

        def create() -> None:
            stream = self._files.create(written, True)
            try:
                stream.write(bytearray(data))
            finally:
                stream.close()
            try:
                self._renamer.rename(written, self._path(name), how)
            except Py4JJavaError:
                self._files.delete(written, False)
                raise

        _answer(create)

    def delete(self, name: str) -> bool:
        """Whether there was such a file."""
        return bool(_answer(lambda: self._files.delete(self._path(name), False)))


class HadoopPath(StorePath):
    """A name in a store on a Hadoop file system; ``copy`` is the folder of the driver's copy."""

    def __init__(self, url: str, key: str, files: HadoopFiles, copy: Path) -> None:
        super().__init__(url, key)
        self._files = files
        self._copy = copy

    def _named(self, key: str) -> HadoopPath:
        return HadoopPath(self.url, key, self._files, self._copy)

    @property
    def for_readers(self) -> str:
        return f"file://{self._copy}/{self.key}"

    def refresh(self) -> None:
        """Make the copy anew from what is in the store."""
        shutil.rmtree(self._copy, ignore_errors=True)
        for operator in self._named("edges").glob():
            for file in operator.glob():
                if not file.name.startswith("."):
                    file._keep(file.read_bytes())

    def _keep(self, data: bytes) -> None:
        file = self._copy / self.key
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, data)

    def is_file(self) -> bool:
        return self._files.is_file(str(self))

    def exists(self) -> bool:
        return self._files.exists(str(self))

    def glob(self, pattern: str = "*") -> Iterator[HadoopPath]:
        assert pattern == "*"
        for name in self._files.names(str(self)):
            yield self._named(f"{self.key}/{name}" if self.key else name)

    def read_bytes(self) -> bytes:
        return self._files.read(str(self))

    def write_bytes(self, data: bytes) -> None:
        self._files.write(str(self), data, overwrite=True)
        self._keep(data)

    def create(self, data: bytes) -> None:
        self._files.write(str(self), data, overwrite=False)
        self._keep(data)

    def unlink(self, missing_ok: bool = False) -> None:
        there = self._files.delete(str(self))
        (self._copy / self.key).unlink(missing_ok=True)
        if not there and not missing_ok:
            raise FileNotFoundError(str(self))


def open_hadoop(url: str, spark: SparkSession, copy: Path) -> HadoopPath:
    """The store at an address; OSError when it does not answer."""
    place = HadoopPath(url, "", HadoopFiles(spark, url), copy)
    place.refresh()
    return place


def _answer(ask: Callable[[], Answer]) -> Answer:
    """The answer of the JVM, with its exceptions as Python's own."""
    try:
        return ask()
    except Py4JJavaError as error:
        thrown: Any = error.java_exception
        kind, said = str(thrown.getClass().getName()), str(thrown.getMessage())
        line = said.strip().splitlines()[0] if said.strip() else kind
        if kind.endswith("FileNotFoundException"):
            raise FileNotFoundError(line) from None
        if kind.endswith("FileAlreadyExistsException"):
            raise FileExistsError(line) from None
        raise OSError(line) from None
