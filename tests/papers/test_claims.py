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

from foretide.papers import bgelasor, drs
from foretide.papers.pages import verdicts
from foretide.papers.paper import Bench, PublishedTable

PAGES = Path(__file__).parents[2] / "docs" / "papers"
AUTHORS = Path(os.environ.get("FORETIDE_TRACES", "/nowhere")) / "authors"

NOT_HERE = {
    "table-ii": "a time on the wall",
    "table-1-": "networks trained on the authors' loads: hours, see test_own_loads below",
    "figure-4-bigru-": "the same networks",
    "figure-5-loop-": "networks trained on the built-in shapes: minutes each",
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
    made = [t for t in tables if not any(t.key.startswith(k) for k in NOT_HERE)]
    held = {(t.key, bare(c.text)) for t in made for c in t.claims if c.holds}
    expected = claimed(name, (t.key for t in made))
    assert expected, f"no table of {name} has a claim that came out: the test would test nothing"
    return expected - held


def test_every_claim_that_came_out_is_tested_or_has_a_reason() -> None:
    tested = {
        "drs": ("figure-6-", "figure-7", "figure-8-", "figure-9-", "figure-10"),
        "pa-sps": ("figure-6", "table-"),
        "bgelasor": ("figure-4-known-",),
        "dabs-storm": ("figure-",),
        "fugu": ("table-i", "figure-"),
    }
    for name, keys in tested.items():
        page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
        came_out = {v.key for v in verdicts(page) if v.came_out}
        assert [k for k in came_out if not k.startswith((*keys, *NOT_HERE))] == []


@pytest.mark.slow
def test_drs() -> None:
    assert lost("drs", drs.tables(Bench(seeds=2))) == set()


@pytest.mark.slow
def test_bgelasor_on_the_built_in_shapes() -> None:
    assert lost("bgelasor", bgelasor.tables(Bench())) == set()
