"""The forecast page: whole, safe, and drawn by a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from browser import Seen, chromium

from foretide.forecast.leaderboard import Leaderboard, leaderboard
from foretide.load import Load
from foretide.report.forecasts import render_forecasts, verdict, write_forecasts

RATES = 100 + 40 * np.sin(np.arange(600) / 9)


def found(every: int = 1) -> Leaderboard:
    return leaderboard(RATES, ["basic", "lr-lags"], horizon=3, every=every)


def data_of(text: str) -> dict:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert match
    return json.loads(match.group(1))


@pytest.mark.parametrize("every", [1, 4])
def test_each_line_stands_at_the_window_it_speaks_of(every: int) -> None:
    board = found(every)
    data = data_of(render_forecasts(Load("wave", RATES), board))
    assert data["steps"] == [1, 3]
    basic = next(m for m in data["models"] if m["model"] == "basic")
    at = data["window"].index(520)
    assert data["truth"][at] == pytest.approx(RATES[520], rel=1e-4)
    assert basic["mean"][0][at] == pytest.approx(RATES[519], rel=1e-4)
    at = data["window"].index(522)
    assert basic["mean"][1][at] == pytest.approx(RATES[519], rel=1e-4)


def test_the_sentence_names_the_best_and_its_gain() -> None:
    assert re.match(
        r"lr-lags had the lowest error over 3 steps: WAPE .* %\. That is .* % lower than repeating",
        verdict(found()),
    )


def test_nothing_in_a_name_can_break_out() -> None:
    text = render_forecasts(Load("</script><b>", RATES), found(), "</script><i>")
    assert text.count("</script>") == 3
    assert "<i>" not in text.split("</header>")[1].split("</main>")[1]


@pytest.mark.slow
def test_a_browser_draws_it_without_complaint(tmp_path: Path) -> None:
    page_file = write_forecasts(
        tmp_path / "page.html", Load("wave", RATES), found(), "foretide forecast wave"
    )
    seen = Seen()
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        seen.watch(page)
        page.goto(page_file.as_uri())
        page.wait_for_selector("#chart[data-drawn=true]")
        page.get_by_role("button", name="3 ahead").click()
        page.locator("#models button", has_text="basic").click()
        assert page.locator("#chart canvas").count() == 1
        page.screenshot(path=tmp_path / "page.png")
    assert seen.errors == []
    assert seen.hosts == set()
