"""Spark's Python daemon with the libraries already loaded: a new replica is a fork that can start
at once.

Without it every new worker process imports numpy, pyarrow and the task code by itself, half a
second of CPU each, at the very moment when more replicas are needed. ``FORETIDE_PRELOAD`` names
further modules; the function ``warm`` of one that has it is called. Spark runs this file as a
module in place of ``pyspark.daemon`` (setting ``spark.python.daemon.module``).
"""

from __future__ import annotations

import gc
import importlib
import os
import socket

os.environ.setdefault("OMP_NUM_THREADS", "1")  # no thread may exist when the daemon forks
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from pyspark import daemon

PRELOADED = (
    "numpy",
    "pyarrow",
    "pyarrow.parquet",
    "pyspark.worker",
    "foretide.spark.worker.tasks",
    "foretide.spark.worker.batches",
)
_worker = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """A worker whose JVM has closed the connection ends silently."""
    try:
        return _worker(sock, authenticated)
    except BrokenPipeError:
        return 1


def main() -> None:
    """Load what workers need, then fork them as pyspark's daemon does."""
    for name in (*PRELOADED, *filter(None, os.environ.get("FORETIDE_PRELOAD", "").split(","))):
        module = importlib.import_module(name)
        getattr(module, "warm", lambda: None)()
    # workers collect garbage after every task: they need not walk all that was loaded here, nor
    # copy its pages
    gc.freeze()
    daemon.worker = worker
    daemon.manager()


if __name__ == "__main__":
    main()
