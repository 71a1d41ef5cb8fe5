"""Placement: which host carries which operator. Pure mathematics on loads and free space; it knows no history and no plan."""
