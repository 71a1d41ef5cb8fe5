"""Planners by name: one line per method."""

from __future__ import annotations

from foretide.parts import Planner
from foretide.registry import Part, Registry

PLANNERS: Registry[Planner] = Registry(
    "planner",
    (
        Part(
            "foretide",
            "foretide.plan.foretide:Foretide",
            "a share of the events within a latency target, at the least cost",
            "Foretide",
        ),
        Part(
            "static",
            "foretide.plan.static:Static",
            "the same replicas for every operator, always",
            "baseline",
        ),
        Part(
            "static-peak",
            "foretide.plan.clairvoyant:StaticPeak",
            "sized once for the highest window",
            "baseline",
        ),
        Part(
            "static-mean",
            "foretide.plan.clairvoyant:StaticMean",
            "sized once for the mean need",
            "baseline",
        ),
        Part(
            "clairvoyant",
            "foretide.plan.clairvoyant:Clairvoyant",
            "the optimum, told the future; simulator only",
            "the limit",
        ),
        Part(
            "clairvoyant-target",
            "foretide.plan.clairvoyant_target:ClairvoyantTarget",
            "the cheapest schedule that keeps the promise; simulator only",
            "the limit",
        ),
        Part(
            "cost-balance",
            "foretide.plan.cost_balance:CostBalance",
            "the cheap schedule for the forecast windows",
            "BGElasor, CBA",
        ),
        Part(
            "proactive",
            "foretide.plan.cost_balance:SimpleProactive",
            "the larger need of this and the next window",
            "BGElasor, SPEA",
        ),
        Part(
            "pa-sps",
            "foretide.plan.pa_sps:PaSps",
            "forecast and backlog along the graph",
            "PA-SPS, section 3.2",
        ),
        Part(
            "ds2",
            "foretide.plan.baselines:Ds2",
            "target rate over true processing rate",
            "DS2, OSDI 2018",
        ),
        Part(
            "spark-dra",
            "foretide.plan.baselines:SparkDra",
            "Spark's dynamic allocation rule, per operator",
            "Apache Spark",
        ),
        Part(
            "backlog",
            "foretide.plan.baselines:Backlog",
            "one replica per so many waiting events",
            "KEDA's rule",
        ),
        Part(
            "lcp",
            "foretide.plan.baselines:LazyProvisioning",
            "moves only when it must",
            "Lin et al., INFOCOM 2011",
        ),
        Part(
            "drs",
            "foretide.plan.drs:Drs",
            "the fewest replicas whose queueing model meets a latency target",
            "DRS",
        ),
        Part(
            "reactive",
            "foretide.plan.reactive:Reactive",
            "what the last window needed, in the next one",
            "BGElasor, SREA",
        ),
        Part(
            "autoscale-plus",
            "foretide.plan.autoscale_plus:AutoscalePlus",
            "input through the graph against usable CPU, with a working interval",
            "DABS-Storm, section 4",
        ),
        Part(
            "incremental",
            "foretide.plan.incremental:Incremental",
            "one replica up or down on CPU thresholds",
            "DABS-Storm, 7.2",
        ),
        Part(
            "rlearning",
            "foretide.plan.rlearning:RateLearning",
            "a learned table from input rate to degree",
            "DABS-Storm, 7.2",
        ),
        Part(
            "thresholds",
            "foretide.plan.hosts.thresholds:Thresholds",
            "hosts above or below a utilization shed or go",
            "FUGU, IV-A, B",
        ),
        Part(
            "sarsa",
            "foretide.plan.hosts.sarsa:Sarsa",
            "each host learns when to shed and when to go",
            "FUGU, section IV-C",
        ),
        Part(
            "micro-batch",
            "foretide.plan.micro_batch:MicroBatch",
            "slots that keep micro-batches within a latency target",
            "Foretide",
        ),
    ),
)
