"""PA-SPS: replicas for the forecast load and for what still waits, everywhere along the graph. PSPS
is its older variant.
"""

from __future__ import annotations

from collections.abc import Mapping

from foretide.errors import InvalidConfig, NotReady
from foretide.history import History
from foretide.model import Forecast, Plan
from foretide.plan.flow import Flow
from foretide.plan.need import known_service_time_s, need
from foretide.topology import Topology
from foretide.wording import plural


class PaSps:
    """``r_i = clamp(ceil((received_i + queued_i) * et_i / span), 1, pool)`` (PA-SPS, section 3.2,
    equations 2 to 7).

    ``received_i`` are the forecast events of the next planning window (the sum over the horizon)
    that reach i through the measured shares; ``queued_i`` are those that wait at i and those
    upstream that will still reach it; ``span`` is the planning window in seconds: horizon times
    window. ``pool`` is the number of replicas each operator owns (None: its own maximum). The
    variant PSPS leaves the backlog out (``backlog=False``) and plans for half-busy replicas
    (``utilization=0.5``).
    """

    monotone = True

    def __init__(
        self, pool: int | None = None, backlog: bool = True, utilization: float = 1.0
    ) -> None:
        if not 0 < utilization <= 1:
            raise InvalidConfig(f"utilization {utilization}: need 0 < utilization <= 1")
        self.pool, self.backlog, self.utilization = pool, backlog, utilization

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        flow = Flow.measured(topology, history)
        missing = [n for n in topology.sources if n not in forecasts]
        if missing:
            raise NotReady(
                f"no forecast for {', '.join(missing)}: PA-SPS needs one for every source"
            )
        horizon = min(forecasts[n].horizon for n in topology.sources)
        window_s = history.window_s
        span = horizon * window_s
        received = flow.through(
            {n: sum(forecasts[n].mean[:horizon]) * window_s for n in topology.sources}
        )
        queued = flow.through(
            {n: history.backlog(n) for n in topology.names} if self.backlog else {}
        )
        replicas, reasons = {}, {}
        for name in topology.names:
            work = received[name] + queued[name]
            if work <= 0:
                replicas[name], reasons[name] = 1, f"0 events expected in {span:.0f} s and 0 queued"
                continue
            service_time_s = known_service_time_s(history, name)
            pool = self.pool or topology[name].max_replicas
            wanted = need(work / span, service_time_s / self.utilization)
            replicas[name] = min(wanted, pool)
            limit = f" of at most {pool}" if wanted <= pool else f", the maximum is {pool}"
            reasons[name] = (
                f"{received[name]:.0f} events expected in {span:.0f} s and {queued[name]:.0f} "
                "queued, "
                f"at {service_time_s * 1e3:.2f} ms each, need {plural(wanted, 'replica')}{limit}"
            )
        return Plan(replicas, reasons)
