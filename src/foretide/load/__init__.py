"""Loads: recorded traces and the papers' shapes, by name."""

from foretide.load.recorded import CsvFormat, read_csv
from foretide.load.series import LOADS, Load, load

__all__ = ["LOADS", "CsvFormat", "Load", "load", "read_csv"]
