"""Small files that are replaced whole: a reader sees the old content or the new, never half."""

from __future__ import annotations

import os
import threading
from pathlib import Path


def replace_file(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write ``data`` to a temporary file beside ``path`` and rename it over ``path``.

    The temporary name is unique per process and thread, so concurrent writers never mix. With
    ``durable`` the data and then the folder are synced, so the file also survives a power cut.
    Raises OSError; the old file is then unchanged and the temporary file is gone.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "state.json"
    ...     replace_file(file, b"1")
    ...     replace_file(file, b"2")
    ...     file.read_bytes(), len(os.listdir(folder))
    (b'2', 1)
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.new")
    try:
        with open(temporary, "wb") as f:
            f.write(data)
            if durable:
                f.flush()
                os.fsync(f.fileno())
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
