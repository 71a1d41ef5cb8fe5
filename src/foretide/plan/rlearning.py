"""Rate learning: a table from input rate to degree, learned at runtime (the second baseline of
DABS-Storm, section 7.2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from foretide.errors import NotReady
from foretide.history import History
from foretide.model import Forecast, Plan, Sample
from foretide.topology import Topology

Values = dict[int, float]
"""Degree -> learned value."""


class RateLearning:
    """Per operator and rate bucket, the value of each degree tried: the utilization it gave, or -1
    when it was congested.

    Buckets grow by ``ratio``. The degree of highest value at the mean rate of the last ``lookback``
    windows is taken, so the fullest replicas that still keep up; a bucket whose degrees were all
    congested tries half as many more, one that has room tries one less, one never seen borrows from
    the nearest. Waiting events play no part: that is the published weakness. A window that only
    drains a backlog teaches nothing, nor does one that fell behind without being busy (a restart).
    Untrained it reacts slowly; the paper runs it with a table trained on the same load.
    """

    def __init__(
        self, lookback: int = 6, ratio: float = 1.25, congested: float = 0.9, rate: float = 0.5
    ) -> None:
        self.lookback = lookback
        self.ratio = ratio
        self.congested = congested
        self.rate = rate
        self.tables: dict[str, dict[int, Values]] = {}

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        replicas, reasons = {}, {}
        latest = history.latest
        for name in topology.names:
            table = self.tables.setdefault(name, {})
            self._learn(table, latest.samples[name], latest.window_s)
            recent = history.rates(name, self.lookback)
            if np.all(np.isnan(recent)):
                raise NotReady(
                    f"no window of operator '{name}' was measured in the last {self.lookback}"
                )
            mean = float(np.nanmean(recent))
            now = max(1, latest.samples[name].replicas)
            wanted, how = self._choose(table, mean, now)
            replicas[name] = min(
                max(wanted, topology[name].min_replicas), topology[name].max_replicas
            )
            reasons[name] = f"{mean:.1f} events/s on average over {len(recent)} windows: {how}"
        return Plan(replicas, reasons)

    def _bucket(self, rate: float) -> int:
        return math.floor(math.log(max(rate, 1e-3), self.ratio))

    def _learn(self, table: dict[int, Values], sample: Sample, window_s: float) -> None:
        if (
            sample.busy_s is None
            or sample.replicas < 1
            or sample.arrived <= 0
            or sample.processed > 1.1 * sample.arrived
        ):
            return
        busy = sample.busy_s / (sample.replicas * window_s)
        if busy <= self.congested and sample.processed < 0.9 * sample.arrived:
            return
        reward = busy if busy <= self.congested else -1.0
        values = table.setdefault(self._bucket(sample.arrived / window_s), {})
        old = values.get(sample.replicas, reward)
        values[sample.replicas] = (1 - self.rate) * old + self.rate * reward

    def _choose(self, table: dict[int, Values], rate: float, now: int) -> tuple[int, str]:
        if rate <= 0:
            return 1, "nothing arrives, one replica"
        if not table:
            return now, "nothing learned yet, replicas stay"
        bucket = self._bucket(rate)
        near = min(table, key=lambda b: (abs(b - bucket), -b))
        values = table[near]
        best = max(values, key=lambda k: (values[k], -k))
        if values[best] < 0:
            tried = max(values)
            return math.ceil(
                1.5 * tried
            ), f"{tried} replicas were congested at such a rate, tries more"
        roomy = (
            best > 1
            and best - 1 not in values
            and values[best] * best / (best - 1) <= self.congested
        )
        if roomy:
            return best - 1, f"{best} replicas were busy {values[best]:.2f}, tries one less"
        return best, f"{best} replicas were busy {values[best]:.2f}, the fullest that keep up"

    def state(self) -> dict[str, Any]:
        return {
            "tables": {
                name: {
                    str(b): {str(k): v for k, v in values.items()} for b, values in table.items()
                }
                for name, table in self.tables.items()
            }
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.tables = {
            name: {int(b): {int(k): v for k, v in values.items()} for b, values in table.items()}
            for name, table in state["tables"].items()
        }
