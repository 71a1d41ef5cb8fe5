"""DABS-Storm's figures: AUTOSCALE+ against its baselines."""

from __future__ import annotations

import pytest

from foretide.apps import app
from foretide.papers.dabs_storm import FIGURES, STRATEGIES, StreamRun, heaviest, run, table


def test_the_heaviest_operator_is_observed() -> None:
    assert [heaviest(app(a)) for a in ("insensitive", "sensitive", "opinion")] == [
        "finish",
        "work",
        "city-lookup",
    ]


@pytest.mark.slow
def test_autoscale_plus_loses_less_than_incremental_on_the_progressive_stream() -> None:
    figures = {s: run(StreamRun(FIGURES[0], s)) for s in STRATEGIES}
    assert figures["AUTOSCALE+"].lost < figures["incremental"].lost
    published = table(FIGURES[0], {s: [f] for s, f in figures.items()})
    assert published.title.startswith("Figure 12: insensitive, progressive")
    assert published.rows[1].published == {"lost %": 29.0}
    assert published.claims[0].holds
