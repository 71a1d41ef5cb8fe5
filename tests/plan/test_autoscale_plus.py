"""AUTOSCALE+ against numbers computed by hand."""

from __future__ import annotations

import pytest

from foretide.errors import InvalidConfig, NotReady
from foretide.history import History
from foretide.model import Forecast, Host, Sample, Snapshot
from foretide.plan.autoscale_plus import AutoscalePlus, Interval, estimated_inputs, usable_cpu
from foretide.topology import Operator, Topology

ONE = Topology((Operator("a"),))
CHAIN = Topology((Operator("a"), Operator("b", inputs=("a",))))


def history_of(
    topology: Topology,
    window_s: float = 10.0,
    hosts: tuple[Host, ...] | None = None,
    **samples: Sample,
) -> History:
    history = History(topology)
    history.append(Snapshot(10.0, window_s, samples, hosts))
    return history


def busy(
    replicas: int, utilization: float, et: float = 0.1, backlog: float = 0.0, **more: object
) -> Sample:
    """A window of 10 s in which each replica was busy for this share of it."""
    done = replicas * utilization * 10.0 / et
    return Sample(done, done, backlog, replicas, busy_s=done * et, **more)  # type: ignore[arg-type]


class TestWorkingInterval:
    """10 replicas, beta 0.8: the interval is 8 to 10. 10 s windows, 0.1 s per event: one whole core
    does 100 events in a window.
    """

    def degree(self, rate: float, utilization: float, backlog: float = 0.0) -> int:
        history = history_of(ONE, a=busy(10, utilization, backlog=backlog))
        return AutoscalePlus().plan(ONE, history, {"a": Forecast((rate,))}).replicas["a"]

    def test_above_it_scales_out_to_what_reservations_promise(self) -> None:
        # usable 0.3*1 + 0.3 = 0.6: ideal = 700/(100*0.6) = 11.67 > 10; new = ceil(700/(100*1*0.3))
        # = 24
        assert self.degree(70.0, utilization=0.7) == 24

    def test_at_its_upper_end_nothing_changes(self) -> None:
        # usable 0.3 + 0.35 = 0.65: ideal = 650/65 = 10.0 = k
        assert self.degree(65.0, utilization=0.65) == 10

    def test_inside_it_nothing_changes(self) -> None:
        # usable 0.3 + 0.4 = 0.7: ideal = 600/70 = 8.57
        assert self.degree(60.0, utilization=0.6) == 10

    def test_at_its_lower_end_nothing_changes(self) -> None:
        # usable 0.3 + 0.4 = 0.7: ideal = 560/70 = 8.0 = beta*k
        assert self.degree(56.0, utilization=0.6) == 10

    def test_below_it_scales_in(self) -> None:
        # usable 0.3 + 0.8 -> 1: ideal = 200/100 = 2 < 8; new = ceil(200/30) = 7
        assert self.degree(20.0, utilization=0.2) == 7

    def test_below_it_never_adds_replicas(self) -> None:
        # usable 0.3 + 0.5 = 0.8: ideal = 500/80 = 6.25 < 8, but reservations would ask for 500/30 =
        # 17
        assert self.degree(50.0, utilization=0.5) == 10

    def test_the_backlog_counts(self) -> None:
        # ideal = (200 + 700)/100 = 9 lies inside
        assert self.degree(20.0, utilization=0.2, backlog=700.0) == 10
        # (200 + 900)/100 = 11 > 10; new = ceil(1100/30) = 37
        assert self.degree(20.0, utilization=0.2, backlog=900.0) == 37

    def test_one_replica_stays(self) -> None:
        assert Interval().degree(1, ideal=0.1, reserved=1) == 1


def test_estimates_go_through_the_graph() -> None:
    a = Sample(100, 100, 20, 1, {"b": 50}, busy_s=1.0)
    b = Sample(50, 50, 5, 1, busy_s=1.0)
    history = history_of(CHAIN, a=a, b=b)
    rising = {"a": Forecast((20.0, 30.0)), "b": Forecast((5.0, 5.0))}
    # a: 500 expected and 20 waiting; b: max(100 of its own, 0.5*520 from a) + 5
    assert estimated_inputs(CHAIN, history, rising) == {"a": 520.0, "b": 265.0}
    assert estimated_inputs(CHAIN, history, rising, "min") == {"a": 520.0, "b": 105.0}
    assert estimated_inputs(CHAIN, history, {"a": Forecast((20.0,))}) == {"a": 220.0, "b": 115.0}


def test_a_loop_is_left_to_the_own_estimate() -> None:
    loop = Topology((Operator("a"), Operator("b", inputs=("a", "b"))))
    a = Sample(100, 100, 0, 1, {"b": 100}, busy_s=1.0)
    b = Sample(125, 125, 0, 1, {"b": 25}, busy_s=1.0)
    inputs = estimated_inputs(
        loop, history_of(loop, a=a, b=b), {"a": Forecast((10.0,)), "b": Forecast((12.5,))}
    )
    assert inputs == {"a": 100.0, "b": 125.0}


def test_usable_cpu() -> None:
    assert usable_cpu(used=0.2, reserved=0.5, idle=0.4, sharers=4, weight=0.3) == pytest.approx(
        0.15 + 0.1
    )
    assert usable_cpu(used=0.8, reserved=0.5, idle=0.0, sharers=4, weight=0.3) == pytest.approx(
        0.24
    )
    assert usable_cpu(used=0.0, reserved=1.0, idle=1.0, sharers=1, weight=0.3) == 1.0


def test_the_worst_replica_counts() -> None:
    even = history_of(ONE, a=busy(2, 0.5))
    skewed = history_of(ONE, a=busy(2, 0.5, replica_busy_s=(9.0, 1.0)))
    forecasts = {"a": Forecast((10.0,))}
    # even: usable 0.8, ideal 1.25 < 1.6, reservations ask for 4: stays. Skewed: usable 0.3 + 0.1,
    # ideal 2.5 > 2: 4
    assert AutoscalePlus().plan(ONE, even, forecasts).replicas == {"a": 2}
    assert AutoscalePlus().plan(ONE, skewed, forecasts).replicas == {"a": 4}


def test_hosts_say_how_much_idle_cpu_is_shared() -> None:
    crowded = (Host("h1", 0.9, 2.0, {"a": 0.6, "x": 0.6, "y": 0.6}),)
    history = history_of(ONE, hosts=crowded, a=busy(1, 0.6))
    plan = AutoscalePlus(reserved=0.5).plan(ONE, history, {"a": Forecast((6.0,))})
    # usable 0.3*0.6 + 0.2/3 = 0.2467: ideal = 60/24.67 = 2.43; new = ceil(60/(100*0.5*0.3)) = 4
    assert plan.replicas == {"a": 4}
    assert (
        "2.43 replicas of 0.25 usable cores: above the working interval 0.8 to 1"
        in plan.reasons["a"]
    )


def test_replicas_share_their_host_evenly() -> None:
    hosts = tuple(Host(f"h{i}", 0.5, 2.0, {"a": 1.0}) for i in range(2))
    history = history_of(ONE, hosts=hosts, a=busy(4, 0.5))
    plan = AutoscalePlus().plan(ONE, history, {"a": Forecast((20.0,))})
    # two threads per host use 0.5 each and share 1 idle core: usable 0.3 + 0.5 = 0.8, ideal 200/80
    # = 2.5 < 3.2; 200/30 = 7: stays
    assert "need 2.50 replicas of 0.80 usable cores: below" in plan.reasons["a"]
    assert plan.replicas == {"a": 4}


def test_decides_nothing_while_settling() -> None:
    history = history_of(ONE, a=busy(1, 0.5))
    history.append(Snapshot(20.0, 10.0, {"a": busy(2, 1.0)}))
    forecasts = {"a": Forecast((500.0,))}
    held = AutoscalePlus(settle_s=30).plan(ONE, history, forecasts)
    assert held.replicas == {"a": 2}
    assert held.reasons["a"] == "settling: 0 s since the last change, decides again after 30 s"
    history.ask({"a": 5})
    assert AutoscalePlus(settle_s=30).plan(ONE, history, forecasts).replicas == {"a": 5}
    history.append(Snapshot(50.0, 10.0, {"a": busy(2, 1.0)}))
    assert AutoscalePlus(settle_s=30).plan(ONE, history, forecasts).replicas["a"] > 2


def test_too_little_known() -> None:
    idle = Sample(0, 0, 0, 3, busy_s=0.0)
    assert AutoscalePlus().plan(ONE, history_of(ONE, a=idle), {"a": Forecast((0.0,))}).replicas == {
        "a": 3
    }
    with pytest.raises(NotReady, match="service time is unknown"):
        AutoscalePlus().plan(ONE, history_of(ONE, a=idle), {"a": Forecast((5.0,))})


def test_wrong_constants() -> None:
    with pytest.raises(InvalidConfig, match="weight"):
        AutoscalePlus(weight=1.5)
    with pytest.raises(InvalidConfig, match="combine"):
        AutoscalePlus(combine="mean")  # type: ignore[arg-type]
