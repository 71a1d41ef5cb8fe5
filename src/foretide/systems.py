"""Systems by name: which parts, which constants. A system is a declaration; all behaviour is in its
parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from foretide.autoscaler import LONGEST_S, Autoscaler, Cadence
from foretide.errors import unknown
from foretide.forecast import FORECASTERS
from foretide.forecast.conformal import Conformal
from foretide.forecast.pretrained import Pretrained
from foretide.forecast.retrain import SlowLearner, core
from foretide.forecast.stand_in import WithStandIn
from foretide.forecast.warmed import Warmed
from foretide.guards import GUARDS, Guard
from foretide.model import Array, Decision, Mode, Prices
from foretide.parts import Actuator, Forecaster, Planner, Probe, Remembering
from foretide.plan import PLANNERS
from foretide.plan.future import Future
from foretide.topology import Topology

Constants = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class System:
    """A forecaster, a planner, a grouping and guards, each by name with its constants, and when to
    plan.

    ``quantile`` asks for an upper quantile of every forecast (0.95: the truth stays below it in 95
    % of the windows).
    """

    name: str
    summary: str
    source: str
    planner: str
    planner_constants: Constants = field(default_factory=dict)
    forecaster: str = "basic"
    forecaster_constants: Constants = field(default_factory=dict)
    quantile: float | None = None
    grouping: str = "shuffle"
    guards: Mapping[str, Constants] = field(default_factory=dict)
    cadence: Cadence = field(default_factory=Cadence)
    past: tuple[float, ...] = ()
    pretrained: Pretrained | None = None

    def new_planner(self) -> Planner:
        planner = PLANNERS.build(self.planner, **self.planner_constants)
        if self.past and isinstance(planner, Remembering):
            planner.remember(np.array(self.past))
        return planner

    def new_forecaster(self) -> Forecaster:
        if self.pretrained is not None:
            forecaster = self.pretrained.build()
        else:
            forecaster = FORECASTERS.build(self.forecaster, **self.forecaster_constants)
        if isinstance(forecaster, SlowLearner):
            forecaster = WithStandIn(forecaster)
        if self.quantile is not None:
            forecaster = Conformal(forecaster, self.quantile)
        if not self.past:
            return forecaster
        return Warmed(forecaster, np.array(self.past), learned=self.pretrained is not None)

    def acting_forecaster(self) -> Forecaster:
        """The forecaster of a live loop: until it has seen enough, the last rate stands in."""
        forecaster = self.new_forecaster()
        slow = isinstance(core(forecaster), SlowLearner)  # has its stand-in
        return forecaster if slow else WithStandIn(forecaster)

    @property
    def forecasts_as(self) -> str:
        """The same for systems whose forecasters can go on with what each other's learned."""
        parts = {
            "model": self.forecaster,
            "constants": dict(self.forecaster_constants),
            "quantile": self.quantile,
            "past": bool(self.past),
            "pretrained": self.pretrained.digest if self.pretrained else None,
        }
        return repr(parts)

    def new_guards(self, effect_check: bool = False) -> tuple[Guard, ...]:
        """The declared guards in their order, then the effect check where asked for, between an
        operator's own bounds: first, so that the others see what can run, and last.
        """
        declared = [
            GUARDS.build(name, **constants)
            for name, constants in self.guards.items()
            if name != "bounds"
        ]
        if effect_check and "effect" not in self.guards:
            declared.append(GUARDS.build("effect"))
        bounds = GUARDS.build("bounds")
        return (bounds, *declared, bounds) if declared else (bounds,)

    def remembering(self, past: Array) -> System:
        """The system with a planner, where it learns from the load, and with forecasters that know
        the windows before its first: their load, events/s.

        ``levels`` knows no seasons, and a past is there for its seasons: ``auto`` takes its place,
        with the same quantile. The past is the sources' load, so that a system which forecasts
        every operator stays as it is.
        """
        if self.cadence.scope != "sources" or not len(past):
            return self
        remembering = replace(self, past=tuple(map(float, past)))
        if self.forecaster != "levels" or self.pretrained is not None:
            return remembering
        quantile = self.forecaster_constants.get("quantile", 0.98)
        return replace(remembering, forecaster="auto", forecaster_constants={}, quantile=quantile)

    def with_pretrained(self, pretrained: Pretrained) -> System:
        """The system with that forecaster. It learned the load of a source, so that the sources
        are forecast and the other operators' loads follow by the measured flow.
        """
        return replace(
            self,
            forecaster=pretrained.model,
            forecaster_constants=pretrained.constants,
            pretrained=pretrained,
            cadence=replace(self.cadence, scope="sources"),
        )

    def foreseeing(self, future: Future) -> System:
        """The system with its planner told the future, where the planner wants it (baselines of the
        simulator); else itself.
        """
        if "future" not in PLANNERS.constants(self.planner):
            return self
        return replace(self, planner_constants={**self.planner_constants, "future": future})

    def priced(self, prices: Prices) -> System:
        """The system with its planner told the prices, where the planner weighs them and has none
        of its own; else itself.
        """
        if "prices" not in PLANNERS.constants(self.planner) or "prices" in self.planner_constants:
            return self
        cadence = self.cadence
        if cadence.after_lead_s is not None:
            cadence = replace(cadence, after_lead_s=max(min(prices.break_even_s, LONGEST_S), 1e-3))
        return replace(
            self,
            planner_constants={**self.planner_constants, "prices": prices},
            cadence=cadence,
        )

    @property
    def takes_target(self) -> bool:
        """Whether the planner has a latency target."""
        return bool({"target_s", "t_max_s"} & set(PLANNERS.constants(self.planner)))

    @property
    def places_operators(self) -> bool:
        """Whether the planner names the hosts that operators run on."""
        return "max_hosts" in PLANNERS.constants(self.planner)

    @property
    def keeps_promises(self) -> bool:
        """Whether the planner plans for a share of the events within the target."""
        return "share" in PLANNERS.constants(self.planner)

    def promised(self, target_s: float | None, share: float | None = None) -> System:
        """The system with its planner set to a latency target, and to the share of events that
        keep it where the planner has one. None leaves what the system declares; a planner without
        a target is left alone (see ``takes_target``).
        """
        takes = PLANNERS.constants(self.planner)
        changes: dict[str, Any] = {}
        if target_s is not None and "target_s" in takes:
            changes["target_s"] = target_s
        elif target_s is not None and "t_max_s" in takes:
            changes |= {"t_max_s": target_s, "t_min_s": 0.45 * target_s}  # DRS: 450 of 1000 ms
        if share is not None and "share" in takes:
            changes["share"] = share
        return replace(self, planner_constants={**self.planner_constants, **changes})

    def autoscaler(
        self,
        topology: Topology,
        probe: Probe,
        actuator: Actuator,
        mode: Mode | Callable[[], Mode] = "act",
        record: Callable[[Decision], None] | None = None,
        train_beside: bool = False,
        effect_check: bool = False,
        stand_in: bool = False,
    ) -> Autoscaler:
        """The loop of this system between a probe and an actuator. A live one sets ``train_beside``
        (see Autoscaler), with which it also acts before its forecaster has seen enough, as with
        ``stand_in``, and ``effect_check`` (the guard ``effect``); a published system in a
        simulation runs as published.
        """
        acting = train_beside or stand_in
        new_forecaster = self.acting_forecaster if acting else self.new_forecaster
        new_forecaster()  # loads code for seconds, which would make the first window late
        return Autoscaler(
            topology,
            probe,
            self.new_planner(),
            actuator,
            new_forecaster,
            self.new_guards(effect_check),
            self.cadence,
            mode,
            record or (lambda decision: None),
            train_beside=train_beside,
        )


_PA_SPS = Cadence(
    horizon_s=30.0, plan_every_s=30.0, lookback=100, observe_s=1.0
)  # one observation a second, one plan every 30 s (PA-SPS, section 4.1)
_BGELASOR = Cadence(horizon=10, lookback=100, fit_every=250, scope="operators")

_BUILT_IN = (
    System(
        "foretide",
        "a share of the events within a latency target at the least cost, ahead of the lead time",
        "Foretide",
        "foretide",
        forecaster="levels",
        cadence=Cadence(after_lead_s=Prices().break_even_s, lookback=300),
    ),
    System(
        "bgelasor",
        "a recurrent network forecasts every operator, the cheapest way through the forecast is "
        "taken",
        "BGElasor, NPC 2019",
        "cost-balance",
        forecaster="bigru",
        cadence=_BGELASOR,
    ),
    System(
        "pa-sps",
        "forecast load and backlog along the graph, replicas from a pool, load-aware grouping",
        "PA-SPS, JPDC 2024",
        "pa-sps",
        forecaster="ann",
        grouping="load-aware",
        cadence=_PA_SPS,
    ),
    System(
        "psps",
        "PA-SPS without backlog, for half-busy replicas",
        "PSPS, SBAC-PAD 2022",
        "pa-sps",
        {"backlog": False, "utilization": 0.5},
        forecaster_constants={"span": 30},
        cadence=_PA_SPS,
    ),
    System(
        "drs",
        "a queueing network says how few replicas meet a latency target",
        "DRS, IEEE/ACM ToN 2017",
        "drs",
        {"t_max_s": 1.0, "t_min_s": 0.45, "smoothing": 6, "reallocate_after_s": 60.0},
    ),
    System(
        "dabs-storm",
        "AUTOSCALE+: regression through the graph, working interval; online shuffle grouping",
        "DABS-Storm, sections 4 to 6, table 2",
        "autoscale-plus",
        {"weight": 0.3, "beta": 0.8, "combine": "max"},
        forecaster="regression",
        grouping="osg",
        cadence=Cadence(horizon_s=30.0, lookback=3, scope="operators"),
    ),
    System(
        "fugu-local",
        "a host above 0.8 sheds operators, one below 0.3 is given back",
        "FUGU, section IV-A",
        "thresholds",
        {"scope": "local", "lower": 0.3, "upper": 0.8, "target": 0.6, "max_hosts": 10},
    ),
    System(
        "fugu-global",
        "the same thresholds on the mean utilization of all hosts",
        "FUGU, section IV-B",
        "thresholds",
        {"scope": "global", "lower": 0.3, "upper": 0.8, "target": 0.6, "max_hosts": 10},
    ),
    System(
        "fugu-rl",
        "each host learns by SARSA when to shed operators and when to go",
        "FUGU, section IV-C",
        "sarsa",
        {
            "lower": 0.3,
            "upper": 0.8,
            "target": 0.6,
            "impact": 0.2,
            "duration": 80.0,
            "beta": 0.1,
            "max_hosts": 10,
        },
    ),
    System(
        "attach",
        "executors that keep watched queries' micro-batches within a latency target",
        "Foretide",
        "micro-batch",
        {"unit": "executors"},
        forecaster="levels",
        forecaster_constants={"quantile": 0.9},
        cadence=Cadence(after_lead_s=5.0, lookback=300, scope="operators"),
    ),
    System(
        "srea",
        "reactive: the next window gets what the last one needed",
        "BGElasor, section 4.3",
        "reactive",
    ),
    System(
        "spea",
        "proactive: the larger need of the last and of the forecast next window",
        "BGElasor, section 4.3",
        "proactive",
    ),
    System(
        "ds2",
        "target rate through the graph over true processing rate, 70 % busy",
        "DS2, OSDI 2018",
        "ds2",
    ),
    System(
        "lcp",
        "lazy: idle replicas stay until they cost as much as a restart",
        "Lin et al., INFOCOM 2011",
        "lcp",
    ),
    System(
        "incremental",
        "one replica up or down at a time on CPU thresholds",
        "DABS-Storm, section 7.2",
        "incremental",
    ),
    System(
        "rlearning",
        "a table from input rate to degree, learned as it runs",
        "DABS-Storm, section 7.2",
        "rlearning",
    ),
    System(
        "spark-dra",
        "Spark's own dynamic allocation rule, per operator",
        "Apache Spark",
        "spark-dra",
    ),
    System("backlog", "one replica per 1,000 waiting events", "KEDA's rule", "backlog"),
    System("static", "the same replicas for every operator, always", "baseline", "static"),
    System(
        "static-peak", "sized once for the highest window of the load", "baseline", "static-peak"
    ),
    System("static-mean", "sized once for the mean of the load", "baseline", "static-mean"),
    System(
        "clairvoyant",
        "the cheapest schedule, told the future (simulator only)",
        "the limit, ours",
        "clairvoyant",
    ),
    System(
        "clairvoyant-target",
        "the cheapest schedule that keeps the promise, from the future (simulator only)",
        "the limit, ours",
        "clairvoyant-target",
    ),
)

DEFAULT_SYSTEM = "foretide"
"""What a user gets without choosing."""

SYSTEMS: dict[str, System] = {s.name: s for s in _BUILT_IN}


def system(name: str, **changes: Any) -> System:
    """A built-in system, with some of its fields replaced."""
    if name not in SYSTEMS:
        raise unknown("system", name, SYSTEMS)
    return replace(SYSTEMS[name], **changes)
