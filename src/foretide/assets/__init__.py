"""Files that both the dashboard and the report use: the chart library uPlot with its licence."""

from __future__ import annotations

from pathlib import Path

VENDOR = Path(__file__).parent / "vendor"
