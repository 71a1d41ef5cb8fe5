"""Every built-in system has a family, and so a colour, of its own."""

from foretide.report.families import FAMILIES, OTHER, family
from foretide.systems import SYSTEMS


def test_every_system_has_exactly_one_family() -> None:
    assert [name for name in SYSTEMS if family(name) == OTHER] == []
    members = [name for names in FAMILIES.values() for name in names]
    assert len(members) == len(set(members))
