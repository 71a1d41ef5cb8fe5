"""What the daemon loads before it forks, so that no worker has to."""

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_making_columns_of_rows_imports_nothing_more_once_warm() -> None:
    """pyarrow imports pandas when it first turns rows into columns; in every new replica that would
    be a second of CPU.
    """
    script = (
        "import sys\n"
        "import pyarrow as pa\n"
        "from foretide.spark.worker import tasks\n"
        "tasks.warm()\n"
        "before = set(sys.modules)\n"
        "pa.RecordBatch.from_pylist([{'a': 'x', 'b': 1.0}], schema=pa.schema([('a', pa.string()), "
        "('b', pa.float64())]))\n"
        "print(sorted(set(sys.modules) - before))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
