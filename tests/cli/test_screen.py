"""What a run looks like on the terminal."""

from dataclasses import replace

import pytest
from rich.console import Console

from foretide.cli.screen import Screen, line, summary, table
from foretide.journal import Run
from foretide.model import Choice, Decision, Forecast, Latency, Plan, Sample, Snapshot
from foretide.topology import Operator, Topology


@pytest.fixture
def run() -> Run:
    return Run("p", "srea", Topology((Operator("a"),)), 10.0, 100.0, "act", 5.0)


def decided(at: float, replicas: int, arrived: float = 50.0) -> Decision:
    latency = Latency(arrived, 1000, 900, 2000, 3000, arrived)
    sample = Sample(
        arrived, arrived, 3, replicas, busy_s=arrived * 0.5, offered=arrived, latency=latency
    )
    snapshot = Snapshot(at, 10.0, {"a": sample}, latency=latency)
    return Decision(
        at,
        "applied",
        "act",
        snapshot,
        {"a": Forecast((6.0,))},
        plan=Plan({"a": 4}, {"a": "because"}),
    )


def test_a_line_and_a_table_say_load_backlog_replicas_latency_and_why() -> None:
    assert (
        line(decided(110, 3), 100.0)
        == "10 s: change applied; a 5/s, 3 waiting, x3->4; latency p50/p90 0.9 / 2.0 s"
    )
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table(decided(110, 3), 100.0))
    console.file.close()
    shown = console.export_text()
    for word in ("10 s: change applied", "because", "0.9 / 2.0", " 3 ", " 4 "):
        assert word in shown


def test_the_summary_compares_with_static_peak(run: Run) -> None:
    """Needs 3, 1 and 1 replicas (50, 10 and 10 events at 0.5 s in 10 s windows); ran 3, 2 and 1."""
    told = summary(run, [decided(110, 3), decided(120, 2, 10.0), decided(130, 1, 10.0)])
    assert "60 replica-seconds used in 30 s" in told
    assert "static peak provisioning (3 replicas all the time) would have used 90." in told
    # 60 replica-seconds at 266.67 and two stops and routes; 90 replica-seconds
    assert "Cost with every start and stop: 109.1 % of static peak, 9.1 % more." in told
    assert "saved" not in told, "less replica time, but the stops cost more"
    assert "within the target of 5 s" in told
    assert summary(run, []) == "No window was measured."


def test_the_summary_ends_with_what_the_promise_costs(run: Run) -> None:
    """As the planner worked it out last, which is not in every window."""
    first, second, third = (decided(110.0 + 10.0 * i, 3) for i in range(3))
    priced = [
        replace(d, proposed=Plan({"a": 4}, {"": text}, choices=(Choice(0.99, 1.5),)))
        for d, text in ((first, "early"), (second, "99 % would have cost 1.50"))
    ]
    assert summary(run, [*priced, third]).endswith("\nThe promise: 99 % would have cost 1.50.")
    assert "The promise" not in summary(run, [first, second, third])


def test_without_a_terminal_there_is_one_line_per_window(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with Screen() as screen:
        screen.started(run)
        screen.show(decided(110, 3))
        screen.show(Decision(120.0, "failed", "act", error="forecast: [/x] needs foretide[deep]"))
    told = capsys.readouterr().out.strip().splitlines()
    assert len(told) == 3
    assert told[2].endswith("[/x] needs foretide[deep]")  # shown as it is, not read as markup


def test_a_change_that_waits_for_the_batch_is_not_announced_again(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with Screen() as screen:
        screen.started(run)
        screen.show(decided(110, 3))
        screen.show(decided(120, 3))
    first, second = capsys.readouterr().out.splitlines()[1:]
    assert "change applied; a 5/s" in first
    assert "change applied before, takes effect with the next batch; a 5/s" in second
