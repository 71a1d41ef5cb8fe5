"""The pages of docs/papers: tables between their markers, and the list of verdicts."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from foretide.cli import app
from foretide.errors import InvalidConfig
from foretide.papers import PAPERS
from foretide.papers.every_figure import FIGURES, SOURCES
from foretide.papers.pages import LIST, renewed, verdict_list, verdict_table, verdicts, write
from foretide.papers.paper import Bench, Claim, PublishedTable, Row

PAGES = Path(__file__).parents[2] / "docs" / "papers"
TABLE = PublishedTable(
    "New", [Row("a", {"x": 1.0})], [Claim("x rises", True, "1"), Claim("y", False)], key="a"
)


def test_a_table_is_written_between_its_markers_and_nothing_else_changes() -> None:
    page = "before\n<!-- table a -->\nold\n<!-- end -->\nafter\n<!-- table b -->\nb\n<!-- end -->\n"
    text = renewed(page, [TABLE])
    assert text.startswith("before\n<!-- table a -->\n**New**\n")
    assert "old" not in text
    assert text.endswith("<!-- end -->\nafter\n<!-- table b -->\nb\n<!-- end -->\n")
    assert renewed(text, [TABLE]) == text


def test_a_table_without_a_place_is_an_error_that_names_the_markers() -> None:
    with pytest.raises(InvalidConfig, match=r"0 places for table 'a'.*<!-- table a -->"):
        renewed("nothing here", [TABLE])


def test_claims_are_read_back_as_they_were_written() -> None:
    long = "a claim that is long enough to be wrapped " * 4
    claims = [Claim(long.strip(), True, "here 2"), Claim("short", False)]
    page = renewed("<!-- table a -->\n<!-- end -->", [PublishedTable("T", [], claims, key="a")])
    assert [(v.claim, v.came_out) for v in verdicts(page)] == [
        (f"{long.strip()} (here 2)", True),
        ("short", False),
    ]


def test_write_needs_the_directory_of_the_pages(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="--write takes the directory of the pages"):
        write(tmp_path, "drs", [TABLE])


def test_the_list_of_verdicts_is_what_the_pages_say() -> None:
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    listed = LIST.search(index)
    assert listed is not None
    assert listed[0] == f"<!-- verdicts -->\n{verdict_list(PAGES)}\n<!-- end -->"


@pytest.mark.parametrize("name", PAPERS.names)
def test_every_figure_has_a_verdict_and_every_table_a_figure(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in verdict_table(name, page) if line.startswith("| ")][1:]
    assert {row[0].removeprefix("| ") for row in rows} == {f.name for f in FIGURES[name]}
    assert all(row[1].strip() and row[2].strip(" |") for row in rows), rows
    known = {key for figure in FIGURES[name] for key in figure.keys}
    judged = {v.key for v in verdicts(page)}
    assert [k for k in judged if not any(k == f or k.startswith(f"{f}-") for f in known)] == []


def test_all_five_papers_are_numbered_without_gaps() -> None:
    last = {"pa-sps": (15, 8), "bgelasor": (5, 1), "drs": (10, 2), "dabs-storm": (17, 2)}
    last["fugu"] = (9, 1)
    roman = {"I": 1, "II": 2}
    assert set(FIGURES) == set(SOURCES) == set(PAPERS.names) == set(last)
    for name, figures in FIGURES.items():
        numbers: dict[str, list[int]] = {"Figure": [], "Table": []}
        for figure in figures:
            kind, number = figure.name.split()
            numbers[kind].append(roman.get(number) or int(re.sub(r"\D", "", number)))
        expected = tuple(list(range(1, most + 1)) for most in last[name])
        assert (sorted(numbers["Figure"]), sorted(numbers["Table"])) == expected


def test_the_command_renews_a_page_to_what_it_is(tmp_path: Path) -> None:
    """Tables that need neither networks nor the authors' loads come out as the page has them."""
    pages = tmp_path / "papers"
    shutil.copytree(PAGES, pages)
    done = CliRunner().invoke(app, ["bench", "papers", "bgelasor", "--write", str(pages), "--json"])
    assert done.exit_code == 0, done.output
    assert [t["key"] for t in json.loads(done.stdout)["bgelasor"]] == [
        f"figure-4-known-{name}-shape" for name in ("stable", "periodic", "fluctuating")
    ]
    for name in ("bgelasor.md", "README.md"):
        assert (pages / name).read_text() == (PAGES / name).read_text()


@pytest.mark.parametrize("name", ["bgelasor", "pa-sps"])
def test_a_directory_without_the_authors_loads_is_an_error_that_says_so(
    name: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidConfig, match="give --data a directory with the authors'"):
        PAPERS.build(name, bench=Bench(data=tmp_path))
