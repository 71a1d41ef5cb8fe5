"""The page in a real browser while a scripted run is being written: every chart, every number, the
switch, phone and desktop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from browser import ARTIFACTS, Seen, chromium
from playwright.sync_api import Browser, Page, expect
from tweets_world import SERVICE_TIME_S, SHARE, TWEETS, World, load, steps, tweets

from foretide.control import ModeSwitch
from foretide.journal import Journal, read
from foretide.model import Choice, Decision, Host, Snapshot
from foretide.web import serve
from foretide.web.server import Served
from foretide.wording import percent, plural

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
CHARTS = ("c-load", "c-replicas", "c-latency", "c-cost")
PAINTED = """id => {
  const canvas = document.querySelector(`#${id} canvas`);
  const area = [0, 0, canvas.width, canvas.height];
  const pixels = canvas.getContext("2d").getImageData(...area).data;
  const seen = new Set(new Uint32Array(pixels.buffer));
  return seen.size;
}"""


@dataclass
class Live:
    """A run that goes on when told, served."""

    site: Served
    run: Iterator[Decision]
    last: Decision | None = None

    def go(self, windows: int) -> Decision:
        for _ in range(windows):
            self.last = next(self.run)
        assert self.last is not None
        return self.last


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with ModeSwitch(tmp_path / "control.json", "act") as switch:
        run = steps(
            World(TWEETS, SERVICE_TIME_S, load, share=SHARE),
            tmp_path / "journal.jsonl",
            1000,
            switch,
        )
        first = next(run)
        with serve(tmp_path, port=0) as site:
            yield Live(site, run, first)
        run.close()  # type: ignore[attr-defined]


def opened(browser: Browser, site: Served, size: str, theme: str = "light") -> tuple[Page, Seen]:
    width, height = SIZES[size]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme)  # type: ignore[arg-type]
    seen = Seen()
    seen.watch(page)
    page.goto(site.url)
    return page, seen


def waits_for(page: Page, windows: int) -> None:
    expect(page.locator("body")).to_have_attribute("data-windows", str(windows))


@pytest.mark.parametrize("size", ["desktop", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_chart_is_drawn_and_numbers_match_the_journal(
    browser: Browser, live: Live, size: str, theme: str
) -> None:
    page, seen = opened(browser, live.site, size, theme)
    live.go(229)  # the read of window 100 fails: 229 of 230 windows were measured
    waits_for(page, 229)
    last = live.go(1)
    waits_for(page, 230)
    assert last.snapshot is not None
    samples = last.snapshot.samples
    for chart in CHARTS:
        expect(page.locator(f"#{chart}[data-drawn]")).to_be_visible()
        assert page.evaluate(PAINTED, chart) > 10, chart
    expect(page.locator("#v-load")).to_have_text(f"{(samples['parse'].offered or 0) / 10:.0f}")
    expect(page.locator("#v-replicas")).to_have_text(str(sum(s.replicas for s in samples.values())))
    expect(page.locator("#v-backlog")).to_have_text(
        f"{sum(s.backlog for s in samples.values()):.0f}"
    )
    for name, sample in samples.items():
        node = page.locator(f'.node[data-operator="{name}"]')
        utilization = (sample.busy_s or 0) / (sample.replicas * 10)
        label = node.get_attribute("aria-label") or ""
        assert f"{name}: {plural(sample.replicas, 'replica')}," in label
        planned = last.plan.replicas[name] if last.plan else sample.replicas
        assert node.locator(".pip").count() == min(10, max(sample.replicas, planned))
        assert node.locator(".waiting").text_content() in (
            percent(utilization),
            f"{sample.backlog:.0f} waiting",
        )
    assert page.locator(".edge").count() == len(TWEETS.edges)
    assert page.locator(".edge.loop").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(
        path=ARTIFACTS / f"dashboard-{size}-{theme}.png", full_page=True, animations="disabled"
    )
    assert seen.errors == []
    assert seen.foreign == set()
    page.close()


def test_decisions_come_newest_first_with_their_sentences(browser: Browser, live: Live) -> None:
    made = [
        (n, d)
        for n, d in ((n, live.go(1)) for n in range(1, 151))
        if d.outcome == "applied" or d.plan != d.proposed
    ]
    page, seen = opened(browser, live.site, "desktop")
    number, newest = made[-1]
    assert newest.plan is not None
    assert newest.proposed is not None
    assert newest.snapshot is not None
    first = page.locator("#feed li").first
    expect(first).to_have_attribute("data-seq", str(number))
    sequence = [
        int(n)
        for n in page.eval_on_selector_all("#feed li", "items => items.map(i => i.dataset.seq)")
    ]
    assert sequence == sorted(sequence, reverse=True)
    running = {n: sample.replicas for n, sample in newest.snapshot.samples.items()}
    changed = next(
        n
        for n, r in newest.plan.replicas.items()
        if not r == running[n] == newest.proposed.replicas[n]
    )
    expect(first).to_contain_text(changed)
    expect(first).to_contain_text(newest.proposed.reasons[changed])
    expect(page.locator("#feed .guard").first).to_contain_text("proposed")
    shown = page.locator("#feed li").count()
    page.locator("#older").click()
    expect(page.locator("#feed li").nth(shown)).to_be_attached()
    page.locator("#every").check()
    expect(page.locator("#feed li").first).to_have_attribute("data-seq", "150")
    assert seen.errors == []
    page.close()


def test_the_switch_asks_for_the_token_and_reaches_the_loop(browser: Browser, live: Live) -> None:
    live.go(20)
    page, seen = opened(browser, live.site, "phone")
    advise, act = (
        page.locator('#mode [data-mode="advise"]'),
        page.locator('#mode [data-mode="act"]'),
    )
    expect(act).to_have_attribute("aria-pressed", "true")
    advise.click()
    page.locator("#token").fill("not-the-token-at-all")
    page.locator("#token-form [type=submit]").click()
    expect(page.locator("#token-error")).to_have_text("That token is not right.")
    assert live.go(1).mode == "act"
    page.locator("#token").fill(live.site.token)
    page.locator("#token-form [type=submit]").click()
    expect(advise).to_have_class("asked")
    assert live.go(1).mode == "advise"
    expect(advise).to_have_attribute("aria-pressed", "true")
    act.click()  # the token is known now
    expect(act).to_have_class("asked")
    assert live.go(1).mode == "act"
    expect(act).to_have_attribute("aria-pressed", "true")
    assert live.site.token not in page.url
    assert [
        e for e in seen.errors if "401" not in e
    ] == []  # the browser itself reports the refused request
    page.close()


def test_an_operator_and_the_whole_run_can_be_chosen(browser: Browser, live: Live) -> None:
    live.go(80)
    page, seen = opened(browser, live.site, "desktop")
    page.locator('.node[data-operator="spam"]').click()
    expect(page.locator("#scope")).to_contain_text("spam")
    expect(page.locator("#c-load .legend")).to_contain_text("arriving")
    last = live.go(1)
    assert last.snapshot is not None
    expect(page.locator("#c-replicas .legend b").first).to_have_text(
        str(last.snapshot.samples["spam"].replicas)
    )
    page.locator('#range [data-range="whole"]').click()
    expect(page.locator("#span")).to_contain_text("min")
    page.locator("#scope").click()
    expect(page.locator("#c-load .legend")).to_contain_text("forecast")
    page.locator("#theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert seen.errors == []
    page.close()


def test_a_finished_run_opens_and_its_switch_is_off(browser: Browser, tmp_path: Path) -> None:
    list(steps(World(TWEETS, SERVICE_TIME_S, load, share=SHARE), tmp_path / "journal.jsonl", 30))
    with serve(tmp_path, port=0) as site:
        page, seen = opened(browser, site, "desktop")
        waits_for(page, 30)
        expect(page.locator('#mode [data-mode="advise"]')).to_be_disabled()
        assert seen.errors == []
        page.close()


def test_on_any_other_address_the_page_asks_for_the_token_first(
    browser: Browser, live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.go(20)
    monkeypatch.setattr("foretide.web.server.is_loopback", lambda host: False)
    with serve(tmp_path, port=0, token="the-token-for-readers") as site:
        assert site.private
        page, seen = opened(browser, site, "phone")
        expect(page.locator("#token-why")).to_contain_text("Reading needs the token")
        expect(page.locator("#c-load[data-drawn]")).to_have_count(0)
        page.locator("#token").fill("not-the-token-at-all")
        page.locator("#token-form [type=submit]").click()
        expect(page.locator("#token-error")).to_have_text("That token is not right.")
        page.locator("#token").fill("the-token-for-readers")
        page.locator("#token-form [type=submit]").click()
        expect(page.locator("#c-load[data-drawn]")).to_be_visible()
        live.go(1)
        waits_for(page, 22)
        assert "the-token" not in page.content()
        assert [e for e in seen.errors if "401" not in e] == []
        assert seen.foreign == set()
        page.close()


@dataclass(frozen=True)
class Recorded:
    """A finished journal: the scripted run with other replicas and more measurements."""

    shared_slots: bool
    replicas: int
    share: float = 0.99
    choices: tuple[Choice, ...] = ()

    def write(self, folder: Path) -> None:
        tweets(folder / "scripted.jsonl", windows=40)
        run, decisions = read(folder / "scripted.jsonl")
        facts = {"shared_slots": self.shared_slots, "spark_ui": "http://127.0.0.1:4040"}
        with Journal(
            folder / "journal.jsonl", replace(run, settings=facts, share=self.share)
        ) as book:
            for i, d in enumerate(decisions):
                plan = d.plan and replace(d.plan, model_error=0.123)
                if plan and i == 20:
                    text = {**plan.reasons, "": "99 % would have cost 1.50"}
                    plan = replace(plan, choices=self.choices, reasons=text)
                snapshot = d.snapshot and self.changed(d.snapshot)
                book.append(replace(d, snapshot=snapshot, proposed=plan, plan=plan))

    def changed(self, snapshot: Snapshot) -> Snapshot:
        samples = {
            n: replace(s, replicas=self.replicas, batch_s=1.2, batches=5.0)
            for n, s in snapshot.samples.items()
        }
        state = {"state_rows": 1.0, "state_bytes": 4.2e6, "watermark_at": snapshot.at - 30}
        samples["user"] = replace(samples["user"], **state)
        hosts = (Host("e1", 0.5, 4.0), Host("e2", 0.5, 4.0))
        return replace(snapshot, samples=samples, hosts=hosts, lead_s=12.0, slots=8)


def test_a_run_that_ran_short_says_so_and_shows_no_saving(browser: Browser, tmp_path: Path) -> None:
    Recorded(shared_slots=False, replicas=1).write(tmp_path)
    with serve(tmp_path, port=0) as site:
        page, seen = opened(browser, site, "desktop")
        expect(page.locator("#short")).to_contain_text("replicas covered")
        expect(page.locator("#v-saved")).to_have_text("–")
        expect(page.locator("#s-saved")).to_have_text("ran short")
        facts = page.locator("#facts")
        for text in ("longest batch1.2 s", "state1 row, 4.2 MB", "watermark30 s behind"):
            expect(facts).to_contain_text(text)
        for text in ("executors2", "task slots8", "lead time12 s", "processing"):
            expect(facts).to_contain_text(text)
        expect(facts).to_contain_text("model error12.3 %")
        expect(page.locator("#choices")).to_be_hidden()
        link = page.locator("#spark-ui")
        expect(link).to_have_attribute("href", "http://127.0.0.1:4040")
        label = page.locator('.node[data-operator="spam"]').get_attribute("aria-label") or ""
        assert "spam: 1 replica," in label
        assert seen.errors == []
        page.close()


def test_an_attached_application_shows_executors_and_shared_slots(
    browser: Browser, tmp_path: Path
) -> None:
    Recorded(shared_slots=True, replicas=8).write(tmp_path)
    with serve(tmp_path, port=0) as site:
        page, seen = opened(browser, site, "desktop")
        expect(page.locator("#h-replicas")).to_have_text("Executors")
        expect(page.locator("#v-replicas")).to_have_text("2")
        expect(page.locator("#s-replicas")).to_contain_text("8 slots, need ")
        expect(page.locator('.node[data-operator="retry"] .count')).to_have_text("1 slot")
        assert page.locator(".pip").count() == 0
        assert seen.errors == []
        page.close()


def test_a_run_that_cost_more_than_static_peak_says_so_and_not_saved(
    browser: Browser, tmp_path: Path
) -> None:
    Recorded(shared_slots=False, replicas=24, share=0.5).write(tmp_path)
    with serve(tmp_path, port=0) as site:
        page, seen = opened(browser, site, "desktop")
        expect(page.locator("#h-saved")).to_have_text("Extra cost")
        expect(page.locator("#v-saved")).to_have_text(re.compile(r"^\d+(\.\d)? %$"))
        expect(page.locator("#s-saved")).to_have_text("against static peak")
        assert seen.errors == []
        page.close()


def test_the_price_of_other_promises_is_a_bar_each_until_the_next_one(
    browser: Browser, tmp_path: Path
) -> None:
    """The planner worked it out once, in the middle of the run."""
    offered = (Choice(0.95, 1.2), Choice(0.99, 1.5), Choice(0.999, 1.8))
    Recorded(shared_slots=False, replicas=8, choices=offered).write(tmp_path)
    with serve(tmp_path, port=0) as site:
        page, seen = opened(browser, site, "desktop")
        rows = page.locator("#choices li")
        lines = ["95 %1.20, 20 % less", "99 %1.50, promised", "99.9 %1.80, 20 % more"]
        expect(rows).to_have_text(lines)
        expect(page.locator("#choices-sentence")).to_have_text("99 % would have cost 1.50")
        expect(page.locator("#choices-hint")).to_contain_text("share within 2 s")
        boxes = [r.bounding_box() for r in rows.locator(".level").all()]
        widths = [box["width"] for box in boxes if box]
        assert [w / widths[-1] for w in widths] == pytest.approx([0.667, 0.833, 1.0], abs=0.01)
        ARTIFACTS.mkdir(exist_ok=True)
        page.screenshot(path=ARTIFACTS / "dashboard-choices.png", full_page=True)
        assert seen.errors == []
        page.close()
