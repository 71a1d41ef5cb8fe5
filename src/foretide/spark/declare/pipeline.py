"""The pipeline as a user declares it: sources, operators, sinks. Nothing runs here and nothing
touches Spark's JVM.

Owns the declaration and the mistakes that can be seen without Spark; ``wiring`` finds the others
before anything starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from foretide.balance import GROUPINGS
from foretide.errors import InvalidConfig, unknown
from foretide.load import Load
from foretide.spark.declare.generator import Generator
from foretide.spark.declare.kafka import Kafka
from foretide.spark.declare.steps import (
    Input,
    Inputs,
    Kind,
    Sink,
    Source,
    Step,
    check_edges,
    parse_inputs,
)
from foretide.spark.edge.protocol import Durability
from foretide.spark.worker.columns import STAMP
from foretide.topology import Operator, Topology

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Function = TypeVar("Function", bound=Callable[..., Any])


def _check_folder_name(what: str, name: str) -> None:
    """Folders are called after pipelines and their parts."""
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise InvalidConfig(
            f"{what} name {name!r}: a folder is called after it, so it must not be empty, start "
            "with a dot or hold a slash"
        )


class Pipeline:
    """Declares a pipeline; ``start`` runs it. ``durability`` says what a delivered batch survives:
    the end of any process, or with ``"power"`` a power cut as well. With ``edges=kafka(servers)``
    operators hand events on through topics; then ``store`` may be the address of an object store
    (``s3a://bucket/words``) for manifests, checkpoints and replicas.

    An event older than ``timeout_s`` when its turn comes at an operator is dropped (PA-SPS and
    DABS-Storm: 30 s), and so are the oldest events that wait at an operator beyond
    ``queue_limit``. They become dead letters and count as dropped. Functions per event or per
    record batch drop events; DataFrame functions pass all of them on.

    >>> p = Pipeline("words")
    >>> p.source("lines", lambda spark: spark.readStream.format("rate").load())
    >>> @p.operator(inputs="lines", schema="word string", max_replicas=4)
    ... def split(event):
    ...     return [{"word": w} for w in str(event["value"]).split()]
    >>> p.sink("out", inputs="split")
    >>> p.topology().edges, p.topology()["split"].max_replicas
    ((), 4)
    """

    def __init__(
        self,
        name: str,
        trigger_s: float = 2.0,
        sample_every: int = 10,
        durability: Durability = "process",
        edges: Kafka | None = None,
        store: str | None = None,
        timeout_s: float | None = None,
        queue_limit: int | None = None,
    ) -> None:
        if timeout_s is not None and not 0 < timeout_s < float("inf"):
            raise InvalidConfig(f"timeout_s is {timeout_s:g}: give more than 0 seconds, or None")
        if queue_limit is not None and queue_limit < 1:
            raise InvalidConfig(f"queue_limit is {queue_limit}: give 1 event or more, or None")
        if durability not in get_args(Durability):
            raise InvalidConfig(
                f"durability is {durability!r}: give 'process' (a delivered batch survives the end "
                "of any process) or 'power' (and a power cut)"
            )
        _check_folder_name("pipeline", name)
        if store is not None and "://" not in store:
            raise InvalidConfig(
                f"store {store!r} is not the address of a store: write s3a://bucket/folder; a "
                "folder on a disk is given at the start"
            )
        if store is not None and edges is None:
            raise InvalidConfig(
                "edges that are directories need a disk that all machines share, not a store: "
                "declare edges=kafka(servers) as well"
            )
        self.name = name
        self.durability = durability
        self.edges = edges
        self.store = store
        self.timeout_s = timeout_s
        self.queue_limit = queue_limit
        self.trigger_s = trigger_s
        self.sample_every = sample_every
        self.sources: dict[str, Source] = {}
        self.steps: dict[str, Step] = {}
        self.sinks: dict[str, Sink] = {}

    def source(
        self,
        name: str,
        open: Callable[[SparkSession], DataFrame] | Generator | Load | Kafka,  # noqa: A002
        stamp: str | None = None,
    ) -> None:
        """A Kafka topic (``kafka(topic, servers)``); any streaming DataFrame (files, rate, Delta),
        as a function of the session; or a load to generate.
        """
        self._free(name)
        opened = Generator(open) if isinstance(open, Load) else open
        if isinstance(opened, Generator):
            stamp = "at"
        elif isinstance(opened, Kafka):
            opened.need_topic(f"source '{name}'")
            stamp = stamp or STAMP
        self.sources[name] = Source(name, opened, stamp)

    def rescale(self, scale: float = 1.0, speed: float | None = None) -> None:
        """Every generated load with counts times ``scale``, at ``speed`` rows per second of run
        time.
        """
        generated = {n: s.open for n, s in self.sources.items() if isinstance(s.open, Generator)}
        if not generated:
            raise InvalidConfig(
                f"--speed and --scale are for generated loads, and pipeline '{self.name}' reads "
                "none"
            )
        for name, generator in generated.items():
            scaled = replace(generator, load=generator.load.scaled(scale, speed))
            self.sources[name] = replace(self.sources[name], open=scaled)

    def limit_replicas(self, most: int) -> None:
        """No operator has more than ``most`` replicas."""
        for name, step in self.steps.items():
            if step.min_replicas > most:
                raise InvalidConfig(
                    f"operator '{name}' has at least {step.min_replicas} replicas: a pool of "
                    f"{most} is too small"
                )
            self.steps[name] = replace(step, max_replicas=min(most, step.max_replicas))

    def operator(
        self,
        inputs: Inputs,
        schema: str | None = None,
        outputs: Mapping[str, str] | None = None,
        name: str | None = None,
        **settings: Any,
    ) -> Callable[[Function], Function]:
        """A function per event: takes a dict, gives None, a dict or a list of dicts.

        ``schema`` describes what it gives (default: the same columns as it takes). With named
        ``outputs`` (a schema each) it gives pairs ``(output, dict)``. Settings: min_replicas,
        max_replicas, key, cost, grouping, on_error, formerly (its name in earlier runs), edges
        (what its incoming edges are: ``kafka(servers)`` or ``"directory"``, or one of these by
        input).
        """
        return self._declare("events", inputs, schema, outputs, name, settings)

    def batches(
        self,
        inputs: Inputs,
        schema: str | None = None,
        outputs: Mapping[str, str] | None = None,
        name: str | None = None,
        **settings: Any,
    ) -> Callable[[Function], Function]:
        """A function per Arrow record batch: takes one, gives one (or a dict of them, by named
        output).

        Keep the column ``_at`` when rows are dropped or multiplied; otherwise it is carried over.
        """
        return self._declare("batches", inputs, schema, outputs, name, settings)

    def frame(
        self, inputs: Inputs, schema: str | None = None, name: str | None = None, **settings: Any
    ) -> Callable[[Function], Function]:
        """A function DataFrame -> DataFrame: any Spark SQL, joins with static tables, stateful
        aggregation with a watermark.

        A stateful one keeps its state in ``max_replicas`` partitions; replicas say how many tasks
        run them. ``schema`` is only needed inside a loop. Settings: as for operators without
        on_error, and output_mode ("append" or "update").
        """
        if settings.get("on_error", "fail") != "fail":
            raise InvalidConfig(
                "a DataFrame function cannot divert single events: use operator or batches, or "
                "on_error='fail'"
            )
        return self._declare("frame", inputs, schema, None, name, settings)

    def _declare(
        self,
        kind: Kind,
        inputs: Inputs,
        schema: str | None,
        outputs: Mapping[str, str] | None,
        name: str | None,
        settings: Mapping[str, Any],
    ) -> Callable[[Function], Function]:
        valid = (
            "min_replicas",
            "max_replicas",
            "key",
            "cost",
            "grouping",
            "on_error",
            "stateful",
            "output_mode",
            "formerly",
            "edges",
        )
        for setting in settings:
            if setting not in valid:
                raise unknown("operator setting", setting, valid)
            if setting in ("stateful", "output_mode") and kind != "frame":
                raise InvalidConfig(
                    f"'{setting}' is for DataFrame functions, which keep state in Spark: declare "
                    "the operator with frame"
                )
        if settings.get("on_error", "fail") not in ("fail", "divert"):
            raise unknown("on_error", settings["on_error"], ("fail", "divert"))
        if isinstance(grouping := settings.get("grouping"), str):
            traits = GROUPINGS.build(grouping).traits
            if kind == "frame" and traits.wants_reports:
                raise InvalidConfig(
                    f"grouping '{grouping}' needs busy time per replica, which a DataFrame "
                    f"function "
                    "does not tell: use batches"
                )

        def declare(function: Function) -> Function:
            called = name or function.__name__
            self._free(called)
            given: dict[str | None, str | None] = {None: schema}
            if outputs:
                given = {output: outputs[output] for output in outputs}
            step = Step(called, kind, function, parse_inputs(called, inputs), given, **settings)
            check_edges(step)
            Operator(called, (), step.min_replicas, step.max_replicas)
            self.steps[called] = step
            return function

        return declare

    def sink(
        self, name: str, inputs: Inputs, write: Callable[[DataFrame, int], None] | None = None
    ) -> None:
        """Where one operator's events leave the pipeline; see ``Sink``."""
        self._free(name)
        given = parse_inputs(name, inputs)
        if len(given) != 1:
            raise InvalidConfig(
                f"sink '{name}' reads {len(given)} inputs: declare one sink per input"
            )
        if isinstance(write, Kafka):
            write.need_topic(f"sink '{name}'")
            write = replace(write, sink=f"{self.name}.{name}")
        self.sinks[name] = Sink(name, given[0], write)

    def _free(self, name: str) -> None:
        _check_folder_name("part", name)
        if name in self.sources or name in self.steps or name in self.sinks:
            raise InvalidConfig(
                f"pipeline '{self.name}' already has a part named '{name}': names must differ"
            )

    def edge(self, producer: str, reader: str) -> Kafka | None:
        """The Kafka cluster between an operator and one of its readers; None: a directory. Sinks
        and dead letters are what the pipeline declares.

        >>> from foretide.spark import kafka
        >>> p = Pipeline("words")
        >>> _ = p.operator("a", name="b", edges={"a": kafka("broker:9092")})(lambda e: e)
        >>> p.edge("a", "b").servers, p.edge("b", "sink")
        ('broker:9092', None)
        """
        declared = self.steps[reader].edges if reader in self.steps else None
        if isinstance(declared, Mapping):
            declared = declared.get(producer)
        kind = self.edges if declared is None else declared
        return kind if isinstance(kind, Kafka) else None

    def topology(self) -> Topology:
        """The graph of operators, checked. Sources and sinks are not vertices: an operator that
        reads a source is one.
        """
        for name, inputs in [(s.name, s.inputs) for s in self.steps.values()] + [
            (k.name, (k.input,)) for k in self.sinks.values()
        ]:
            for i in inputs:
                self._check_input(name, i)
        return Topology(
            tuple(
                Operator(
                    s.name,
                    tuple(i.producer for i in s.inputs if i.producer in self.steps),
                    s.min_replicas,
                    s.max_replicas,
                    bool(s.stateful),
                    any(i.producer in self.sources for i in s.inputs),
                )
                for s in self.steps.values()
            )
        )

    def _check_input(self, reader: str, given: Input) -> None:
        if given.producer in self.sources:
            if given.output or given.predicate or reader in self.sinks:
                raise InvalidConfig(
                    f"'{reader}' reads source '{given.producer}': an operator reads it, whole; "
                    "filter there"
                )
            return
        if given.producer not in self.steps:
            known = ", ".join((*self.sources, *self.steps))
            raise InvalidConfig(
                f"'{reader}' reads from '{given.producer}', which does not exist; known: {known}"
            )
        outputs = self.steps[given.producer].outputs
        if given.output not in outputs:
            named = ", ".join(str(o) for o in outputs if o)
            hint = (
                f"write '{given.producer}:NAME' with one of: {named}"
                if named
                else "it has one output, without a name"
            )
            raise InvalidConfig(
                f"'{reader}' reads output '{given.output}' of '{given.producer}', which does not "
                f"exist; {hint}"
            )
