"""HostAssignment: the hosts as a host-level planner sees them, and the plan made of its moves.

Owns what lies between a decision ("this host is overloaded") and a Plan: what moves, where there is
room, which host starts, which is released, and which earlier requests are still pending. The
planner decides when.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from foretide.errors import InvalidConfig, NotReady
from foretide.model import Host, Plan, Snapshot
from foretide.plan.hosts.packing import Bin, Item, first_fit_decreasing
from foretide.plan.hosts.subset_sum import lightest_subset
from foretide.topology import Topology


@dataclass(frozen=True, slots=True)
class Rules:
    """What a user sets (FUGU, section IV), and what the paper leaves open.

    ``lower``, ``upper`` and ``target`` are host utilizations. ``fill`` is how far packing fills a
    host (None: to the target, so that a host that just took operators is not the next one to shed
    them). After a decision a host rests for ``grace_s``. A requested host may take up to
    ``start_s`` to come.
    """

    lower: float = 0.3
    upper: float = 0.8
    target: float = 0.6
    fill: float | None = None
    grace_s: float = 30.0
    start_s: float = 120.0
    max_hosts: int = 10

    def __post_init__(self) -> None:
        if not 0 <= self.lower < self.target < self.upper:
            raise InvalidConfig(
                f"lower {self.lower}, target {self.target}, upper {self.upper}: host utilizations "
                "need lower < target < upper"
            )

    @property
    def level(self) -> float:
        return self.target if self.fill is None else self.fill


@dataclass
class Move:
    """An operator on its way from one host to another, until an instant."""

    operator: str
    source: str
    destination: str
    until: float


@dataclass
class Pending:
    """What was asked and may not have happened yet, by host, each with the instant until which it
    is waited for.
    """

    moves: list[Move] = field(default_factory=list)
    asked: dict[str, float] = field(default_factory=dict)
    leaving: dict[str, float] = field(default_factory=dict)
    resting: dict[str, float] = field(default_factory=dict)
    known: list[str] = field(default_factory=list)

    def state(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Pending:
        return cls(**{**state, "moves": [Move(**m) for m in state.get("moves", ())]})

    def settle(self, snapshot: Snapshot, grace_s: float) -> None:
        """Compare with what runs: a host that came starts its grace, under the name the world gave
        it; what took too long is forgotten, since the snapshot is the truth.
        """
        running = [h.name for h in snapshot.hosts or ()]
        strangers = [n for n in running if n not in self.known and n not in self.asked]
        for name in list(self.asked):
            came = (
                name
                if name in running
                else (strangers.pop(0) if strangers and self.known else None)
            )
            if came is not None:
                self._arrived(name, came, snapshot.at + grace_s)
        self.asked = {n: t for n, t in self.asked.items() if t > snapshot.at}
        self.leaving = {n: t for n, t in self.leaving.items() if n in running and t > snapshot.at}
        self.resting = {n: t for n, t in self.resting.items() if t > snapshot.at}
        self.moves = [m for m in self.moves if m.until > snapshot.at]
        self.known = running

    def _arrived(self, asked: str, came: str, until: float) -> None:
        del self.asked[asked]
        self.resting.pop(asked, None)
        for move in self.moves:
            if move.destination == asked:
                move.destination, move.until = came, until
                self.resting[move.source] = self.resting[came] = until


class HostAssignment:
    """One window's hosts, with pending moves already made; ``shed`` and ``release`` change it,
    ``plan`` returns the result.
    """

    def __init__(
        self, topology: Topology, snapshot: Snapshot, pending: Pending, rules: Rules
    ) -> None:
        if not snapshot.hosts:
            raise NotReady(
                "no host is known yet: this planner places operators on hosts and needs their "
                "utilization"
            )
        pending.settle(snapshot, rules.grace_s)
        self.topology, self.snapshot, self.pending, self.rules = topology, snapshot, pending, rules
        self.hosts = {h.name: h for h in snapshot.hosts}
        self._size = snapshot.hosts[0].capacity
        self._limits = snapshot.hosts[0].limits
        self.pieces: dict[str, dict[str, float]] = {h.name: dict(h.loads) for h in snapshot.hosts}
        for name in pending.asked:
            self.pieces.setdefault(name, {})
        for move in pending.moves:
            if (
                move.operator in self.pieces.get(move.source, {})
                and move.destination in self.pieces
            ):
                self._shift(move.operator, move.source, move.destination)
        self.reasons: dict[str, str] = {}
        self.notes: list[str] = []

    @property
    def staying(self) -> list[str]:
        return [n for n in self.pieces if n not in self.pending.leaving]

    @property
    def deciding(self) -> list[Host]:
        """Hosts that run and do not rest: those a planner may decide about."""
        return [
            self.hosts[n] for n in self.staying if n in self.hosts and n not in self.pending.resting
        ]

    def shed(self, name: str, why: str) -> bool:
        """Move the least load off a host that brings it down to the target. False when that cannot
        be done.

        Where neither the hosts that run nor a new one have room below the fill level, hosts are
        filled up to ``upper``: better than an overloaded one. What found no room stays. A host
        never sheds everything: its largest operator stays then.
        """
        pieces = self.pieces[name]
        capacity = self.hosts[name].capacity
        lightest = list(lightest_subset(pieces, self.used(name) - self.rules.target * capacity))
        if lightest and len(lightest) >= sum(1 for load in pieces.values() if load > 0):
            lightest.remove(max(lightest, key=lambda n: pieces[n]))
        moved = {
            m.operator
            for m in self._move(name, lightest, self.rules.level, why, spares=self._spares())
        }
        moved |= {
            m.operator
            for m in self._move(
                name, [o for o in lightest if o not in moved], self.rules.upper, why
            )
        }
        return bool(moved)

    def release(self, name: str, why: str) -> bool:
        """Place every operator of a host elsewhere and give the host back; False, and nothing
        moves, when one finds no room.
        """
        if len(self.staying) <= 1:
            return False
        if self.pieces[name] and not self._move(
            name, list(self.pieces[name]), self.rules.level, why, whole=True
        ):
            return False
        self.pending.leaving[name] = self._until(self.rules.start_s)
        self.pending.resting[name] = self._until(self.rules.grace_s)
        self.notes.append(f"host '{name}' is given back: {why}")
        return True

    def used(self, name: str) -> float:
        """CPU in use on a host, what no operator accounts for included."""
        host = self.hosts.get(name)
        other = (
            max(0.0, host.utilization * host.capacity - sum(host.loads.values())) if host else 0.0
        )
        return sum(self.pieces[name].values()) + other

    def plan(self) -> Plan:
        """Absolute targets: replicas stay, operators sit where the moves put them."""
        placement: dict[str, list[str]] = {n: [] for n in self.topology.names}
        for host in self.staying:
            for operator in self.pieces[host]:
                if operator in placement:
                    placement[operator].append(host)
        reasons = {
            n: f"stays on {', '.join(on) or 'no known host'}" for n, on in placement.items()
        } | self.reasons
        busy = sum(h.utilization for h in self.hosts.values()) / len(self.hosts)
        reasons[""] = (
            "; ".join(self.notes)
            or f"{len(self.hosts)} hosts at {busy:.2f} on average: nothing to do"
        )
        return Plan(
            {n: max(1, s.replicas) for n, s in self.snapshot.samples.items()},
            reasons,
            executors=len(self.staying),
            placement={n: tuple(on) for n, on in placement.items() if on},
            release=tuple(n for n in self.pending.leaving if n in self.hosts),
        )

    def _until(self, seconds: float) -> float:
        return self.snapshot.at + seconds

    def _shift(self, operator: str, source: str, destination: str) -> None:
        load = self.pieces[source].pop(operator)
        self.pieces[destination][operator] = self.pieces[destination].get(operator, 0.0) + load

    def _spares(self) -> list[Bin]:
        taken = {*self.hosts, *self.pieces}
        fresh = (f"host-{i}" for i in range(1, len(taken) + self.rules.max_hosts + 1))
        names = [n for n in fresh if n not in taken][
            : max(0, self.rules.max_hosts - len(self.staying))
        ]
        return [
            Bin(n, self.rules.level * self._size, self._limits, alone=self._size) for n in names
        ]

    def _bins(self, leaving_out: str, level: float) -> list[Bin]:
        """Room up to a level on the hosts that stay, except on one and on those that are overloaded
        themselves.
        """
        bins = []
        for name in self.staying:
            host = self.hosts.get(name)
            if name == leaving_out or (host and host.utilization > self.rules.upper):
                continue
            capacity, limits = (host.capacity, host.limits) if host else (self._size, self._limits)
            left = {
                r: limit - sum(self._use(o, r) for o in self.pieces[name])
                for r, limit in limits.items()
            }
            free = level * capacity - self.used(name)
            bins.append(Bin(name, free, left, frozenset(self.pieces[name]), alone=capacity))
        return bins

    def _use(self, operator: str, resource: str) -> float:
        return max(
            (h.uses.get(resource, {}).get(operator, 0.0) for h in self.hosts.values()), default=0.0
        )

    def _move(
        self,
        source: str,
        operators: Iterable[str],
        level: float,
        why: str,
        spares: Sequence[Bin] = (),
        whole: bool = False,
    ) -> list[Move]:
        items = [
            Item(
                o,
                self.pieces[source][o],
                {r: self._use(o, r) for r in self._limits},
                frozenset((*self.topology.predecessors(o), *self.topology.successors(o))),
            )
            for o in operators
        ]
        packed = first_fit_decreasing(items, [*self._bins(source, level), *spares])
        if whole and packed.unplaced:
            return []
        moves = []
        for operator, destination in packed.hosts.items():
            starts = destination not in self.pieces or destination in self.pending.asked
            until = self._until(self.rules.start_s if starts else self.rules.grace_s)
            if destination not in self.pieces:
                self.pieces[destination] = {}
                self.pending.asked[destination] = until
                self.notes.append(f"host '{destination}' is asked for: {why}")
            self._shift(operator, source, destination)
            moves.append(Move(operator, source, destination, until))
            for touched in (source, destination):
                self.pending.resting[touched] = max(until, self.pending.resting.get(touched, until))
            self.reasons[operator] = f"moves from {source} to {destination}: {why}"
        self.pending.moves += moves
        return moves
