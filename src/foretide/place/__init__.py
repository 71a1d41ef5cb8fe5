"""Placement: which host carries which operator. Pure mathematics."""
