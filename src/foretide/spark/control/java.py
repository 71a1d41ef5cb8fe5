"""The Java process behind Spark: whether one can start, which signals reach it, whether it
ended.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext

from foretide.errors import InvalidConfig

OLDEST = 17
_shielding = threading.Event()


def check_java() -> None:
    """Raise InvalidConfig where Spark would find no Java 17 or newer."""
    home = os.environ.get("JAVA_HOME")
    where = f"JAVA_HOME={home}" if home else "the path"
    java = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    advice = (
        f"install Java {OLDEST} or newer (Debian: apt install openjdk-17-jre-headless) or set "
        "JAVA_HOME"
    )
    if java is None:
        raise InvalidConfig(f"Spark needs Java, and there is none on {where}: {advice}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    if version and int(version[1]) < OLDEST:
        raise InvalidConfig(f"Spark needs Java {OLDEST}, {java} is Java {version[1]}: {advice}")


@contextmanager
def shielded() -> Iterator[None]:
    """Java started inside ignores SIGTERM.

    A service manager signals the whole process group. The driver then stops its queries, for which
    it needs Java; Java ends when the driver does. HotSpot leaves a signal ignored that is ignored
    when it starts, as pyspark arranges for SIGINT.
    """
    _shielding.set()
    try:
        yield
    finally:
        _shielding.clear()


def _after_fork() -> None:
    if _shielding.is_set():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


os.register_at_fork(after_in_child=_after_fork)


def java_has_ended() -> bool:
    """Whether this driver started a Java process that is gone."""
    process = getattr(SparkContext._gateway, "proc", None)
    return process is not None and process.poll() is not None
