"""The state as Prometheus text (exposition format 0.0.4), written by ``prometheus_client``.

Units are base units: seconds, events, events per second, shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from foretide.web.records import Now, RunInfo, State

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
Labelled = Iterable[tuple[Mapping[str, str], float | None]]


def exposition(state: State) -> str:
    """The whole page that a scrape gets."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_StateCollector(state))
    return generate_latest(registry).decode()


class _StateCollector(Collector):
    """The metrics of one state; values that were not measured are left out, and so is a metric
    without any.
    """

    def __init__(self, state: State) -> None:
        self.state = state

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        run, now = self.state.run, self.state.now
        families = [*_journal(now)]
        if run is not None:
            families += [*_run(run, now), *_operators(now), *_latency(run, now)]
        yield from (f for f in families if f.samples)


def _gauge(name: str, what: str, *values: tuple[Mapping[str, str], float | None]) -> Metric:
    return _filled(GaugeMetricFamily(f"foretide_{name}", what), f"foretide_{name}", values)


def _counter(name: str, what: str, *values: tuple[Mapping[str, str], float | None]) -> Metric:
    family = CounterMetricFamily(f"foretide_{name}", what)
    return _filled(family, f"foretide_{name}_total", values)


def _filled(family: Metric, name: str, values: Labelled) -> Metric:
    for labels, value in values:
        if value is not None:
            family.add_sample(name, dict(labels), value)
    return family


def _journal(now: Now) -> Iterator[Metric]:
    yield _gauge(
        "journal_read_ratio", "Share of the journal that has been read.", ({}, now.read_share)
    )
    yield _counter("journal_skipped_lines", "Torn journal lines skipped.", ({}, now.skipped_lines))


def _run(run: RunInfo, now: Now) -> Iterator[Metric]:
    labels = {"run": run.name, "system": run.system}
    yield _gauge("run_info", "The run and its system; always 1.", (labels, 1))
    yield _gauge(
        "acting",
        "1 when the last step could apply its plan, 0 when it only advised.",
        ({}, now.mode == "act"),
    )
    decided = [({"outcome": o}, float(n)) for o, n in sorted(now.outcomes.items())]
    yield _counter("decisions", "Steps of the loop by outcome.", *decided)
    yield _gauge("last_decision_timestamp_seconds", "Time of the last step.", ({}, now.at))
    yield _gauge(
        "load_events_per_second", "Events per second offered to the sources.", ({}, now.load)
    )
    if now.outlook is not None:
        upper = now.outlook.upper
        yield _gauge(
            "forecast_events_per_second",
            "Load forecast for the next window.",
            ({"bound": "mean"}, now.outlook.mean[0]),
            ({"bound": "upper"}, upper[0] if upper else None),
        )
    yield _counter(
        "cost", "Paid so far, in the unit of the configured prices.", ({}, now.cost.paid)
    )
    yield _gauge(
        "static_peak_cost",
        "Cost of replicas for the highest need so far, held all the time.",
        ({}, now.cost.static_peak),
    )
    if now.choices is not None:
        priced = zip(now.choices.shares, now.choices.costs, strict=True)
        yield _gauge(
            "promise_cost_ratio",
            "Replicas for each busy one that keeping this share within the target would have cost.",
            *(({"share": f"{share:g}"}, cost) for share, cost in priced),
        )
    yield _gauge("executors", "Executors running.", ({}, now.executors))
    yield _gauge("executors_planned", "Executors of the last plan.", ({}, now.executors_planned))
    yield _gauge(
        "model_error_ratio",
        "Median relative error of the planner's own model on what it had not seen.",
        ({}, now.model_error),
    )
    yield _gauge("task_slots", "Task slots of all executors.", ({}, now.slots))
    yield _gauge("lead_time_seconds", "Time until new capacity works.", ({}, now.lead_s))


def _operators(now: Now) -> Iterator[Metric]:
    def each(name: str, what: str, field: str) -> Metric:
        values = [({"operator": o}, getattr(x, field)) for o, x in now.operators.items()]
        return _gauge(name, what, *values)

    yield each("replicas", "Replicas running.", "replicas")
    yield each("replicas_needed", "Replicas that the load of the last window keeps busy.", "need")
    yield each("replicas_planned", "Replicas of the last plan.", "planned")
    yield each("backlog_events", "Events received and not yet processed.", "backlog")
    yield each("arrival_events_per_second", "Events per second that arrived.", "rate")
    yield each("processed_events_per_second", "Events per second processed.", "processed")
    yield each("utilization_ratio", "Busy seconds per replica second.", "utilization")
    yield each("batch_seconds", "Mean duration of a micro-batch.", "batch_s")


def _latency(run: RunInfo, now: Now) -> Iterator[Metric]:
    latency, target_ms = now.latency, run.target_latency_ms
    if latency is not None:
        quantiles = (("0.5", latency.p50_ms), ("0.9", latency.p90_ms), ("0.99", latency.p99_ms))
        yield _gauge(
            "latency_seconds",
            "End-to-end latency in the last window, by quantile.",
            *(({"quantile": q}, v / 1000) for q, v in quantiles),
        )
        yield _gauge(
            "latency_within_target_ratio",
            "Share of events within the target so far.",
            ({}, latency.within_share),
        )
    target_s = None if target_ms is None else target_ms / 1000
    yield _gauge("latency_target_seconds", "The latency target.", ({}, target_s))
