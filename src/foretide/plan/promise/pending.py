"""Replicas on their way: asked for, not there yet. The planner's own memory of it, since a snapshot
shows only what works.
"""

from __future__ import annotations


class Pending:
    """What was asked for and when it will work, per operator.

    >>> pending = Pending()
    >>> pending.ask("a", running=2, target=5, ready_at=60.0)
    >>> pending.total("a", now=0.0), pending.done_by("a", now=0.0, until=70.0)
    (3, 30.0)
    >>> pending.ask("a", running=2, target=4, ready_at=65.0)
    >>> pending.total("a", now=0.0), pending.total("a", now=60.0)
    (2, 0)
    """

    def __init__(self) -> None:
        self._asked: dict[str, list[tuple[float, int]]] = {}

    def coming(self, name: str, now: float) -> list[tuple[float, int]]:
        left = [(at, n) for at, n in self._asked.get(name, ()) if at > now + 1e-9]
        self._asked[name] = left
        return left

    def total(self, name: str, now: float) -> int:
        return sum(n for _, n in self.coming(name, now))

    def done_by(self, name: str, now: float, until: float) -> float:
        """Replica-seconds that those on their way will have worked by then."""
        return sum(n * max(0.0, until - at) for at, n in self.coming(name, now))

    def ask(self, name: str, running: int, target: int, ready_at: float) -> None:
        """The target is absolute: more is asked for anew, less takes back the youngest first."""
        coming = self._asked.setdefault(name, [])
        more = target - running - sum(n for _, n in coming)
        if more > 0:
            coming.append((ready_at, more))
        while more < 0 and coming:
            at, n = coming.pop()
            if n + more > 0:
                coming.append((at, n + more))
            more += n
