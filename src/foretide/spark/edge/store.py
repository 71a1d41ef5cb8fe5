"""Where a pipeline keeps what must outlive its driver: a folder on a disk, or a store given by its
address: an object store (S3, GCS, Azure), or a file system of Hadoop's (``hadoop``).

An object store has no rename. Everything here is an object that is created once or replaced whole,
and both are atomic: a reader finds all of it or nothing. ``create`` refuses an object that is
there, so of two drivers that deliver the same batch only one succeeds. Addresses are Spark's own
(``s3a://bucket/clicks``), since Spark keeps its checkpoints there too; for object stores, keys and
endpoints come from the environment (``AWS_ACCESS_KEY_ID`` and so on), as for any client of theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretide.errors import InvalidConfig, PipelineFailed, missing_extra
from foretide.files import replace_file

if TYPE_CHECKING:
    from obstore.store import ObjectStore
    from pyspark.sql import SparkSession

OBJECT_STORES = ("s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "memory", "file")
"""Kinds of addresses that are not asked through Spark's JVM."""


class StorePath:
    """A name in an object store, with the few methods of ``pathlib.Path`` that are used here.

    >>> place = StorePath("memory:///", "run/edges")
    >>> str(place / "a" / "b-0.json"), (place / "a").name
    ('memory:///run/edges/a/b-0.json', 'a')
    """

    def __init__(self, url: str, key: str = "") -> None:
        self.url = url if url.endswith("/") else f"{url}/"
        self.key = key

    def __str__(self) -> str:
        return f"{self.url}{self.key}"

    def __repr__(self) -> str:
        return f"StorePath('{self}')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorePath) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def _named(self, key: str) -> StorePath:
        return StorePath(self.url, key)

    def __truediv__(self, part: str) -> StorePath:
        return self._named(f"{self.key}/{part}" if self.key else part)

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2] or self.url.rstrip("/").rpartition("/")[2]

    @property
    def parent(self) -> StorePath:
        return self._named(self.key.rpartition("/")[0])

    @property
    def for_readers(self) -> str:
        """The address at which a process of the driver's machine without a JVM reads the same."""
        return str(self)

    def with_name(self, name: str) -> StorePath:
        return self.parent / name

    def is_file(self) -> bool:
        import obstore

        try:
            obstore.head(_store(self.url), self.key)
        except FileNotFoundError:
            return False
        return True

    def exists(self) -> bool:
        """Whether there is an object of this name, or any below it."""
        return self.is_file() or next(iter(self.glob()), None) is not None

    def glob(self, pattern: str = "*") -> Iterator[StorePath]:
        """What is directly below, in order; ``*`` is the only pattern."""
        import obstore

        assert pattern == "*"
        listed: Any = obstore.list_with_delimiter(_store(self.url), self.key or None)
        keys = {str(o["path"]) for o in listed["objects"]} | set(
            map(str, listed["common_prefixes"])
        )
        yield from (StorePath(self.url, key) for key in sorted(keys))

    def read_bytes(self) -> bytes:
        import obstore

        return bytes(obstore.get(_store(self.url), self.key).bytes())

    def read_text(self) -> str:
        return self.read_bytes().decode()

    def write_bytes(self, data: bytes) -> None:
        """Replace the whole object."""
        self._put(data, "overwrite")

    def create(self, data: bytes) -> None:
        """FileExistsError when there is such an object."""
        from obstore.exceptions import AlreadyExistsError

        try:
            self._put(data, "create")
        except AlreadyExistsError:
            raise FileExistsError(str(self)) from None

    def _put(self, data: bytes, mode: Any) -> None:
        import obstore

        obstore.put(_store(self.url), self.key, data, mode=mode)

    def unlink(self, missing_ok: bool = False) -> None:
        import obstore

        try:
            obstore.delete(_store(self.url), self.key)
        except FileNotFoundError:
            if not missing_ok:
                raise


Place = Path | StorePath


@lru_cache(maxsize=8)
def _store(url: str) -> ObjectStore:
    from obstore.store import from_url

    if url.startswith("file://"):
        Path(url.removeprefix("file://")).mkdir(parents=True, exist_ok=True)
    return from_url(url)


def open_store(url: str, spark: SparkSession | None = None, copy: Path | None = None) -> StorePath:
    """The store at an address, when it answers; InvalidConfig otherwise. A file system of Hadoop's
    needs the session, and a folder of the driver for a ``copy`` of what is in it.
    """
    try:
        import obstore
    except ModuleNotFoundError:
        raise missing_extra("kafka", "a store needs obstore") from None
    place = StorePath(url)
    try:
        if spark is not None and copy is not None and not is_object_store(url):
            from foretide.spark.edge.hadoop import open_hadoop

            return open_hadoop(url, spark, copy)
        obstore.list_with_delimiter(_store(place.url), None)
    except Exception as error:
        said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        where = "the environment" if is_object_store(url) else "Spark's spark.hadoop.* settings"
        raise InvalidConfig(
            f"the store {url} cannot be used: {said[:300]}. Check the address, the network, and "
            f"the keys in {where}"
        ) from None
    return place


def is_object_store(url: str) -> bool:
    """Whether an address is one of an object store.

    >>> is_object_store("s3a://bucket/run"), is_object_store("hdfs://namenode:8020/run")
    (True, False)
    """
    return url.partition("://")[0] in OBJECT_STORES


def place_at(text: str) -> Place:
    """A folder, or a name in a store, from its text.

    >>> place_at("/tmp/run").name, place_at("s3a://bucket/run/edges").name
    ('run', 'edges')
    """
    return StorePath(text) if "://" in text else Path(text)


def address_for_readers(place: Place) -> str:
    """The text from which the process that plans a source gets the same place."""
    return place.for_readers if isinstance(place, StorePath) else str(place)


def is_local(place: Place) -> bool:
    """Whether a place is on a disk of this machine.

    >>> is_local(place_at("/run")), is_local(place_at("file:///run")), is_local(place_at("s3://b"))
    (True, True, False)
    """
    return isinstance(place, Path) or place.url.startswith("file://")


def replace(place: Place, data: bytes, *, durable: bool = False) -> None:
    """Replace a small file or object whole. OSError when that fails."""
    if isinstance(place, StorePath):
        place.write_bytes(data)
    else:
        replace_file(place, data, durable=durable)


def taken(place: Place, operator: str) -> PipelineFailed:
    """Two drivers deliver the same batch."""
    return PipelineFailed(
        f"operator '{operator}': {place} is there already: another process runs this pipeline with "
        "the same store; stop it, or choose another store"
    )
