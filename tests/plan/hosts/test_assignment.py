"""What a decision about a host becomes: moves, hosts asked for and given back, and what is still on
its way.
"""

from __future__ import annotations

import pytest

from foretide.errors import InvalidConfig, NotReady
from foretide.model import Host, Sample, Snapshot
from foretide.plan.hosts.assignment import HostAssignment, Pending, Rules
from foretide.topology import Operator, Topology

T = Topology(
    (
        Operator("a"),
        Operator("b", inputs=("a",)),
        Operator("c", inputs=("b",)),
        Operator("d", inputs=("c",)),
    )
)


def seen(*hosts: Host, at: float = 0.0) -> Snapshot:
    return Snapshot(at, 5.0, {n: Sample(1, 1, 0, 1, busy_s=1.0) for n in T.names}, hosts)


def host(name: str, **loads: float) -> Host:
    return Host(name, sum(loads.values()), 1.0, loads)


def test_sheds_the_least_load_onto_a_host_with_a_neighbour() -> None:
    fleet = HostAssignment(
        T, seen(host("h1", a=0.5, b=0.4), host("h2", d=0.1), host("h3", c=0.1)), Pending(), Rules()
    )
    assert fleet.shed("h1", "too full")
    plan = fleet.plan()
    assert plan.placement == {"a": ("h1",), "b": ("h3",), "c": ("h3",), "d": ("h2",)}
    assert plan.executors == 3
    assert plan.release == ()
    assert plan.reasons["b"] == "moves from h1 to h3: too full"


def test_asks_for_a_host_when_nobody_has_room_but_never_beyond_the_limit() -> None:
    full = seen(host("h1", a=0.5, b=0.4), host("h2", c=0.5, d=0.05))
    fleet = HostAssignment(T, full, Pending(), Rules())
    assert fleet.shed("h1", "too full")
    plan = fleet.plan()
    assert plan.placement is not None
    assert plan.placement["b"] == ("host-1",)
    assert plan.executors == 3
    limited = HostAssignment(T, full, Pending(), Rules(max_hosts=2))
    assert not limited.shed("h1", "too full")
    assert limited.plan().executors == 2


def test_fills_hosts_up_to_the_upper_threshold_when_no_host_can_be_added() -> None:
    tight = seen(host("h1", a=0.5, b=0.2, c=0.25), host("h2", d=0.55))
    fleet = HostAssignment(T, tight, Pending(), Rules(max_hosts=2))
    assert fleet.shed(
        "h1", "too full"
    )  # 0.35 is to move, b and c: c goes first and fills h2 to 0.8
    assert fleet.plan().placement == {"a": ("h1",), "b": ("h1",), "c": ("h2",), "d": ("h2",)}


def test_gives_a_host_back_only_when_everything_fits_elsewhere() -> None:
    fleet = HostAssignment(
        T, seen(host("h1", a=0.1, b=0.1), host("h2", c=0.35, d=0.1)), Pending(), Rules()
    )
    assert not fleet.release("h1", "idle")  # 0.6 - 0.45 has room for one of them
    assert fleet.plan().release == ()
    fleet = HostAssignment(
        T, seen(host("h1", a=0.1, b=0.1), host("h2", c=0.25, d=0.1)), Pending(), Rules()
    )
    assert fleet.release("h2", "idle")
    plan = fleet.plan()
    assert plan.release == ("h2",)
    assert plan.executors == 1
    assert not fleet.release("h1", "idle")  # the last host stays


def test_a_host_that_was_asked_for_stays_asked_for_until_it_comes_under_any_name() -> None:
    pending = Pending()
    first = HostAssignment(T, seen(host("h1", a=0.5, b=0.4)), pending, Rules())
    first.shed("h1", "too full")
    again = HostAssignment(T, seen(host("h1", a=0.5, b=0.4), at=5.0), pending, Rules())
    assert again.plan().executors == 2
    assert again.plan().placement == {"a": ("h1",), "b": ("host-1",)}
    assert again.deciding == []
    came = HostAssignment(
        T, seen(host("h1", a=0.5, b=0.4), host("executor-7"), at=10.0), pending, Rules()
    )
    assert came.plan().placement == {"a": ("h1",), "b": ("executor-7",)}
    assert came.plan().executors == 2
    assert (
        HostAssignment(
            T, seen(host("h1", a=0.5), host("executor-7", b=0.4), at=39.0), pending, Rules()
        ).deciding
        == []
    )
    rested = HostAssignment(
        T, seen(host("h1", a=0.5), host("executor-7", b=0.4), at=40.0), pending, Rules()
    )
    assert [h.name for h in rested.deciding] == ["h1", "executor-7"]


def test_a_host_that_never_comes_is_given_up() -> None:
    pending = Pending()
    HostAssignment(T, seen(host("h1", a=0.5, b=0.4)), pending, Rules(start_s=60)).shed(
        "h1", "too full"
    )
    later = HostAssignment(T, seen(host("h1", a=0.5, b=0.4), at=60.0), pending, Rules(start_s=60))
    assert later.plan().executors == 1
    assert later.plan().placement == {"a": ("h1",), "b": ("h1",)}


def test_a_leaving_host_is_named_until_it_is_gone_and_takes_nothing() -> None:
    pending = Pending()
    HostAssignment(T, seen(host("h1", a=0.1), host("h2", b=0.2)), pending, Rules()).release(
        "h1", "idle"
    )
    waiting = HostAssignment(
        T, seen(host("h1", a=0.1), host("h2", b=0.2), at=5.0), pending, Rules()
    )
    assert waiting.plan().release == ("h1",)
    assert waiting.plan().placement == {"a": ("h2",), "b": ("h2",)}
    gone = HostAssignment(T, seen(host("h2", a=0.1, b=0.2), at=10.0), pending, Rules())
    assert gone.plan().release == ()


def test_an_only_operator_cannot_be_shed() -> None:
    assert not HostAssignment(T, seen(host("h1", a=0.95)), Pending(), Rules()).shed(
        "h1", "too full"
    )


def test_pending_is_plain_and_comes_back() -> None:
    pending = Pending()
    HostAssignment(T, seen(host("h1", a=0.5, b=0.4)), pending, Rules()).shed("h1", "too full")
    assert Pending.of(pending.state()) == pending


def test_without_hosts_it_is_not_ready() -> None:
    with pytest.raises(NotReady, match="no host is known yet"):
        HostAssignment(T, Snapshot(0.0, 5.0, seen().samples), Pending(), Rules())


def test_thresholds_must_be_in_order() -> None:
    with pytest.raises(InvalidConfig, match="need lower < target < upper"):
        Rules(lower=0.7)
