"""Every figure and table of the five papers: which of our tables judges it, or why none can."""

from __future__ import annotations

from dataclasses import dataclass

SOURCES = {
    "pa-sps": "PA-SPS (Wladdimiro et al., JPDC 2024)",
    "bgelasor": "BGElasor (Mu et al., NPC 2019)",
    "drs": "DRS (Fu et al., IEEE/ACM ToN 2017)",
    "dabs-storm": "DABS-Storm (Kotto-Kombi et al., TLDKS 2019)",
    "fugu": "FUGU (Heinze et al., SMDB 2014)",
}


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """One figure or table of a paper. ``keys`` are our tables for it (a key stands for all that
    begin with it); ``shows`` and ``reason`` say what a figure without claims shows and why it
    cannot be judged; ``unjudged`` adds that line beside claims that were judged.
    """

    name: str
    keys: tuple[str, ...] = ()
    shows: str = ""
    reason: str = ""
    unjudged: bool = False

    @property
    def why(self) -> str:
        return f": {self.reason}" if self.reason else ""


def _drawing(name: str, shows: str) -> PaperFigure:
    return PaperFigure(name, shows=shows, reason="a drawing, no measured figure")


FIGURES: dict[str, tuple[PaperFigure, ...]] = {
    "pa-sps": (
        _drawing("Figure 1", "mapping of a graph to machines"),
        _drawing("Figure 2", "architecture"),
        _drawing("Figure 3", "pool of replicas"),
        PaperFigure("Table 1", shows="notation", reason="no measured figure"),
        PaperFigure(
            "Figure 4",
            shows="worked example of equation 2",
            reason="its numbers are not in the text; equations 2 to 7 are tested",
        ),
        _drawing("Figure 5", "dependence of operators"),
        PaperFigure("Figure 6", ("figure-6",)),
        _drawing("Figure 7", "the linear application"),
        PaperFigure(
            "Figure 8", shows="the loads", reason="an input: the authors' traces, read with --data"
        ),
        PaperFigure("Table 2", ("table-2",)),
        PaperFigure(
            "Figure 9",
            shows="replicas and throughput over time",
            reason="a plot without figures in the text; table 2 judges the same runs",
        ),
        PaperFigure("Table 3", ("table-3",)),
        PaperFigure("Table 4", ("table-4",)),
        PaperFigure(
            "Figure 10",
            shows="replicas and throughput over time",
            reason="a plot without figures in the text; table 4 judges the same runs",
        ),
        _drawing("Figure 11", "the complex application"),
        PaperFigure("Table 5", ("table-5",)),
        PaperFigure("Table 6", ("table-6",), "forecasters on raw tweets", "not on the page"),
        _drawing("Figure 12", "the DNS application"),
        PaperFigure("Table 7", ("table-7",), "forecasters on DNS queries", "not on the page"),
        PaperFigure(
            "Figure 13",
            shows="replicas and throughput over time",
            reason="a plot without figures in the text; table 7 judges the same runs",
        ),
        _drawing("Figure 14", "the log application"),
        PaperFigure("Table 8", ("table-8",), "forecasters on log lines", "not on the page"),
        PaperFigure(
            "Figure 15",
            shows="replicas and throughput over time",
            reason="a plot without figures in the text; table 8 judges the same runs",
        ),
    ),
    "bgelasor": (
        _drawing("Figure 1", "architecture of DataDock"),
        _drawing("Figure 2", "architecture of BGElasor"),
        PaperFigure(
            "Figure 3", shows="the three loads", reason="an input: two are read with --data"
        ),
        PaperFigure(
            "Table 1",
            ("table-1",),
            shows="errors on the stable load",
            reason="that load is no longer public",
            unjudged=True,
        ),
        PaperFigure("Figure 4", ("figure-4",)),
        PaperFigure("Figure 5", ("figure-5",)),
    ),
    "drs": (
        _drawing("Figure 1", "two operators of video analytics"),
        _drawing("Figure 2", "a complex topology"),
        PaperFigure("Table I", shows="notation", reason="no measured figure"),
        _drawing("Figure 3", "architecture"),
        _drawing("Figure 4", "the video application"),
        _drawing("Figure 5", "the pattern application"),
        PaperFigure("Figure 6", ("figure-6",)),
        PaperFigure("Figure 7", ("figure-7",)),
        PaperFigure("Figure 8", ("figure-8",)),
        PaperFigure("Figure 9", ("figure-9",)),
        PaperFigure("Table II", ("table-ii",)),
        PaperFigure("Figure 10", ("figure-10",)),
    ),
    "dabs-storm": (
        _drawing("Figure 1", "distributed stream processing"),
        PaperFigure("Table 1", shows="notation", reason="no measured figure"),
        _drawing("Figure 2", "metrics of two operators"),
        _drawing("Figure 3", "usable CPU"),
        _drawing("Figure 4", "working interval"),
        _drawing("Figure 5", "worst and best balance"),
        _drawing("Figure 6", "design of OSG"),
        _drawing("Figure 7", "state machines of OSG"),
        _drawing("Figure 8", "architecture of Storm"),
        PaperFigure("Table 2", shows="parameters", reason="an input: ours are these"),
        _drawing("Figure 9", "the simple topologies"),
        _drawing("Figure 10", "the complex topology"),
        PaperFigure("Figure 11", shows="the streams", reason="an input: ours follow it"),
        *(PaperFigure(f"Figure {n}", (f"figure-{n}",)) for n in range(12, 18)),
    ),
    "fugu": (
        _drawing("Figure 1", "architecture"),
        _drawing("Figure 2", "inputs and outputs of the techniques"),
        PaperFigure("Table I", ("table-i",)),
        PaperFigure(
            "Figure 3", shows="three trading days", reason="an input, and it was never published"
        ),
        *(PaperFigure(f"Figure {n}", (f"figure-{n}",)) for n in range(4, 10)),
    ),
}
