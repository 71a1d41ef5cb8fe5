"""Replacing a file: whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from foretide.files import replace_file


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_is_replaced_and_nothing_else_stays(tmp_path: Path, durable: bool) -> None:
    file = tmp_path / "a.json"
    replace_file(file, b"old", durable=durable)
    replace_file(file, b"new", durable=durable)
    assert (file.read_bytes(), os.listdir(tmp_path)) == (b"new", ["a.json"])


def test_a_failed_write_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.json"
    replace_file(file, b"old")

    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(file, b"new")
    assert (file.read_bytes(), os.listdir(tmp_path)) == (b"old", ["a.json"])
