"""A live run on the terminal: a table of load, backlog, replicas, latency and reasons, and the
closing summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from foretide.figures.metrics import figures
from foretide.figures.record import RunRecord, end_to_end
from foretide.figures.saving import against_static_peak, saving
from foretide.journal import Run
from foretide.model import Decision, Latency, Outcome
from foretide.quantities import merged_latency
from foretide.wording import percent, plural

OUTCOMES: dict[Outcome, str] = {
    "observed": "no plan due",
    "waiting": "waiting",
    "unchanged": "no change needed",
    "advised": "change advised",
    "applied": "change applied",
    "failed": "failed",
}


def outcome(decision: Decision, before: Decision | None = None) -> str:
    """What came of a decision, in words. One that asks for the same as the step before says so: a
    change takes effect with the next batch, and a long batch takes several steps.
    """
    text = OUTCOMES[decision.outcome]
    if (
        decision.outcome == "applied"
        and before is not None
        and before.outcome == "applied"
        and before.plan is not None
        and decision.plan is not None
        and before.plan.replicas == decision.plan.replicas
    ):
        return f"{text} before, takes effect with the next batch"
    return text


def seconds(latency: Latency | None) -> str:
    """p50 / p90 in seconds, or a dash when nothing left in the window."""
    return "-" if latency is None else f"{latency.p50_ms / 1e3:.1f} / {latency.p90_ms / 1e3:.1f}"


def table(
    decision: Decision, started_at: float = 0.0, before: Decision | None = None
) -> RenderableType:
    """One decision: a row per operator, then the reasons (changes in bold) and any error."""
    title = f"{decision.at - started_at:.0f} s: {outcome(decision, before)}"
    shown = Table(title=title, title_justify="left", box=box.ROUNDED)
    for column in ("operator", "load/s", "forecast/s", "backlog", "replicas", "plan", "latency s"):
        shown.add_column(column, justify="left" if column == "operator" else "right", no_wrap=True)
    lines: list[RenderableType] = [shown]
    snapshot, plan = decision.snapshot, decision.plan
    if snapshot is not None:
        for name, sample in snapshot.samples.items():
            ahead = decision.forecasts.get(name)
            planned = plan.replicas.get(name) if plan else None
            changes = planned is not None and planned != sample.replicas
            shown.add_row(
                name,
                f"{sample.arrived / snapshot.window_s:.0f}",
                f"{ahead.mean[0]:.0f}" if ahead else "",
                f"{sample.backlog:.0f}",
                str(sample.replicas),
                "" if planned is None else str(planned),
                seconds(sample.latency),
                style="bold" if changes else "",
            )
            if plan and (reason := plan.reasons.get(name)):
                lines.append(Text(f"{name}: {reason}", style="bold" if changes else "dim"))
        lines.append(Text(f"end to end, p50 / p90: {seconds(snapshot.latency)} s"))
    if decision.error:
        lines.append(Text(decision.error, style="yellow"))
    return Group(*lines)


class Screen:
    """Redraws the table after every window; plain lines when the output is not a terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console()
        self._live = Live(console=self.console, auto_refresh=False, transient=False)
        self._started_at = 0.0
        self._before: Decision | None = None

    def __enter__(self) -> Screen:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.console.is_terminal:
            self._live.stop()

    def started(self, run: Run) -> None:
        self._started_at = run.started_at
        intro = Text.assemble(
            run.name,
            " runs under ",
            (run.system, "bold"),
            f", one step every {run.window_s:g} s. Press Ctrl-C to stop.",
        )
        self.console.print(intro, soft_wrap=True)

    def show(self, decision: Decision) -> None:
        if self.console.is_terminal:
            self._live.update(table(decision, self._started_at, self._before), refresh=True)
        else:
            text = line(decision, self._started_at, self._before)
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)
        self._before = decision


def line(decision: Decision, started_at: float = 0.0, before: Decision | None = None) -> str:
    """One decision as one line, for logs.

    >>> line(Decision(12.0, "waiting", "act", error="read: too early"))
    '12 s: waiting; read: too early'
    """
    parts = [f"{decision.at - started_at:.0f} s: {outcome(decision, before)}"]
    if (snapshot := decision.snapshot) is not None:
        for name, sample in snapshot.samples.items():
            planned = (
                decision.plan.replicas.get(name, sample.replicas)
                if decision.plan
                else sample.replicas
            )
            change = "" if planned == sample.replicas else f"->{planned}"
            rate = sample.arrived / snapshot.window_s
            parts.append(
                f"{name} {rate:.0f}/s, {sample.backlog:.0f} waiting, x{sample.replicas}{change}"
            )
        parts.append(f"latency p50/p90 {seconds(snapshot.latency)} s")
    if decision.error:
        parts.append(decision.error)
    return "; ".join(parts)


def summary(run: Run, decisions: Sequence[Decision]) -> str:
    """The closing lines: what ran, what it cost and saved or by how much it ran short, and how long
    events took.
    """
    record = RunRecord.of_journal(run, decisions)
    if not record.snapshots:
        return "No window was measured."
    account, result = record.account, figures(record)
    leaving = sum(s.samples[n].processed for s in record.snapshots for n in run.topology.sinks)
    lines = [
        f"{account.replica_seconds:,.0f} replica-seconds used in {account.seconds:,.0f} s; "
        f"{against_static_peak(account, result.slo_share)}",
        f"Replicas changed in {plural(account.adaptations, 'window')}; the last "
        f"{'operator' if len(run.topology.sinks) == 1 else 'operators'} processed "
        f"{plural(leaving, 'event')}.",
    ]
    served = saving(account, result.slo_share).short is None
    if served and result.cost_ratio is not None:
        lines[0] += f" That is {result.cost_ratio:.2f} times the clairvoyant optimum."
    windows = [x for s in record.snapshots if (x := end_to_end(run.topology, s)) is not None]
    if windows and result.latency_mean_ms is not None:
        worst_s = max(x.p90_ms for x in windows) / 1e3
        target_s = run.target_latency_s
        target = "" if target_s is None else f" of {target_s:g} s"
        share = result.slo_share
        within = "" if share is None else f"; {percent(share)} within the target{target}"
        lines.append(
            f"End-to-end latency: mean {result.latency_mean_ms / 1e3:.1f} s, p90 of the worst "
            f"window {worst_s:.1f} s{within}."
        )
    if completed := merged_latency([s.completion for s in record.snapshots]):
        sums = [s.sojourn_sum_s for s in record.snapshots if s.sojourn_sum_s is not None]
        total = f"; sum of sojourns: mean {sum(sums) / len(sums):.1f} s" if sums else ""
        lines.append(
            f"Completion of an input and all that came of it: mean "
            f"{completed.mean_ms / 1e3:.1f} s, p90 {completed.p90_ms / 1e3:.1f} s{total}."
        )
    if record.priced is not None and (sentence := record.priced.reasons.get("")):
        lines.append(f"The promise: {sentence}.")
    return "\n".join(lines)
