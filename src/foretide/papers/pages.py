"""Pages: the tables of ``foretide bench papers`` between their markers, and the list of verdicts.

A page under docs/papers holds ``<!-- table KEY -->`` ... ``<!-- end -->`` for every table; the
command writes what stands between, people write the rest. The list of verdicts in README.md is
made from the pages alone, so that the two cannot differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from foretide.errors import InvalidConfig
from foretide.papers.every_figure import FIGURES, SOURCES
from foretide.papers.paper import PublishedTable

CAME_OUT, DID_NOT = "- came out: ", "- did NOT come out: "


def _block(key: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- table {re.escape(key)} -->\n).*?(<!-- end -->)", re.DOTALL)


def renewed(page: str, tables: Sequence[PublishedTable], name: str = "the page") -> str:
    r"""The page with these tables between their markers; other tables stay as they are.

    >>> print(renewed("<!-- table a -->\nold\n<!-- end -->", [PublishedTable("T", [], key="a")]))
    <!-- table a -->
    **T**
    <BLANKLINE>
    | |  |
    |---|
    <BLANKLINE>
    <!-- end -->
    """
    for table in tables:
        text = "\n".join(table.lines()) + "\n\n"
        pieces = _block(table.key).split(page)
        places = len(pieces) // 3
        if places != 1:
            raise InvalidConfig(
                f"{name} has {places} places for table '{table.key}': it needs one, the lines "
                f"'<!-- table {table.key} -->' and '<!-- end -->'"
            )
        page = pieces[0] + pieces[1] + text + pieces[2] + pieces[3]
    return page


@dataclass(frozen=True, slots=True)
class Verdict:
    """One claim as a page has it."""

    key: str
    claim: str
    came_out: bool


def verdicts(page: str) -> Iterator[Verdict]:
    """Every claim of every table of a page, in order."""
    for key, text in re.findall(r"<!-- table (\S+) -->\n(.*?)<!-- end -->", page, re.DOTALL):
        joined = re.sub(r"\n  +", " ", text)
        for line in joined.splitlines():
            for start in (CAME_OUT, DID_NOT):
                if line.startswith(start):
                    yield Verdict(key, line.removeprefix(start), start == CAME_OUT)


def verdict_table(name: str, page: str) -> list[str]:
    """Every figure and table of one paper with its claims, as Markdown."""
    by_key: dict[str, list[Verdict]] = {}
    for verdict in verdicts(page):
        by_key.setdefault(verdict.key, []).append(verdict)
    lines = [
        f"### {SOURCES[name]}",
        "",
        f"`foretide bench papers {name}`; [tables and reading]({name}.md)",
        "",
        "| in the paper | claim, or what it shows | verdict |",
        "|---|---|---|",
    ]
    for figure in FIGURES[name]:
        found = [v for key in by_key if _belongs(key, figure.keys) for v in by_key[key]]
        for v in found:
            lines.append(
                f"| {figure.name} | {v.claim} | {'came out' if v.came_out else 'did not'} |"
            )
        if figure.unjudged or not found:
            lines.append(f"| {figure.name} | {figure.shows} | cannot be judged{figure.why} |")
    return lines


def _belongs(key: str, keys: Sequence[str]) -> bool:
    return any(key == k or key.startswith(f"{k}-") for k in keys)


def verdict_list(directory: Path) -> str:
    """The verdicts of all papers, from their pages."""
    parts = []
    for name in FIGURES:
        page = (directory / f"{name}.md").read_text(encoding="utf-8")
        parts.append("\n".join(verdict_table(name, page)))
    return "\n\n".join(parts) + "\n"


LIST = re.compile(r"(<!-- verdicts -->\n).*?(<!-- end -->)", re.DOTALL)


def write(directory: Path, name: str, tables: Sequence[PublishedTable]) -> None:
    """Renew a paper's page and the list of verdicts."""
    path = directory / f"{name}.md"
    if not path.exists():
        raise InvalidConfig(f"{path} does not exist: --write takes the directory of the pages")
    path.write_text(renewed(path.read_text(encoding="utf-8"), tables, str(path)), encoding="utf-8")
    index = directory / "README.md"
    text, listed = index.read_text(encoding="utf-8"), verdict_list(directory)
    index.write_text(LIST.sub(lambda m: f"{m[1]}{listed}\n{m[2]}", text), encoding="utf-8")
