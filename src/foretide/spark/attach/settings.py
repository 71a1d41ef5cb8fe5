"""What a user may set when attaching: arguments of ``foretide.attach``, or ``spark.foretide.*`` in
the application's Spark configuration. Checked when built; errors name the setting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from foretide.errors import InvalidConfig, unknown

AttachMode = Literal["advise", "act", "guide"]
PREFIX = "spark.foretide."


@dataclass(frozen=True, slots=True)
class AttachSettings:
    """``targets`` and ``priorities`` are by query name; ``lead_s`` is the lead time of an executor
    while none was measured.
    """

    target_latency_s: float = 10.0
    share: float = 0.99
    max_executors: int = 10
    mode: AttachMode = "advise"
    window_s: float = 5.0
    edges: Mapping[str, Sequence[str]] = field(default_factory=dict)
    run_dir: Path | None = None
    targets: Mapping[str, float] = field(default_factory=dict)
    priorities: Mapping[str, float] = field(default_factory=dict)
    lead_s: float | None = None

    def __post_init__(self) -> None:
        if self.mode not in ("advise", "act", "guide"):
            raise InvalidConfig(f"'{self.mode}' is not a mode: advise, act or guide")
        if self.target_latency_s <= 0 or self.window_s <= 0 or self.max_executors < 1:
            raise InvalidConfig(
                "attach needs target_latency_s > 0, window_s > 0 and max_executors >= 1"
            )
        if not 0 < self.share < 1:
            raise InvalidConfig(f"share is {self.share:g}: give a share between 0 and 1, as 0.99")
        for query, target_s in self.targets.items():
            if target_s <= 0:
                raise InvalidConfig(f"the target of query '{query}' is {target_s:g} s: give > 0")
        if self.lead_s is not None and self.lead_s < 0:
            raise InvalidConfig(f"lead_s is {self.lead_s:g}: give 0 seconds or more")


def _by_query(text: str) -> dict[str, float]:
    return {
        name.strip(): float(value)
        for name, _, value in (part.partition(":") for part in text.split(",") if part.strip())
    }


_KEYS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "target": ("target_latency_s", float),
    "share": ("share", float),
    "maxExecutors": ("max_executors", int),
    "mode": ("mode", str),
    "window": ("window_s", float),
    "runDir": ("run_dir", Path),
    "targets": ("targets", _by_query),
    "priorities": ("priorities", _by_query),
    "lead": ("lead_s", float),
}


def settings_of(conf: Mapping[str, str]) -> AttachSettings:
    """Settings from a Spark configuration. Times are in seconds; per-query settings are lists.

    >>> by_query = "clean:2,report:60"
    >>> s = settings_of({"spark.foretide.target": "5", "spark.foretide.targets": by_query})
    >>> s.target_latency_s, s.targets
    (5.0, {'clean': 2.0, 'report': 60.0})
    """
    values = {}
    for key, text in conf.items():
        if not key.startswith(PREFIX):
            continue
        name = key.removeprefix(PREFIX)
        if name not in _KEYS:
            raise unknown("setting", key, [PREFIX + k for k in _KEYS])
        setting, parse = _KEYS[name]
        try:
            values[setting] = parse(text)
        except ValueError as error:
            raise InvalidConfig(f"{key} is '{text}': {error}") from error
    return AttachSettings(**values)
