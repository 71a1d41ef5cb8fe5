"""The live dashboard: reads a journal, serves a page, an API and metrics. Start it next to a loop
with ``serve``.

It knows nothing of the loop: the journal is all it reads, the mode switch next to it all it writes.
"""

import importlib.util

from foretide.errors import missing_extra

if any(importlib.util.find_spec(name) is None for name in ("starlette", "uvicorn")):
    raise missing_extra("web", "the dashboard needs starlette and uvicorn")

from foretide.web.server import serve

__all__ = ["serve"]
