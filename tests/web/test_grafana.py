"""The Grafana dashboard in the docs: it loads, and every metric that it asks for is one that a
scrape of a real journal returns.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

from site_client import site
from watched_query import WatchedQuery

from foretide.journal import Journal, Run
from foretide.model import Decision, Forecast, Host, Latency, Plan

DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana" / "attach.json"


def scraped(folder: Path) -> str:
    query = WatchedQuery(lambda t: 60.0)
    snapshot = query.window(5.0)
    snapshot = replace(
        snapshot,
        hosts=(Host("1", 0.5),),
        latency=Latency(300, 2000, 2000, 3000, 4000, 300),
    )
    plan = Plan({"q": 1}, {"": "1 executor is enough"}, 1, model_error=0.07)
    forecasts = {"q": Forecast((60.0,), (70.0,))}
    run = Run("attach", "attach", query.topology, 5.0, 0.0, "advise", 10.0)
    with Journal(folder / "journal.jsonl", run) as journal:
        journal.append(Decision(5.0, "unchanged", "advise", snapshot, forecasts, plan, plan))
    with site(folder, windows=0) as client:
        return client.get("/metrics").text


def test_every_metric_of_the_dashboard_is_exposed(tmp_path: Path) -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    page = scraped(tmp_path)
    assert "foretide_model_error_ratio 0.07" in page
    asked = {
        metric
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for metric in re.findall(r"foretide_\w+", target["expr"])
    }
    assert len(asked) >= 10
    exposed = set(re.findall(r"^(foretide_\w+)", page, re.MULTILINE))
    assert asked <= exposed


def test_the_dashboard_has_what_grafana_needs() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    assert dashboard["title"]
    assert dashboard["schemaVersion"] >= 36
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
    names = {v["name"] for v in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)\}?", DASHBOARD.read_text()))
    assert used <= names
    for panel in dashboard["panels"]:
        box = panel["gridPos"]
        assert 0 < box["x"] + box["w"] <= 24
        assert panel["targets"]
