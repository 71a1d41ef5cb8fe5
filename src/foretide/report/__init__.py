"""The HTML report: one self-contained page for a run, a comparison or a finished live run. It loads
nothing from elsewhere.

Owns what the page says; how it looks is in ``assets/``. Charts are drawn by uPlot (vendored with
its licence).
"""

from __future__ import annotations

from foretide.report.page import Page, of_comparison, of_journal, render, write

__all__ = ["Page", "of_comparison", "of_journal", "render", "write"]
