"""The shape of the project itself."""

from pathlib import Path

import foretide

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "foretide"


def test_the_public_names_are_these() -> None:
    """A name leaves or joins this list on purpose, with a line in CHANGELOG.md."""
    assert set(foretide.__all__) == {
        "SYSTEMS", "Autoscaler", "Cadence", "Decision", "Forecast", "ForetideError", "History", "Host", "Journal", "Latency",
        "NotReady", "Operator", "Plan", "Prices", "Run", "Sample", "Snapshot", "System", "Topology", "__version__", "attach", "system",
    }  # fmt: skip
    assert all(hasattr(foretide, name) for name in foretide.__all__)


def test_every_module_says_what_it_owns() -> None:
    silent = [
        str(p.relative_to(ROOT))
        for p in PACKAGE.rglob("*.py")
        if not p.read_text().lstrip().startswith(('"""', 'r"""'))
    ]
    assert not silent
