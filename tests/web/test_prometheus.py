"""The metrics page: its grammar, its values, and that the Grafana file asks for nothing it does not
have.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from site_client import site

from foretide.web.prometheus import exposition
from foretide.web.records import Cost, Now, RunInfo, State

NAME, LABEL = r"[a-zA-Z_:][a-zA-Z0-9_:]*", r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?\d[\d.e+-]*)")
GRAFANA = Path(__file__).parents[2] / "src/foretide/web/static/grafana.json"


def parse(text: str) -> dict[str, dict[str, float]]:
    """Samples by metric and labels; every line must be a comment or a sample, every sample's metric
    declared before it.
    """
    found: dict[str, dict[str, float]] = {}
    declared: set[str] = set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert kind in ("gauge", "counter")
            assert name not in declared
            declared.add(name)
        elif not line.startswith("# HELP "):
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert match[1] in declared
            labels = found.setdefault(match[1], {})
            assert (match[2] or "") not in labels
            labels[match[2] or ""] = float(match[3])
    return found


def test_metrics_hold_what_the_state_holds(tmp_path: Path) -> None:
    with site(tmp_path, windows=60) as client:
        answer, now = client.get("/metrics"), client.get("/api/state").json()["now"]
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    m = parse(answer.text)
    for field, name in (
        ("replicas", "replicas"),
        ("need", "replicas_needed"),
        ("backlog", "backlog_events"),
        ("utilization", "utilization_ratio"),
    ):
        assert m[f"foretide_{name}"] == pytest.approx(
            {f'operator="{o}"': v[field] for o, v in now["operators"].items()}
        )
    assert m["foretide_load_events_per_second"][""] == pytest.approx(now["load"])
    assert m["foretide_forecast_events_per_second"]['bound="mean"'] == pytest.approx(
        now["outlook"]["mean"][0]
    )
    assert m["foretide_latency_seconds"]['quantile="0.99"'] == pytest.approx(
        now["latency"]["p99_ms"] / 1000
    )
    assert m["foretide_cost_total"][""] == pytest.approx(now["cost"]["paid"])
    assert m["foretide_decisions_total"] == {
        f'outcome="{o}"': n for o, n in now["outcomes"].items()
    }
    assert m["foretide_acting"][""] == 1


def test_what_was_not_measured_has_no_sample_and_names_are_escaped() -> None:
    run = RunInfo('odd "name"\\\n', "srea", 10.0, 0.0, None, [])
    m = parse(exposition(State(run, Now(cost=Cost(0.0, None, None)))))
    assert list(m["foretide_run_info"]) == ['run="odd \\"name\\"\\\\\\n",system="srea"']
    assert "foretide_static_peak_cost" not in m
    assert "foretide_latency_seconds" not in m
    assert "foretide_load_events_per_second" not in m


def test_the_grafana_dashboard_asks_only_for_metrics_that_exist(tmp_path: Path) -> None:
    board = json.loads(GRAFANA.read_text())
    asked = {
        name
        for panel in board["panels"]
        for t in panel.get("targets", [])
        for name in re.findall(r"foretide_\w+", t["expr"])
    }
    with site(tmp_path, windows=60) as client:
        m = parse(client.get("/metrics").text)
    assert asked <= set(m)
    for word in ("replicas", "backlog", "latency", "forecast", "cost"):
        assert any(word in name for name in asked), word
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
