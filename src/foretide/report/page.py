"""From summaries to the page: the data as JSON, the assets, the sentence on top."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from foretide import journal
from foretide.assets import VENDOR
from foretide.errors import InvalidConfig
from foretide.figures.comparison import Comparison
from foretide.figures.record import RunRecord
from foretide.figures.summary import Balance, Summary, summarize
from foretide.model import Array
from foretide.report.families import family
from foretide.report.words import FIGURES, verdict
from foretide.topology import Topology
from foretide.wording import percent

CLOCK_S = 1e8
"""Instants below this are seconds since the start of a scripted run, not times of day."""


@dataclass(frozen=True, eq=False)
class Page:
    """What a report shows. ``facts`` are label and value pairs under the title, ``command`` is what
    produced it, ``started_at`` the UTC time at which the runs start, where they have one.
    """

    title: str
    topology: Topology
    runs: tuple[Summary, ...]
    facts: tuple[tuple[str, str], ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    started_at: float | None = None


def of_comparison(comparison: Comparison, command: str = "") -> Page:
    """A page for one or many systems on one case."""
    case = comparison.conditions
    target_s = case.target_latency_s
    facts = (
        ("app", f"{case.app}: {case.app_summary}"),
        ("load", case.load),
        ("events", f"{case.events:,.0f} in {_duration(case.duration_s)}, peak {case.peak:,.0f}/s"),
        ("window", f"{case.window_s:g} s"),
        (
            "latency target",
            "none" if target_s is None else f"{percent(case.share)} within {target_s:g} s",
        ),
        *((("lead time", f"{case.lead_s:g} s"),) if case.lead_s is not None else ()),
        *((("warm-up", f"{_duration(case.warm_up_s)} before"),) if case.warm_up_s else ()),
    )
    runs = comparison.runs
    title = runs[0].system if len(runs) == 1 else f"{len(runs)} systems"
    return Page(
        f"{title} on {case.app}",
        case.topology,
        runs,
        facts,
        comparison.left_out,
        command,
        case.started_at,
    )


def of_journal(path: Path | str, command: str = "") -> Page:
    """A page for a finished run, from its journal; ``path`` is the journal or the folder that
    holds one.
    """
    path = Path(path)
    file = path / "journal.jsonl" if path.is_dir() else path
    run, decisions = journal.read(file)
    record = RunRecord.of_journal(run, decisions)
    if not record.snapshots:
        raise InvalidConfig(f"{file} holds no measured window yet: there is nothing to report")
    events = float(record.offered().sum())
    facts = (
        ("run", run.name),
        (
            "started",
            datetime.fromtimestamp(run.started_at, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        ),
        (
            "events",
            f"{events:,.0f} in "
            f"{_duration(record.snapshots[-1].at - record.snapshots[0].at + run.window_s)}",
        ),
        ("window", f"{run.window_s:g} s"),
        ("mode", run.mode),
        (
            "latency target",
            "none" if run.target_latency_s is None else f"{run.target_latency_s:g} s",
        ),
    )
    small = summarize(record)
    started_at = small.started_at if run.started_at >= CLOCK_S else None
    title = f"{run.system} on {run.name}"
    return Page(title, run.topology, (small,), facts, {}, command, started_at)


def write(path: Path | str, page: Page) -> Path:
    """Render to a file, making its folder when needed."""
    return save(path, render(page))


def save(path: Path | str, text: str) -> Path:
    """Write a page, making its folder when needed."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidConfig(f"cannot write the report {path}: {error.strerror}") from error
    return path


def render(page: Page) -> str:
    """The whole page as one string: data, style, script and chart library inside."""
    if not page.runs:
        reasons = "; ".join(f"{name}: {why}" for name, why in page.left_out.items())
        raise InvalidConfig(f"there is no run to report{': ' + reasons if reasons else ''}")
    facts = "".join(
        f"<div><dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd></div>" for k, v in page.facts
    )
    parts = {
        "TITLE": html.escape(page.title),
        "VERDICT": html.escape(verdict(page.runs)),
        "FACTS": facts,
        "DATA": _data(page),
    }
    return assembled("page.html", parts, ("time.js", "bars.js", "report.js"))


def assembled(template: str, parts: Mapping[str, str], scripts: Sequence[str]) -> str:
    """A template of ``assets/`` with its parts, the style, the chart library and the scripts put
    in.
    """
    own = resources.files("foretide.report") / "assets"
    everything = {
        **parts,
        "UPLOT_CSS": (VENDOR / "uPlot.min.css").read_text(encoding="utf-8"),
        "CSS": (own / "report.css").read_text(encoding="utf-8"),
        "UPLOT_LICENSE": (VENDOR / "uPlot.LICENSE").read_text(encoding="utf-8").strip(),
        "UPLOT": (VENDOR / "uPlot.iife.min.js").read_text(encoding="utf-8"),
        "JS": "".join((own / name).read_text(encoding="utf-8") for name in scripts),
    }
    text = (own / template).read_text(encoding="utf-8")
    for name, part in everything.items():
        text = text.replace(f"<!--{name}-->", part).replace(f"/*{name}*/", part)
    return text


def _data(page: Page) -> str:
    """The page's data as JSON that is safe inside a script element."""
    data = {
        "operators": page.topology.names,
        "runs": [_run(r) for r in page.runs],
        "left_out": dict(page.left_out),
        "figures": [asdict(f) for f in FIGURES],
        "started_at": page.started_at,
        "command": page.command,
    }
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _run(run: Summary) -> dict[str, Any]:
    return {
        "system": run.system,
        "figures": {
            k: _number(v) if isinstance(v, float) else v for k, v in run.figures.as_dict().items()
        },
        "family": family(run.system),
        "short": run.short,
        "share": run.share,
        "shared_slots": run.shared_slots,
        "optimum_cost": run.optimum_cost,
        "cost_changes": run.cost_changes,
        "window_s": run.window_s,
        "windows_per_point": run.windows_per_point,
        "target_ms": None if run.target_latency_s is None else run.target_latency_s * 1000,
        **{
            k: series_of(getattr(run, k))
            for k in ("at_s", "rate", "forecast", "backlog", "utilization", "hosts")
        },
        **{
            k: {n: series_of(v) for n, v in getattr(run, k).items()}
            for k in ("latency_ms", "replicas", "need", "optimum")
        },
        "balance": {n: [_balance(part) for part in parts] for n, parts in run.balance.items()},
        "choices": [asdict(c) for c in run.choices],
        "priced": run.priced,
        "steps": [asdict(s) for s in run.steps],
        "steps_left_out": run.steps_left_out,
    }


def _balance(part: Balance) -> dict[str, Any]:
    return {"busy": series_of(np.array(part.busy)), "uneven": _number(part.uneven)}


def series_of(values: Array) -> list[float | None]:
    """Numbers for a chart: null where there is none."""
    return [_number(v) for v in np.asarray(values, dtype=float).tolist()]


def _number(value: float) -> float | None:
    """Five significant digits are more than a screen shows; what is not finite is null."""
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.5g}") if abs(value) < 1e5 else round(value)
    return int(rounded) if rounded == int(rounded) else rounded


def _duration(seconds: float) -> str:
    """Seconds for people.

    >>> _duration(90), _duration(7200), _duration(40), _duration(600_000)
    ('1.5 min', '2 h', '40 s', '6.9 days')
    """
    for unit, size in (("days", 172_800 / 2), ("h", 3600), ("min", 60)):
        if seconds >= (2 * size if unit == "days" else size):
            return (
                f"{seconds / size:.3g} {unit}" if unit != "days" else f"{seconds / size:.1f} days"
            )
    return f"{seconds:g} s"
