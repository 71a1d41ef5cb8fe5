"""Whatever Spark throws becomes one sentence that says what to do."""

import errno
from pathlib import Path

import pytest

from foretide.errors import InvalidConfig, PipelineFailed
from foretide.spark.run.failures import explain
from foretide.spark.worker.work import EventFailed

RUNNER = "at org.apache.spark.api.python.BasePythonRunner$ReaderIterator.read(PythonRunner.scala)"
PLANNER = "at org.apache.spark.sql.execution.python.PythonPlannerRunner.runInPython(P.scala:148)"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "operator 'a': the disk under .* is full; nothing was lost",
        ),
        (
            RuntimeError("java.io.IOException: No space left on device\n\tat x"),
            "the disk under .* is full",
        ),
        (
            FileNotFoundError(errno.ENOENT, "gone", "/data/edges"),
            "operator 'a': /data/edges has vanished; restore",
        ),
        (RuntimeError("\nCaused by: odd\n\tat y"), "operator 'a' stopped: Caused by: odd"),
        (
            RuntimeError("thrown from the Python worker:\n  File x\nValueError: too odd\n\tat y"),
            "operator 'a' stopped: ValueError: too odd$",
        ),
        (
            RuntimeError("Traceback\n  File x\nFileNotFoundError: [Errno 2] gone"),
            "operator 'a': .* has vanished; restore",
        ),
        (
            RuntimeError(
                "[PYTHON_ERROR] Traceback\n  File x\nforetide.errors.PipelineFailed: it is gone; "
                "restore it\n\tat y"
            ),
            "^it is gone; restore it$",
        ),
        (
            InvalidConfig("operator 'a' fails: [PATH_NOT_FOUND] /cities"),
            "^operator 'a' fails: .PATH_NOT_FOUND. /cities$",
        ),
        (
            RuntimeError("[KAFKA_DATA_LOSS.PARTITIONS_DELETED] Some data may have been lost\n\tat"),
            r"operator 'a': its Kafka topic, .* are gone \(KAFKA_DATA_LOSS.PARTITIONS_DELETED\)",
        ),
        (PipelineFailed("said already"), "^said already$"),
    ],
)
def test_failures_are_sentences(error: Exception, message: str) -> None:
    with pytest.raises(PipelineFailed, match=message):
        raise explain("a", error, Path("/data"))


def test_the_sentence_of_a_failed_event_is_found_inside_a_long_trace() -> None:
    inner = EventFailed("picky", {"id": 3}, KeyError("colour"))
    trace = RuntimeError(f"org.apache.spark.SparkException: Job aborted\n  File x\n{inner}\n\tat z")
    assert (
        str(explain("a", trace, Path()))
        == "operator 'picky' failed on event {'id': 3}: KeyError: 'colour'"
    )


@pytest.mark.parametrize(
    "text",
    [
        f"org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).\n{RUNNER}",
        f"java.io.IOException: Broken pipe\n{RUNNER}",
        f"Caused by: java.io.EOFException\n{PLANNER}",
    ],
)
def test_a_python_process_that_is_gone_is_named(text: str) -> None:
    error = explain(
        "a", RuntimeError(f"An error occurred while calling o1.parquet.\n{text}"), Path()
    )
    assert "operator 'a': one of Spark's Python processes ended (killed" in str(error)
    assert "start again" in str(error)


def test_a_broken_connection_of_something_else_is_not() -> None:
    text = "java.net.SocketException: Connection reset\nat org.postgresql.Driver.connect(D.java)"
    assert str(explain("a", RuntimeError(text), Path())).startswith(
        "operator 'a' stopped: java.net.SocketException: Connection reset"
    )
