"""Spark: session, pipeline, edges, probe, actuator, executors. The only package that imports
pyspark.

Names are imported when first used: Spark's workers import single modules of this package and should
not wait for the rest.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from foretide.errors import InvalidConfig, missing_extra

if importlib.util.find_spec("pyspark") is None:
    raise missing_extra("spark", "Spark pipelines and attach need pyspark")

if TYPE_CHECKING:
    from foretide.spark.declare.generator import Generator
    from foretide.spark.declare.kafka import kafka
    from foretide.spark.declare.pipeline import Pipeline
    from foretide.spark.run.running import Running
    from foretide.spark.run.sessions import session

__all__ = ["Generator", "Pipeline", "Running", "kafka", "session"]

PIPELINES_SINCE = (4, 2)

_HOME = {
    "Generator": "foretide.spark.declare.generator",
    "kafka": "foretide.spark.declare.kafka",
    "Pipeline": "foretide.spark.declare.pipeline",
    "Running": "foretide.spark.run.running",
    "session": "foretide.spark.run.sessions",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'foretide.spark' has no attribute '{name}'")
    _check_version()
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def _check_version() -> None:
    """Pipelines use ``repartitionById`` (4.1) and Python sources with admission control (4.2)."""
    import pyspark

    if tuple(int(part) for part in pyspark.__version__.split(".")[:2]) < PIPELINES_SINCE:
        raise InvalidConfig(
            f"pipelines need Spark 4.2 or newer, this is {pyspark.__version__}: upgrade with pip "
            "install 'foretide[spark]'; foretide.attach works with Spark 3.5 and newer"
        )
