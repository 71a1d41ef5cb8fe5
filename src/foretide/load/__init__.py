"""Loads: recorded traces and the papers' shapes, by name."""

from foretide.load.series import LOADS, Load, load, read_csv

__all__ = ["LOADS", "Load", "load", "read_csv"]
