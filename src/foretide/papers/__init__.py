"""Published tables and figures again, in the simulator: ours beside the published value. One module
per paper.
"""

from __future__ import annotations

from collections.abc import Sequence

from foretide.papers.paper import PublishedTable
from foretide.registry import Part, Registry

PAPERS: Registry[Sequence[PublishedTable]] = Registry(
    "paper",
    (
        Part("pa-sps", "foretide.papers.pa_sps:tables", "tables 2 to 8", "PA-SPS, JPDC 2024"),
        Part(
            "bgelasor",
            "foretide.papers.bgelasor:tables",
            "table 1, figures 4 and 5",
            "BGElasor, NPC 2019",
        ),
        Part(
            "drs",
            "foretide.papers.drs:tables",
            "figures 6 to 10 and table II",
            "DRS, IEEE/ACM ToN 2017",
        ),
        Part(
            "dabs-storm",
            "foretide.papers.dabs_storm:tables",
            "figures 12 to 17",
            "DABS-Storm, TLDKS 2019",
        ),
        Part("fugu", "foretide.papers.fugu:tables", "table I, figures 4 to 9", "FUGU, SMDB 2014"),
    ),
)
"""Building a paper runs it: ``PAPERS.build("drs", bench=Bench())`` gives its tables."""
