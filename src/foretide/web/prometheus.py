"""The state as Prometheus text (exposition format 0.0.4). Units are base units: seconds, events,
events per second, shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from foretide.web.records import Now, RunInfo, State

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labelled = Iterable[tuple[Mapping[str, str], float | None]]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _family(name: str, kind: str, what: str, values: Labelled) -> Iterator[str]:
    """One metric with its help and type; values that were not measured are left out, and so is a
    metric without any.
    """
    known = [(labels, value) for labels, value in values if value is not None]
    if not known:
        return
    yield f"# HELP foretide_{name} {what}"
    yield f"# TYPE foretide_{name} {kind}"
    for labels, value in known:
        inside = ",".join(f'{k}="{_escaped(v)}"' for k, v in labels.items())
        yield (
            f"foretide_{name}{{{inside}}} {value:.10g}"
            if inside
            else f"foretide_{name} {value:.10g}"
        )


def exposition(state: State) -> str:
    """The whole page that a scrape gets."""
    lines = list(_file(state.now))
    if state.run is not None:
        lines += [
            *_run(state.run, state.now),
            *_operators(state.now),
            *_latency(state.run, state.now),
        ]
    return "\n".join(lines) + "\n"


def _file(now: Now) -> Iterator[str]:
    yield from _family(
        "journal_read_ratio",
        "gauge",
        "Share of the journal that has been read.",
        [({}, now.read_share)],
    )
    yield from _family(
        "journal_skipped_lines_total",
        "counter",
        "Torn journal lines skipped.",
        [({}, now.skipped_lines)],
    )


def _run(run: RunInfo, now: Now) -> Iterator[str]:
    yield from _family(
        "run_info", "gauge", "What runs; always 1.", [({"run": run.name, "system": run.system}, 1)]
    )
    yield from _family(
        "acting",
        "gauge",
        "1 when the last step could apply its plan, 0 when it only advised.",
        [({}, now.mode == "act")],
    )
    decided = [({"outcome": o}, float(n)) for o, n in sorted(now.outcomes.items())]
    yield from _family("decisions_total", "counter", "Steps of the loop by outcome.", decided)
    yield from _family(
        "last_decision_timestamp_seconds", "gauge", "When the last step was.", [({}, now.at)]
    )
    yield from _family(
        "load_events_per_second",
        "gauge",
        "Events per second offered to the sources.",
        [({}, now.load)],
    )
    ahead = now.outlook
    bounds = (
        [
            ({"bound": "mean"}, ahead.mean[0]),
            ({"bound": "upper"}, ahead.upper[0] if ahead.upper else None),
        ]
        if ahead
        else []
    )
    yield from _family(
        "forecast_events_per_second", "gauge", "Load forecast for the next window.", bounds
    )
    yield from _family(
        "cost_total",
        "counter",
        "Paid so far, in the unit of the configured prices.",
        [({}, now.cost.paid)],
    )
    yield from _family(
        "static_peak_cost",
        "gauge",
        "What replicas for the highest need so far, held all the time, would have cost.",
        [({}, now.cost.static_peak)],
    )


def _operators(now: Now) -> Iterator[str]:
    def each(field: str) -> Labelled:
        return [({"operator": name}, getattr(o, field)) for name, o in now.operators.items()]

    yield from _family("replicas", "gauge", "Replicas running.", each("replicas"))
    yield from _family(
        "replicas_needed",
        "gauge",
        "Replicas that the load of the last window keeps busy.",
        each("need"),
    )
    yield from _family("replicas_planned", "gauge", "Replicas of the last plan.", each("planned"))
    yield from _family(
        "backlog_events", "gauge", "Events received and not yet processed.", each("backlog")
    )
    yield from _family(
        "arrival_events_per_second", "gauge", "Events per second that arrived.", each("rate")
    )
    yield from _family(
        "utilization_ratio", "gauge", "Busy seconds per replica second.", each("utilization")
    )


def _latency(run: RunInfo, now: Now) -> Iterator[str]:
    found = now.latency
    if found is not None:
        quantiles = (("0.5", found.p50_ms), ("0.9", found.p90_ms), ("0.99", found.p99_ms))
        yield from _family(
            "latency_seconds",
            "gauge",
            "End-to-end latency in the last window, by quantile.",
            [({"quantile": q}, v / 1000) for q, v in quantiles],
        )
        yield from _family(
            "latency_within_target_ratio",
            "gauge",
            "Share of events within the target so far.",
            [({}, found.within_share)],
        )
    target = run.target_latency_ms
    yield from _family(
        "latency_target_seconds",
        "gauge",
        "The latency target.",
        [({}, None if target is None else target / 1000)],
    )
