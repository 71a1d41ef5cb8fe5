"""Examples that ship with the package: pipelines to run or to copy, and settings files.

``foretide examples`` lists them, ``foretide examples NAME`` prints one.
"""

from __future__ import annotations

from pathlib import Path

from foretide.errors import unknown

_FILES = {
    file.name: file
    for file in sorted(Path(__file__).parent.iterdir())
    if file.suffix in (".py", ".toml") and file.name != "__init__.py"
}


def names() -> tuple[str, ...]:
    """File names of the examples."""
    return tuple(_FILES)


def path(name: str) -> Path:
    """Where an example lies."""
    if name not in _FILES:
        raise unknown("example", name, _FILES)
    return _FILES[name]


def source(name: str) -> str:
    """The text of an example."""
    return path(name).read_text(encoding="utf-8")


def summary(name: str) -> str:
    """The first sentence of an example: its docstring's or its first comment's.

    >>> summary("words.py")
    'Spell numbers and measure the words: a generated load, two operators, a sink.'
    """
    text = source(name).lstrip('#" ').split("\n\n")[0].split('"""')[0]
    return (
        " ".join(line.lstrip("# ") for line in text.splitlines()).split(". ")[0].rstrip(".") + "."
    )
