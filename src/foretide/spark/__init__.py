"""Spark: session, pipeline, edges, probe, actuator, executors. The only package that imports
pyspark.

Names are imported when first used: Spark's workers import single modules of this package and should
not wait for the rest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foretide.spark.declare.generator import Generator
    from foretide.spark.declare.pipeline import Pipeline
    from foretide.spark.run.running import Running
    from foretide.spark.run.sessions import session

__all__ = ["Generator", "Pipeline", "Running", "session"]

_HOME = {
    "Generator": "foretide.spark.declare.generator",
    "Pipeline": "foretide.spark.declare.pipeline",
    "Running": "foretide.spark.run.running",
    "session": "foretide.spark.run.sessions",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'foretide.spark' has no attribute '{name}'")
    found = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = found
    return found
