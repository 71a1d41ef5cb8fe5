"""The file that a learned state is kept in: numbers and text, nothing that runs when it is read.

A state is a dictionary of JSON values in which numpy arrays may stand. The file is an uncompressed
``.npz``: every array is one member, and the member ``state`` is the dictionary as JSON with a
reference in place of each array. It is read with ``allow_pickle=False``.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from foretide.errors import InvalidConfig

State = dict[str, Any]
REFERENCE = "array of this file"
LARGEST_BYTES = 1 << 28
"""What the members of one file may hold in all: a network for each of hundreds of operators."""


def encoded(state: Mapping[str, Any]) -> bytes:
    """The content of the file.

    >>> decoded(encoded({"weight": 0.5, "memory": np.array([1.0, np.nan])}))
    {'weight': 0.5, 'memory': array([ 1., nan])}
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            name = f"a{len(arrays)}"
            arrays[name] = value
            return {REFERENCE: name}
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, Mapping):
            return {str(k): plain(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(v) for v in value]
        return value

    text = json.dumps(plain(state), allow_nan=False)
    file = io.BytesIO()
    np.savez(file, state=np.frombuffer(text.encode(), dtype=np.uint8), **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def decoded(content: bytes) -> State:
    """The state of a file's content. Raises InvalidConfig, whatever is wrong with it."""
    try:
        return _decoded(content)
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise InvalidConfig(f"not a file of a learned state ({error})") from error


def _decoded(content: bytes) -> State:
    with zipfile.ZipFile(io.BytesIO(content)) as members:
        if sum(m.file_size for m in members.infolist()) > LARGEST_BYTES:
            raise ValueError(f"it holds more than {LARGEST_BYTES >> 20} MiB")
    with np.load(io.BytesIO(content), allow_pickle=False) as file:

        def whole(value: Any) -> Any:
            if isinstance(value, dict):
                if value.keys() == {REFERENCE}:
                    return file[value[REFERENCE]]
                return {k: whole(v) for k, v in value.items()}
            return [whole(v) for v in value] if isinstance(value, list) else value

        state = whole(json.loads(file["state"].tobytes()))
    if not isinstance(state, dict):
        raise ValueError("its state is not a dictionary")
    return state
