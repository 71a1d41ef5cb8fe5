"""Which executor a Python worker belongs to, and the memory that it holds."""

from __future__ import annotations

import os
import re
from functools import cache

DRIVER = "driver"
_NAME = re.compile(r"--executor-id\s(\S+)")


@cache
def executor_name() -> str | None:
    """The executor this Python worker belongs to: the nearest ancestor process that Spark started
    with ``--executor-id``; the driver where there is none, None where processes cannot be read.
    """
    process = os.getppid()
    try:
        while process > 1:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                command = file.read().replace(b"\0", b" ").decode(errors="replace")
            if named := _NAME.search(command):
                return named[1]
            with open(f"/proc/{process}/stat") as file:
                process = int(file.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return DRIVER


def resident_bytes() -> float:
    """Memory of this process that is in RAM; 0 where that cannot be read."""
    try:
        with open("/proc/self/statm") as file:
            return float(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0.0
