"""CPU seconds of this process and everything it started, dead children included (Linux)."""

from __future__ import annotations

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s() -> float:
    """User and system time of this process and all its descendants, in seconds."""
    stats = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            stats[int(entry.name)] = (int(fields[1]), sum(int(f) for f in fields[11:15]))
    family = {os.getpid()}
    grown = True
    while grown:
        more = {pid for pid, (parent, _) in stats.items() if parent in family} - family
        family |= more
        grown = bool(more)
    return sum(stats[pid][1] for pid in family if pid in stats) / TICKS
