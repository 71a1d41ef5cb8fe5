"""The edges' Kafka client on the driver: its options, and the topics it makes, checks and trims.

Every failure is a sentence; none repeats an option's value, since options hold passwords.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType  # type: ignore[attr-defined]

from foretide.errors import InvalidConfig, PipelineFailed
from foretide.spark.edge.kafka_records import Config

log = logging.getLogger(__name__)
ANSWER_S = 8.0
"""How long a start waits for a broker's answer."""
WATCH_S = 5.0
RETRY_S = 0.5
_JAAS = re.compile(r'(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|(\S+?))\s*(?=[;\s])')
_STORES = ("ssl.truststore.location", "ssl.keystore.location")


def client_config(servers: str, options: Mapping[str, str]) -> Config:
    """Options of the edges' client from those of a pipeline: the names that begin with ``kafka.``,
    as they are. A JAAS line becomes user name and password, and a PEM store a PEM file: this client
    reads no others.

    >>> jaas = 'x.PlainLoginModule required username="u" password="p";'
    >>> dict(client_config("a:1", {"kafka.sasl.jaas.config": jaas}))["sasl.password"]
    'p'
    """
    config = {k.removeprefix("kafka."): v for k, v in options.items() if k.startswith("kafka.")}
    if (jaas := config.pop("sasl.jaas.config", None)) is not None:
        for name, quoted, bare in _JAAS.findall(jaas):
            config.setdefault(f"sasl.{name}", re.sub(r"\\(.)", r"\1", quoted) or bare)
        if "sasl.password" not in config:
            raise InvalidConfig(
                "edges on Kafka read a user name and a password from sasl.jaas.config and found "
                "none: give kafka.sasl.username and kafka.sasl.password"
            )
    for name in _STORES:
        kind = config.pop(name.replace("location", "type"), "JKS")
        if name in config and kind != "PEM":
            raise InvalidConfig(
                f"edges on Kafka cannot read the {kind} file of {name}: give PEM files in "
                "kafka.ssl.ca.location, kafka.ssl.certificate.location and kafka.ssl.key.location"
            )
    if (trust := config.pop("ssl.truststore.location", None)) is not None:
        config.setdefault("ssl.ca.location", trust)
    if (key := config.pop("ssl.keystore.location", None)) is not None:
        config.setdefault("ssl.certificate.location", key)
        config.setdefault("ssl.key.location", key)
    return tuple(sorted({**config, "bootstrap.servers": servers}.items()))


class Cluster:
    """Asks and changes one cluster; ``watch`` logs when no broker answers, and when one does."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.servers = dict(config)["bootstrap.servers"]
        self._refused: list[str] = []
        try:
            given: dict[str, Any] = {"log_level": 2, "error_cb": self._on_error, **dict(config)}
            self._admin = AdminClient(given, logger=logging.getLogger(f"{__name__}.client"))
        except KafkaException as error:
            name = re.search(r'property:? "([^"]+)"', str(error.args[0].str()))
            raise InvalidConfig(
                f"the edges' Kafka client refuses the option {name[1] if name else 'given'}: it "
                "takes the names of librdkafka, with kafka. before them"
            ) from None
        self._deleting: dict[Any, Any] = {}
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            self._refused.append(error.name())

    def topics(self, timeout_s: float = ANSWER_S) -> dict[str, int]:
        """Partitions of every topic there is."""
        try:
            listed = self._admin.list_topics(timeout=timeout_s).topics
        except KafkaException:
            self._admin.poll(0)
            if self._refused:
                raise InvalidConfig(
                    f"Kafka at {self.servers} refuses the credentials of the edges "
                    f"({self._refused[0]}): check the sasl.* and ssl.* options"
                ) from None
            raise InvalidConfig(
                f"no Kafka broker answers at {self.servers}: check the address, that the broker "
                "runs, and security.protocol"
            ) from None
        return {name: len(found.partitions) for name, found in listed.items()}

    def ensure(self, wanted: Mapping[str, int]) -> None:
        """Make the topics that are missing; refuse those with too few partitions."""
        there = self.topics()
        for topic, partitions in wanted.items():
            if topic in there and there[topic] < partitions:
                raise InvalidConfig(
                    f"topic {topic} has {there[topic]} partitions, and its operators run on up to "
                    f"{partitions} replicas: add partitions, or lower max_replicas"
                )
        config = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
        new = [NewTopic(t, n, config=config) for t, n in wanted.items() if t not in there]
        for topic, made in (self._admin.create_topics(new) if new else {}).items():
            try:
                made.result(ANSWER_S)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise InvalidConfig(
                        f"topic {topic} cannot be created at {self.servers} "
                        f"({error.args[0].name()}): create it with {wanted[topic]} partitions or "
                        "more, or permit it"
                    ) from None

    def retention_s(self, topic: str) -> float | None:
        """How long a topic keeps records; None: for ever."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        for last in (False, False, True):  # a broker may not know a new topic's settings at once
            try:
                settings = self._admin.describe_configs([resource])[resource].result(ANSWER_S)
                kept_ms = float(settings["retention.ms"].value)
                return None if kept_ms < 0 else kept_ms / 1e3
            except (KafkaException, KeyError, ValueError, TypeError) as error:
                if last:
                    log.warning("the retention of topic %s is not known: %s", topic, error)
                time.sleep(RETRY_S)
        return None

    def delete_up_to(self, topic: str, ends: Mapping[int, int]) -> None:
        """Let the broker remove records before these offsets, some time. What fails is removed with
        a later call.
        """
        if not ends:
            return
        parts = [TopicPartition(topic, p, end) for p, end in ends.items()]
        self._deleting = {k: f for k, f in self._deleting.items() if not f.done()}
        try:
            futures = self._admin.delete_records(parts)
        except KafkaException as error:
            log.debug("records of %s stay for now: %s", topic, error.args[0].name())
            return
        # the client must not be forgotten while its answers are under way
        self._deleting.update({(topic, str(p), id(f)): f for p, f in futures.items()})

    def watch(self) -> None:
        """Ask the cluster now and then until ``close``: the log says when it is away, and when it
        is back.
        """
        self._watcher = threading.Thread(target=self._look, daemon=True, name="foretide-kafka")
        self._watcher.start()

    def _look(self) -> None:
        away = False
        while not self._ended.wait(WATCH_S):
            try:
                self.topics(WATCH_S)
            except InvalidConfig as error:
                if not away:
                    log.warning("%s; the pipeline waits and goes on when it answers", error)
                away = True
                continue
            if away:
                log.warning("Kafka at %s answers again: the pipeline goes on", self.servers)
            away = False

    def close(self) -> None:
        self._ended.set()
        if self._watcher is not None and self._watcher is not threading.current_thread():
            self._watcher.join(2 * WATCH_S)


def topic_name(*parts: str) -> str:
    """A topic's name from the names of its parts; Kafka takes letters, digits, ``.``, ``_``, ``-``.

    >>> topic_name("foretide", "my words", "a", "b")
    'foretide.my-words.a.b'
    """
    name = ".".join(re.sub(r"[^A-Za-z0-9_-]", "-", p) for p in parts)
    if len(name) > 249:
        raise PipelineFailed(
            f"{name[:40]}... is too long for the name of a Kafka topic: use a prefix"
        )
    return name
