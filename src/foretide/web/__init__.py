"""The live dashboard: reads a journal, serves a page, an API and metrics. Start it next to a loop
with ``serve``.

It knows nothing of the loop: the journal is all it reads, the mode switch next to it all it writes.
"""

from foretide.web.server import serve

__all__ = ["serve"]
