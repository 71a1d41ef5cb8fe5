"""Operators whose names changed between two runs in one folder.

Checkpoints and edges are named after operators. Under a new name an operator would find nothing,
start from the beginning, and send every event again; so a start refuses, unless the operator is
declared with ``formerly``. Then what is on disk is renamed, once, before anything else looks at it.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foretide.errors import InvalidConfig
from foretide.files import replace_file
from foretide.spark.edge.store import Place, StorePath

log = logging.getLogger(__name__)


def check_names(path: Place, declared: Mapping[str, str | None]) -> None:
    """Rename on disk the operators that ``declared`` maps to a former name; refuse when some
    operator on disk is gone while another one is new. Edges that are topics keep their names.
    """
    for name, former in declared.items():
        if former is not None and former not in declared and former in _begun(path):
            if isinstance(path, StorePath) or (path / "kafka.json").exists():
                raise InvalidConfig(
                    f"operator '{name}' cannot take over from '{former}': the topics of its edges "
                    f"are named after '{former}'. Keep the name, or start anew in another directory"
                )
            if name in _begun(path):
                raise InvalidConfig(
                    f"{path} holds the progress of both '{name}' and '{former}': remove "
                    f"formerly='{former}' from '{name}', or start anew in another directory"
                )
            rename(path, former, name)
    begun = _begun(path)
    lost, new = sorted(begun - set(declared)), [n for n in declared if n not in begun]
    if lost and new and begun:
        raise InvalidConfig(
            f"{path} holds the progress of operator '{lost[0]}', which the pipeline does not have "
            f"any more, and nothing of '{new[0]}', which would take every event again. If "
            f"'{new[0]}' is '{lost[0]}' under a new name, keep the old name or declare the "
            f"operator "
            f"with formerly='{lost[0]}'; if it is another operator, start anew in another "
            f"directory, or remove checkpoints/{lost[0]} and edges/{lost[0]} there"
        )


def _begun(path: Place) -> set[str]:
    """Operators that have logged a batch in this folder."""
    return {
        place.name
        for place in (path / "checkpoints").glob("*")
        if any(f.name.isdigit() for f in (place / "offsets").glob("*"))
    }


def rename(path: Path, old: str, new: str) -> None:
    """Give everything of operator ``old`` the name ``new``. The checkpoint comes last: what a crash
    leaves half done is done again by the next start.
    """
    log.warning("operator '%s' goes on with the progress of '%s' in %s", new, old, path)
    _move(path / "edges" / old, path / "edges" / new)
    for manifest in (path / "edges").glob("*/b-*/manifest.json"):
        _move(manifest.parent / f"to.{old}", manifest.parent / f"to.{new}")
        _rewrite(manifest, ("consumed",), old, new)
        _rewrite(manifest, ("delivered", "files"), f"to.{old}", f"to.{new}")
    for logged in (path / "checkpoints").glob("*/offsets/*"):
        if logged.name.isdigit():
            _rename_position(logged, old, new)
    for file in ("replicas.json", "service_times.json"):
        if (path / file).exists():
            _rewrite(path / file, (), old, new)
    _move(path / f"limit.{old}", path / f"limit.{new}")
    _move(path / "checkpoints" / old, path / "checkpoints" / new)


def _move(old: Path, new: Path) -> None:
    if old.exists():
        os.rename(old, new)


def _rewrite(file: Path, members: tuple[str, ...], old: str, new: str) -> None:
    """Rename the key ``old`` of a JSON object, or of some objects in it."""
    content = json.loads(file.read_bytes())
    objects = [content[m] for m in members if m in content] if members else [content]
    if any(old in o for o in objects):
        for o in objects:
            _rename_key(o, old, new)
        replace_file(file, json.dumps(content).encode())


def _rename_key(o: dict[str, Any], old: str, new: str) -> None:
    if old in o:
        o[new] = o.pop(old)


def _rename_position(logged: Path, old: str, new: str) -> None:
    """Rename a producer in the offsets of one batch: the edges' line is the last one. Spark's
    checksum of the file goes, or Spark would refuse the file.
    """
    *before, last = logged.read_text().splitlines()
    try:
        positions = json.loads(last)
    except ValueError:
        return  # a torn log: the start heals or refuses it
    if isinstance(positions, dict) and isinstance(positions.get(old), str):
        _rename_key(positions, old, new)
        logged.with_name(f".{logged.name}.crc").unlink(missing_ok=True)
        replace_file(logged, "\n".join([*before, json.dumps(positions)]).encode())
