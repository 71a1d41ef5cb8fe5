"""The shape of the project itself."""

import ast
import re
import tomllib
from pathlib import Path

import foretide
from foretide.config import Settings, SystemSettings, parse_settings
from foretide.guards import GUARDS
from foretide.model import Prices

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "foretide"


def test_the_public_names_are_these() -> None:
    """A name leaves or joins this list on purpose, with a line in CHANGELOG.md."""
    assert set(foretide.__all__) == {
        "SYSTEMS",
        "Autoscaler",
        "Cadence",
        "Decision",
        "Forecast",
        "ForetideError",
        "History",
        "Host",
        "Journal",
        "Latency",
        "NotReady",
        "Operator",
        "Plan",
        "Prices",
        "Run",
        "Sample",
        "Snapshot",
        "System",
        "Topology",
        "__version__",
        "attach",
        "system",
    }
    assert all(hasattr(foretide, name) for name in foretide.__all__)


def test_every_module_says_what_it_owns() -> None:
    silent = [
        str(p.relative_to(ROOT))
        for p in PACKAGE.rglob("*.py")
        if not p.read_text().lstrip().startswith(('"""', 'r"""'))
    ]
    assert not silent


def test_the_files_that_the_architecture_names_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = re.findall(r"`([a-z_/]+(?:\.py|/))`", page)
    assert len(named) > 25
    assert [name for name in named if not (PACKAGE / name).exists()] == []
    packages = {p.name for p in PACKAGE.iterdir() if (p / "__init__.py").exists()} - {
        "papers",
        "assets",
    }
    drawn = page[page.index("```text") : page.index("## One event")]
    assert [name for name in sorted(packages) if not re.search(rf"\b{name}\b", drawn)] == []


def test_the_page_about_kafka_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "kafka.md").read_text()
    tests = "".join(p.read_text() for p in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", page)
    assert len(named) > 10
    assert [name for name in named if f"def {name}(" not in tests] == []
    files = re.findall(r"`((?:tests|benchmarks|deploy|scripts)/[\w./-]+)", page)
    assert [name for name in files if not (ROOT / name).exists()] == []


def shown_by() -> list[tuple[str, str]]:
    """Tests, benchmarks and options that the page about reliability names, as (file, rest)."""
    page = (ROOT / "docs" / "reliability.md").read_text()
    quoted = re.findall(r"`([^`]+)`", page)
    return [
        (match["file"], match["rest"])
        for text in quoted
        if (match := re.search(r"(?P<file>(tests|benchmarks|scripts)/[\w./-]+)(?P<rest>.*)", text))
    ]


def test_the_page_about_reliability_names_tests_and_options_that_exist() -> None:
    assert len(shown_by()) > 40
    for file, rest in shown_by():
        path = ROOT / file
        assert path.exists(), file
        text = path.read_text() if path.is_file() else ""
        for name in re.findall(r"::(\w+)", rest):
            assert f"def {name}(" in text, f"{file} has no {name}"
        for option in re.findall(r"--[a-z-]+", rest):
            assert f'"{option}"' in text, f"{file} has no option {option}"


def test_every_row_of_the_page_about_reliability_has_a_test_or_a_benchmark() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text().partition("## What was seen")[0]
    rows = [row.split("|") for row in page.splitlines() if row.startswith("| ")]
    rows = [row for row in rows if row[1].strip() != "attack"]
    assert len(rows) > 25
    for row in rows:
        assert re.search(r"`(tests|benchmarks|scripts)/|the same", row[3]), row[1]


def test_the_settings_page_names_every_key() -> None:
    page = (ROOT / "docs" / "settings.md").read_text()
    keys = [*Settings.__struct_fields__, *SystemSettings.__struct_fields__, *Prices.__slots__]
    names = [*(k for k in keys if k not in ("system", "guards")), *(p.name for p in GUARDS)]
    assert [name for name in names if name not in page] == []
    (example,) = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    assert parse_settings(tomllib.loads(example)).system.build().quantile == 0.9


def test_decision_pages_are_numbered_without_gaps() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [int(p.name[:3]) for p in pages] == list(range(1, len(pages) + 1))


def test_modules_and_functions_stay_small() -> None:
    """One idea each: a module has under 150 lines on average, a function at most 60."""
    texts = {p: p.read_text() for p in PACKAGE.rglob("*.py")}
    lengths = [len(text.splitlines()) for text in texts.values()]
    assert sum(lengths) / len(lengths) < 150
    assert [
        f"{p.relative_to(ROOT)}: {node.name}"
        for p, text in texts.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > 60
    ] == []
