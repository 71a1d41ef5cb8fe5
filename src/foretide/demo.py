"""The demo: the loop on a scripted world, as a live table of load, forecast, replicas and reasons."""

from __future__ import annotations

import math
import threading

from rich.console import Console
from rich.live import Live
from rich.table import Table

from foretide.model import Decision
from foretide.systems import system
from foretide.testing import ScriptedWorld
from foretide.topology import Operator, Topology

CHAIN = Topology(
    (
        Operator("parse"),
        Operator("spam", inputs=("parse",)),
        Operator("topic", inputs=("spam",)),
        Operator("store", inputs=("topic",)),
    )
)
SERVICE_TIME_S = {"parse": 0.02, "spam": 0.04, "topic": 0.03, "store": 0.02}
WINDOW_S = 10.0


def load(at: float) -> float:
    """Two humps and a burst, events/s."""
    return 40 + 120 * max(0.0, math.sin(at / 95)) + (150 if 380 <= at < 420 else 0)


def show(decision: Decision) -> Table:
    """One decision as a table: a row per operator."""
    table = Table(title=f"second {decision.at:.0f}: {decision.outcome}", title_justify="left")
    for column in ("operator", "load/s", "forecast/s", "backlog", "replicas", "plan", "why"):
        table.add_column(column, justify="left" if column in ("operator", "why") else "right")
    if decision.snapshot is None or decision.plan is None:
        return table
    for name, sample in decision.snapshot.samples.items():
        ahead = decision.forecasts.get(name)
        table.add_row(
            name,
            f"{sample.arrived / decision.snapshot.window_s:.0f}",
            f"{ahead.mean[0]:.0f}" if ahead else "",
            f"{sample.backlog:.0f}",
            str(sample.replicas),
            str(decision.plan.replicas[name]),
            decision.plan.reasons.get(name, ""),
        )
    return table


def run(system_name: str, windows: int, pace_s: float) -> None:
    """Drive the loop for ``windows`` windows; Ctrl-C ends it with the same summary."""
    console = Console()
    world = ScriptedWorld(CHAIN, SERVICE_TIME_S, load, WINDOW_S)
    loop = system(system_name).autoscaler(CHAIN, world, world)
    stop = threading.Event()
    used = changes = 0
    console.print(f"[bold]{system_name}[/] scales a four-operator pipeline, one step per {WINDOW_S:.0f} s window.")
    try:
        with Live(console=console, refresh_per_second=10) as live:
            for i in range(1, windows + 1):
                decision = loop.step(i * WINDOW_S)
                used += sum(world.replicas.values())
                changes += decision.outcome == "applied"
                live.update(show(decision))
                stop.wait(pace_s)
    except KeyboardInterrupt:
        console.print("stopped.")
    peak = sum(max(world.needed(n, i * WINDOW_S) for i in range(1, windows + 1)) for n in CHAIN.names) * windows
    console.print(
        f"{used} replica-windows used; static peak provisioning would have used {peak} "
        f"({1 - used / peak:.0%} saved); {changes} changes."
    )
