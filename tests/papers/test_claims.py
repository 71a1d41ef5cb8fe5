"""Every claim that a page says came out, again at reduced size: it fails when one stops coming out.

The pages hold the verdicts of the whole size. What a smaller run or a machine without the authors'
loads cannot show is named in ``NOT_HERE`` with its reason.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from foretide.papers import bgelasor, dabs_storm, drs, fugu, pa_sps
from foretide.papers.pages import verdicts
from foretide.papers.paper import Bench, PublishedTable

PAGES = Path(__file__).parents[2] / "docs" / "papers"
AUTHORS = Path(os.environ.get("FORETIDE_TRACES", "/nowhere")) / "authors"

NOT_HERE = {
    "drs": {"table-ii": "a time on the wall"},
    "bgelasor": {
        "table-1-": "networks trained on the authors' loads: hours",
        "figure-4-bigru-": "the same networks",
        "figure-5-loop-": "networks trained on the built-in shapes: minutes each",
        "figure-4-known-periodic": "the authors' load; the shape of that name is tested",
        "figure-4-known-fluctuating": "the authors' load; the shape of that name is tested",
    },
    "fugu": {"figure-": "claims of 24 runs and more; test_fugu.py has RL above local above global"},
    "pa-sps": {},
    "dabs-storm": {},
}
TESTED = {
    "drs": ("figure-6-", "figure-7", "figure-8-", "figure-9-", "figure-10"),
    "pa-sps": ("figure-6", "table-"),
    "bgelasor": ("figure-4-known-",),
    "dabs-storm": ("figure-",),
    "fugu": ("table-i",),
}


def claimed(name: str, keys: Iterable[str]) -> set[tuple[str, str]]:
    """Claims of these tables that came out by the page, without the figures of that run."""
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    wanted = set(keys)
    return {(v.key, bare(v.claim)) for v in verdicts(page) if v.came_out and v.key in wanted}


def bare(text: str) -> str:
    """A claim without the bracket at its end, in which details stand."""
    return re.sub(r" \([^()]*\)$", "", text)


def lost(name: str, tables: Iterable[PublishedTable]) -> set[tuple[str, str]]:
    """Claims that came out by the page and do not here."""
    made = [t for t in tables if t.key not in NOT_HERE[name]]
    held = {(t.key, bare(c.text)) for t in made for c in t.claims if c.holds}
    expected = claimed(name, (t.key for t in made))
    assert expected, f"no table of {name} has a claim that came out: the test would test nothing"
    return expected - held


@pytest.mark.parametrize("name", TESTED)
def test_every_claim_that_came_out_is_tested_or_has_a_reason(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    came_out = {v.key for v in verdicts(page) if v.came_out}
    known = (*TESTED[name], *NOT_HERE[name])
    assert [k for k in came_out if not k.startswith(known)] == []


@pytest.mark.slow
def test_drs() -> None:
    assert lost("drs", drs.tables(Bench(seeds=2))) == set()


@pytest.mark.slow
def test_pa_sps_on_the_authors_traces() -> None:
    if not AUTHORS.exists():
        pytest.skip(f"the authors' traces are not at {AUTHORS}; set FORETIDE_TRACES")
    assert lost("pa-sps", pa_sps.tables(Bench(data=AUTHORS, processes=1))) == set()


@pytest.mark.slow
def test_pa_sps_on_the_built_in_shape() -> None:
    """What table 2 says of its ends, without the authors' trace."""
    case = pa_sps.case_of("twitter-linear", 32, Bench())
    by = {n: pa_sps.run(case, pa_sps.pa_sps(n, pool=8)) for n in ("ann", "lr", "basic")}
    latency = {n: f.latency_mean_ms or 0.0 for n, f in by.items()}
    saved = {n: f.saved_resources or 0.0 for n, f in by.items()}
    assert min(latency, key=lambda n: latency[n]) == "ann"
    assert max(latency, key=lambda n: latency[n]) == "basic"
    assert min(saved, key=lambda n: saved[n]) == "ann"
    assert pa_sps.figure_6().claims[0].holds


@pytest.mark.slow
@pytest.mark.parametrize("figure", dabs_storm.FIGURES, ids=lambda f: f"figure-{f.number}")
def test_dabs_storm(figure: dabs_storm.Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    """One seed, and one training of rlearning in place of five."""
    monkeypatch.setattr(dabs_storm, "TRAINING", 1)
    runs = {s: [dabs_storm.run(dabs_storm.StreamRun(figure, s))] for s in dabs_storm.STRATEGIES}
    table = dabs_storm.table(figure, runs)
    if claimed("dabs-storm", [table.key]):
        assert lost("dabs-storm", [table]) == set()
    else:
        assert figure.number == 14, "figure 14 alone has no claim that came out"


def test_fugu_prints_the_papers_table() -> None:
    assert lost("fugu", [fugu.table_1()]) == set()


@pytest.mark.slow
def test_bgelasor_on_the_built_in_shapes() -> None:
    assert lost("bgelasor", bgelasor.tables(Bench())) == set()
