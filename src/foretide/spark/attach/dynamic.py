"""Advice beside Spark's own dynamic allocation: which of its settings stand in the way of what
attach asks for. Its settings cannot change while the application runs, so they are advice for the
next start.

Pure: a configuration in, a sentence out.
"""

from __future__ import annotations

from collections.abc import Mapping

PREFIX = "spark.dynamicAllocation."


def is_on(conf: Mapping[str, str]) -> bool:
    """Whether an application's configuration has dynamic allocation on."""
    return conf.get(f"{PREFIX}enabled", "false") == "true"


def advice_beside(conf: Mapping[str, str], executors: int, guide: bool) -> str:
    """What dynamic allocation does about ``executors``, and which of its settings forbid them;
    empty when it is off.

    >>> on = {"spark.dynamicAllocation.enabled": "true"}
    >>> advice_beside(on | {"spark.dynamicAllocation.maxExecutors": "2"}, 5, guide=True)
    'spark.dynamicAllocation.maxExecutors is 2: raise it to 5 at the next start'
    """
    if not is_on(conf):
        return ""
    most = conf.get(f"{PREFIX}maxExecutors", "")
    least = conf.get(f"{PREFIX}minExecutors", "0")
    if most.isdigit() and int(most) < executors:
        return f"{PREFIX}maxExecutors is {most}: raise it to {executors} at the next start"
    if least.isdigit() and int(least) > executors:
        return f"{PREFIX}minExecutors is {least}: {executors} would do, lower it at the next start"
    idle = conf.get(f"{PREFIX}executorIdleTimeout", "60s")
    gives_back = f"dynamic allocation removes executors that were idle for {idle}"
    return (
        f"asked for ahead of dynamic allocation; {gives_back}"
        if guide
        else f"dynamic allocation is on and decides; {gives_back}"
    )
