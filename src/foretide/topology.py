"""Operators and the checked graph they form: splits, joins and loops.

Owns the shape of a pipeline, not what flows through it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from foretide.errors import InvalidTopology


@dataclass(frozen=True, slots=True)
class Operator:
    """One vertex of a topology, with a queue and replicas of its own.

    ``inputs`` names the operators whose output it consumes (loops are allowed). An operator without
    inputs is a source; one inside a loop that is also fed from outside needs
    ``source=True``.
    """

    name: str
    inputs: tuple[str, ...] = ()
    min_replicas: int = 1
    max_replicas: int = 32
    stateful: bool = False
    source: bool = False

    def __post_init__(self) -> None:
        plain = self.name.replace("-", "_").replace(".", "_")
        if not plain.isidentifier() or self.name.startswith("."):
            raise InvalidTopology(
                f"operator name {self.name!r} must be letters, digits, '-', '_' or '.', not "
                "starting with a digit or a dot"
            )
        if not 1 <= self.min_replicas <= self.max_replicas:
            raise InvalidTopology(
                f"operator '{self.name}' has min_replicas {self.min_replicas} and max_replicas "
                f"{self.max_replicas}: "
                "need 1 <= min_replicas <= max_replicas"
            )
        if len(set(self.inputs)) != len(self.inputs):
            raise InvalidTopology(
                f"operator '{self.name}' lists an input twice: {', '.join(self.inputs)}"
            )


@dataclass(frozen=True)
class Topology:
    """A checked graph of operators: splits, joins and loops allowed.

    >>> t = Topology((Operator("parse"), Operator("count", inputs=("parse",))))
    >>> t.sources, t.sinks, t.edges
    (('parse',), ('count',), (('parse', 'count'),))
    """

    operators: tuple[Operator, ...]

    def __post_init__(self) -> None:
        names = [o.name for o in self.operators]
        if not names:
            raise InvalidTopology("a topology needs at least one operator")
        for name in names:
            if names.count(name) > 1:
                raise InvalidTopology(f"two operators are named '{name}': names must differ")
        for o in self.operators:
            for p in o.inputs:
                if p not in names:
                    raise InvalidTopology(
                        f"operator '{o.name}' reads from '{p}', which does not exist; known: "
                        f"{', '.join(names)}"
                    )
        if not self.sources:
            raise InvalidTopology(
                "no operator of this topology is a source: give one no inputs or source=True"
            )
        reached = self._reached()
        lost = [n for n in names if n not in reached]
        if lost:
            raise InvalidTopology(
                f"no events can reach {', '.join(lost)}: connect to a source or mark source=True"
            )

    def _reached(self) -> set[str]:
        reached, frontier = set(self.sources), list(self.sources)
        while frontier:
            for n in self.successors(frontier.pop()):
                if n not in reached:
                    reached.add(n)
                    frontier.append(n)
        return reached

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(o.name for o in self.operators)

    @cached_property
    def _by_name(self) -> dict[str, Operator]:
        return {o.name: o for o in self.operators}

    def __getitem__(self, name: str) -> Operator:
        return self._by_name[name]

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Operators that events reach from outside."""
        return tuple(o.name for o in self.operators if o.source or not o.inputs)

    @cached_property
    def sinks(self) -> tuple[str, ...]:
        """Operators without consumers (a self-loop does not count as a consumer)."""
        fed = {p for o in self.operators for p in o.inputs if p != o.name}
        return tuple(n for n in self.names if n not in fed)

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """(producer, consumer) pairs in the order of the operators."""
        return tuple((p, o.name) for o in self.operators for p in o.inputs)

    def predecessors(self, name: str) -> tuple[str, ...]:
        return self._by_name[name].inputs

    @cached_property
    def _successors(self) -> dict[str, tuple[str, ...]]:
        return {n: tuple(o.name for o in self.operators if n in o.inputs) for n in self.names}

    def successors(self, name: str) -> tuple[str, ...]:
        return self._successors[name]

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Upstream before downstream; loop-closing edges (found depth-first from the sources) are
        ignored.
        """
        done: dict[str, None] = {}
        open_: set[str] = set()

        def visit(name: str) -> None:
            stack = [(name, iter(self.successors(name)))]
            open_.add(name)
            while stack:
                here, following = stack[-1]
                step = next((n for n in following if n not in done and n not in open_), None)
                if step is None:
                    stack.pop()
                    done[here] = None
                else:
                    open_.add(step)
                    stack.append((step, iter(self.successors(step))))

        for s in reversed(self.sources):
            if s not in done:
                visit(s)
        return tuple(reversed(done))

    @cached_property
    def has_loop(self) -> bool:
        place = {n: i for i, n in enumerate(self.order)}
        return any(place[p] >= place[c] for p, c in self.edges)
