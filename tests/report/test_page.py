import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from browser import Seen, chromium
from runs import FollowingEnvironment

from foretide.apps import app
from foretide.cli import report as closing
from foretide.errors import InvalidConfig
from foretide.figures.comparison import Comparison
from foretide.journal import Journal, Run
from foretide.load import Load
from foretide.model import Choice, Decision, Sample, Snapshot
from foretide.report import Page, of_comparison, of_journal, render, write
from foretide.sim.compare import Scenario, compare
from foretide.systems import system
from foretide.testing import ScriptedEnvironment

STEPS = Load("steps", np.repeat([20.0, 90.0, 20.0], 100))


def comparison(*names: str) -> Comparison:
    return compare(
        Scenario(app("two-paths"), STEPS, 10.0),
        [system(n) for n in names],
        processes=1,
        new_environment=FollowingEnvironment,
    )


def data_of(text: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found
    return json.loads(found.group(1))


def test_the_page_holds_its_data_and_asks_nobody() -> None:
    page = of_comparison(comparison("srea", "static"), "foretide compare <me>")
    text = render(page)
    data = data_of(text)
    assert [r["system"] for r in data["runs"]] == ["srea", "static"]
    assert data["runs"][0]["figures"]["cost"] == pytest.approx(page.runs[0].figures.cost, rel=1e-6)
    assert data["command"] == "foretide compare <me>"
    assert not re.search(r"""(src|href)=["'](?!data:)""", text)
    assert not re.search(r"<!--[A-Z_]+-->|/\*[A-Z_]+\*/", text)
    assert "Permission is hereby granted" in text  # the chart library's licence travels with it


def test_nothing_in_a_name_can_break_out_of_the_data() -> None:
    page = of_comparison(comparison("srea"))
    evil = Page(
        "</script><b>",
        page.topology,
        page.runs,
        (("a", "<i>"),),
        {"x": "</script><script>alert(1)"},
        "</script>",
    )
    text = render(evil)
    assert text.count("</script>") == 3
    assert data_of(text)["left_out"] == {"x": "</script><script>alert(1)"}
    assert "<i>" not in text


def test_the_price_of_other_promises_is_shown_where_a_system_worked_it_out() -> None:
    found = comparison("srea", "static")
    priced = replace(found.runs[1], choices=(Choice(0.95, 1.2), Choice(0.99, 1.5)), priced="why")
    runs = data_of(render(of_comparison(replace(found, runs=(found.runs[0], priced)))))["runs"]
    assert (runs[0]["choices"], runs[0]["priced"]) == ([], "")
    assert runs[1]["choices"] == [{"share": 0.95, "cost": 1.2}, {"share": 0.99, "cost": 1.5}]
    assert runs[1]["priced"] == "why"


def test_a_long_run_is_thinned() -> None:
    long = Load("long", np.full(15_000, 20.0))
    found = compare(
        Scenario(app("chain"), long, 10.0), [system("srea")], new_environment=FollowingEnvironment
    )
    run = found.runs[0]
    assert run.windows_per_point == 2
    assert len(run.at_s) == len(run.rate) == len(run.replicas["first"]) == 750
    assert run.at_s[-1] == 15_000


def test_a_page_without_a_run_is_an_error() -> None:
    page = of_comparison(comparison("srea"))
    with pytest.raises(InvalidConfig, match="no run to report: x: why"):
        render(Page("none", page.topology, (), left_out={"x": "why"}))


def journal_of(folder: Path) -> Path:
    """A live run: the loop on a scripted world, journalled."""
    chain = app("chain")
    world = ScriptedEnvironment(
        chain.topology, {"first": 0.1, "second": 1 / 15}, lambda at: STEPS.at(at - 1.7e9 - 5)
    )
    run = Run("live", "srea", chain.topology, 10.0, 1.7e9, mode="act", target_latency_s=1.0)
    with Journal(folder / "journal.jsonl", run) as journal:
        loop = system("srea").autoscaler(chain.topology, world, world, record=journal.append)
        for i in range(1, 31):
            loop.step(1.7e9 + i * 10.0)
    return folder / "journal.jsonl"


def test_a_finished_live_run_is_a_page_too(tmp_path: Path) -> None:
    path = journal_of(tmp_path)
    text = render(of_journal(tmp_path))
    assert text == render(of_journal(path))
    assert "srea on live" in text
    assert "2023-11-14 22:13:20 UTC" in text
    assert data_of(text)["runs"][0]["steps"]
    written = write(tmp_path / "new" / "page.html", of_journal(path))
    assert written.stat().st_size > 50_000
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidConfig, match="cannot write the report"):
        write(tmp_path / "file" / "page.html", of_journal(path))


def balanced_journal(folder: Path) -> Path:
    """A live run whose grouping learns: in every window another of three replicas is the straggler,
    less so over time.
    """
    chain = app("chain")
    run = Run("live", "dabs-storm", chain.topology, 10.0, 1.7e9)
    with Journal(folder / "journal.jsonl", run) as journal:
        for i in range(1, 10):
            busy_s = np.full(3, 4.0) if i > 6 else np.roll([6.0, 4.0, 2.0], i)
            samples = {
                "first": Sample(
                    30, 30, 0, 3, {"second": 30}, 12.0, 30, replica_busy_s=tuple(busy_s.tolist())
                ),
                "second": Sample(30, 30, 0, 1, {}, 3.0, replica_busy_s=(3.0,)),
            }
            at = 1.7e9 + i * 10.0
            journal.append(Decision(at, "observed", "act", Snapshot(at, 10.0, samples)))
    return folder / "journal.jsonl"


def test_busy_time_per_replica_is_told_before_and_after(tmp_path: Path) -> None:
    page = of_journal(balanced_journal(tmp_path))
    parts = data_of(render(page))["runs"][0]["balance"]
    assert set(parts) == {"first"}, "one replica has nothing to balance"
    whole, first, last = parts["first"]
    assert first == {"busy": [0.6, 0.4, 0.2], "uneven": 1.5}
    assert last == {"busy": [0.4, 0.4, 0.4], "uneven": 1}
    assert whole["uneven"] == pytest.approx((6 * 1.5 + 3 * 1.0) / 9, rel=1e-4)


@pytest.mark.slow
def test_the_picture_of_busy_time_before_and_after(tmp_path: Path) -> None:
    file = write(tmp_path / "page.html", of_journal(balanced_journal(tmp_path)))
    with chromium() as browser:
        tab = browser.new_page(viewport={"width": 1280, "height": 800})
        tab.goto(file.as_uri())
        rows = tab.locator("#balance .balance-row")
        told = [rows.nth(i).locator("span").inner_text().split("\n") for i in range(rows.count())]
        assert told == [["first third", "max/mean 1.50"], ["last third", "max/mean 1.00"]]
        heights = [
            rows.nth(i).locator("b").evaluate_all("bars => bars.map(b => b.style.height)")
            for i in range(2)
        ]
        assert [[round(float(h.rstrip("%"))) for h in row] for row in heights] == [
            [100, 67, 33],
            [67, 67, 67],
        ]


def test_a_journal_without_a_window_is_an_error(tmp_path: Path) -> None:
    Journal(
        tmp_path / "journal.jsonl", Run("live", "srea", app("chain").topology, 10.0, 0.0)
    ).close()
    with pytest.raises(InvalidConfig, match="no measured window"):
        of_journal(tmp_path)


INK = """canvas => {
  const area = [0, 0, canvas.width, canvas.height];
  const pixels = canvas.getContext('2d').getImageData(...area).data;
  let inked = 0;
  for (let i = 3; i < pixels.length; i += 4) if (pixels[i] > 0) inked++;
  return inked; }"""

LINED_UP = """() => {
  const box = at => document.querySelector(`#percentiles ${at}`)?.getBoundingClientRect();
              const [bar, scale] = [box('.track'), box('.scale div')];
              return !bar || (bar.left === scale.left && bar.width === scale.width); }"""


@pytest.mark.slow
def test_every_chart_is_drawn_in_a_real_browser(tmp_path: Path) -> None:
    pages = {
        "comparison": of_comparison(
            comparison("srea", "static", "clairvoyant", "spea", "ds2", "lcp")
        ),
        "one": of_comparison(comparison("srea")),
        "live": of_journal(journal_of(tmp_path)),
    }
    one = pages["one"]
    offered = (Choice(0.95, 1.2), Choice(0.99, 1.5))
    pages["one"] = replace(one, runs=(replace(one.runs[0], choices=offered, priced="why"),))
    with chromium() as browser:
        for name, page in pages.items():
            file = write(tmp_path / f"{name}.html", page)
            for scheme, width in (("light", 1280), ("dark", 390)):
                tab = browser.new_page(
                    color_scheme=scheme, viewport={"width": width, "height": 800}
                )  # type: ignore[arg-type]
                seen = Seen()
                seen.watch(tab)
                tab.goto(file.as_uri())
                charts = tab.locator("[data-chart]")
                names = {charts.nth(i).get_attribute("data-chart") for i in range(charts.count())}
                expected = {
                    "cost",
                    "percentiles",
                    "load",
                    "replicas",
                    "latency",
                    "backlog",
                    "utilization",
                }
                assert expected | {f"operator-{o}" for o in page.topology.names} <= names
                assert tab.locator("[data-chart]:not([data-drawn])").count() == 0
                canvases = tab.locator("canvas")
                drawn_otherwise = {"cost", "percentiles", "balance", "frontier", "choices"}
                assert canvases.count() == len(names - drawn_otherwise)
                assert min(canvases.nth(i).evaluate(INK) for i in range(canvases.count())) > 500
                assert tab.locator("#cost .bar").count() == len(page.runs)
                offers = tab.locator("#choices .bar").all_inner_texts()
                assert [o.split() for o in offers] == (
                    [["95", "%", "1.20"], ["99", "%", "1.50"]] if name == "one" else []
                )
                assert tab.locator("#figures tbody tr").count() == len(page.runs)
                assert tab.locator("#decisions li").count() > 0
                assert tab.evaluate("document.documentElement.scrollWidth") <= width
                assert tab.evaluate(LINED_UP)  # the scale under the latency bars has their length
                assert (seen.errors, seen.foreign) == ([], set())
                tab.close()


@pytest.mark.slow
def test_the_page_answers_to_a_person(tmp_path: Path) -> None:
    file = write(tmp_path / "page.html", of_comparison(comparison("srea", "static", "clairvoyant")))
    with chromium() as browser:
        tab = browser.new_page(viewport={"width": 1280, "height": 800})
        seen = Seen()
        seen.watch(tab)
        tab.goto(file.as_uri())
        before = tab.locator("#replicas .u-series").count()
        tab.locator("#systems button", has_text="static").click()
        assert tab.locator("#replicas .u-series").count() == before - 1
        tab.locator("#theme").click()
        assert tab.evaluate("document.documentElement.dataset.theme") == "dark"
        tab.locator("#latency-pick button", has_text="p50").click()
        assert tab.locator("#latency-pick button[aria-pressed=true]").inner_text() == "p50"
        tab.locator("#figures th button", has_text="changes").click()
        assert tab.locator("#figures tbody tr").first.locator("td").first.inner_text() == "static"
        tab.locator("#decision-system").select_option("static")
        assert tab.locator("#decisions li").count() == 1
        tab.locator("#decision-text").fill("no such word")
        assert tab.locator("#decisions-note").inner_text() == "Nothing matches."
        assert tab.locator("[data-chart]:not([data-drawn])").count() == 0
        assert (seen.errors, seen.foreign) == ([], set())


def test_a_run_that_just_ended_gets_its_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    closing.close(journal_of(tmp_path))
    assert (tmp_path / "report.html").stat().st_size > 50_000
    closing.close(tmp_path / "elsewhere")
    assert "no report: cannot read the journal" in " ".join(capsys.readouterr().out.split())
