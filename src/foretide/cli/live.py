"""Around a live run: its folder is checked, Spark's tracebacks go to a log, its failures become
sentences.
"""

from __future__ import annotations

import logging
import os
import re
import socketserver
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foretide.errors import ForetideError, InvalidConfig, PipelineFailed

log = logging.getLogger("foretide.driver")
GO_ON = "no event is lost or doubled: the same command continues where it ended"


def usable_folder(folder: Path | str) -> Path:
    """The folder of a run, made if it is not there. Raises InvalidConfig where it cannot be used.

    A URL such as ``s3a://bucket/run`` is one: edges are renamed, which object stores cannot do.
    """
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(folder)):
        raise InvalidConfig(
            f"--folder {folder} is not a directory path: give a local directory, or one that the "
            "driver and all executors mount"
        )
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise InvalidConfig(f"--folder {path} is a file: give a directory")
    try:
        path.mkdir(parents=True, exist_ok=True)
        writable = os.access(path, os.W_OK | os.X_OK)
    except OSError as error:
        raise InvalidConfig(
            f"--folder {path} cannot be made: {error.strerror}; choose a directory you can write to"
        ) from error
    if not writable:
        raise InvalidConfig(f"--folder {path} cannot be written: choose one you can write to")
    return path


def spark_settings(
    packages: str | None, conf: Sequence[str], with_page: bool = False
) -> dict[str, str]:
    """Spark's settings from ``--packages`` and ``--conf``; ``with_page`` starts Spark's own page,
    which the dashboard links.

    >>> spark_settings("org.x:y:1", ["spark.ui.port=4050"], with_page=True)
    {'spark.ui.enabled': 'true', 'spark.ui.port': '4050', 'spark.jars.packages': 'org.x:y:1'}
    """
    settings = {"spark.ui.enabled": "true"} if with_page else {}
    for item in conf:
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise InvalidConfig(f"--conf {item}: write KEY=VALUE, as in spark.executor.memory=2g")
        settings[key.strip()] = value.strip()
    if packages:
        known = settings.get("spark.jars.packages")
        settings["spark.jars.packages"] = f"{known},{packages}" if known else packages
    return settings


@contextmanager
def sentences(folder: Path) -> Iterator[None]:
    """Inside, the tracebacks of Spark's own threads go to ``driver.log`` in the folder, and an
    error that Spark raises becomes one sentence.
    """
    file = folder / "driver.log"
    handler = logging.FileHandler(file, delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    root, hook = logging.getLogger(), threading.excepthook
    server: Any = socketserver.BaseServer  # prints to standard error; pyspark has one
    request_hook = server.handle_error
    root.addHandler(handler)
    threading.excepthook = _thread_failed
    server.handle_error = _request_failed
    try:
        yield
    except Exception as error:
        said = sentence(error, folder)
        if said is None:
            raise
        if said is not error:
            log.error("the run ended: %s", said, exc_info=error)
        raise said from None
    finally:
        threading.excepthook = hook
        server.handle_error = request_hook
        root.removeHandler(handler)
        handler.close()


def _thread_failed(args: threading.ExceptHookArgs) -> None:
    log.error("in thread %s", args.thread, exc_info=args.exc_value)


def _request_failed(server: object, request: object, address: object) -> None:
    log.error("in %s", type(server).__name__, exc_info=True)


def sentence(error: Exception, folder: Path) -> ForetideError | None:
    """What a user should read of an error; None for one that is nobody's but ours."""
    from foretide.spark.control.java import java_has_ended

    text = " ".join(str(error).split())
    home = type(error).__module__.partition(".")[0]
    if "JAVA_GATEWAY_EXITED" in text:
        return PipelineFailed(
            "Spark did not start: its Java process ended at once; "
            f"{folder / 'spark.log'} says why (packages that cannot be had, too little memory)"
        )
    if java_has_ended():
        return PipelineFailed(
            "Spark's Java process ended (killed, crashed or out of memory); "
            f"{GO_ON}. Details: {folder / 'spark.log'} and {folder / 'driver.log'}"
        )
    if connector := re.search(r"[Ff]ailed to find (?:the )?data source: ['\"`]?(\w+)", text):
        return InvalidConfig(missing_connector(connector[1]))
    if isinstance(error, ForetideError):
        return error
    if home in ("py4j", "pyspark"):
        first = str(error).strip().splitlines()[0]
        return PipelineFailed(f"Spark refused: {first} Details: {folder / 'driver.log'}")
    return None


def missing_connector(name: str) -> str:
    """What to do about a data source that Spark does not have.

    >>> missing_connector("delta")
    "Spark has no data source 'delta': add its connector with --packages GROUP:ARTIFACT:VERSION"
    """
    said = f"Spark has no data source '{name}': add its connector with --packages "
    if name.lower() != "kafka":
        return said + "GROUP:ARTIFACT:VERSION"
    version = getattr(sys.modules.get("pyspark"), "__version__", "4.3.0")
    return said + f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version}"
