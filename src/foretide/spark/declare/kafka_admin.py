"""What a Kafka cluster says about topics: through the client inside Spark's own connector, so every
option of a user's cluster (SASL, TLS) works as it does for Spark, and no second client is needed.

Every failure is a sentence; none repeats an option's value, since options hold passwords.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from foretide.errors import InvalidConfig

REQUEST_MS, API_MS = "4000", "8000"
"""How long one request, and one question with all its tries, may take."""


class NoConnector(InvalidConfig):
    """The session has no Kafka classes."""


class Unreachable(InvalidConfig):
    """No broker answers: the next try may succeed."""


class Admin:
    """Asks one cluster. Close it, or use ``admin`` below."""

    def __init__(self, spark: SparkSession, servers: str, options: Mapping[str, str]) -> None:
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._servers = servers
        self._spark_version = spark.version
        properties = self._jvm.java.util.Properties()
        given = {
            "request.timeout.ms": REQUEST_MS,
            "default.api.timeout.ms": API_MS,
            **client_options(options),
            "bootstrap.servers": servers,
        }
        for name, value in given.items():
            properties.put(name, value)
        self._client = self._asked(lambda: self._create(properties))

    def _create(self, properties: JavaObject) -> Any:
        kind = self._jvm.org.apache.kafka.clients.admin.AdminClient
        if not hasattr(kind, "create"):
            raise self._no_connector()
        return kind.create(properties)

    def _no_connector(self) -> NoConnector:
        package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{self._spark_version}"
        return NoConnector(
            "the Spark session has no Kafka connector: start it with "
            f"session(settings={{'spark.jars.packages': '{package}'}})"
        )

    def close(self) -> None:
        self._client.close(self._jvm.java.time.Duration.ofSeconds(1))

    def partitions(self, topic: str) -> int | None:
        """The partitions of a topic; None when there is no such topic."""
        names = self._list([topic])
        try:
            found = self._asked(lambda: self._client.describeTopics(names).allTopicNames().get())
        except LookupError:
            return None
        return int(found.get(topic).partitions().size())

    def offsets(self, topic: str, partitions: int, spec: str = "latest") -> dict[int, int]:
        """The ``latest`` (or ``earliest``) offset of every partition."""
        admin, common = self._jvm.org.apache.kafka.clients.admin, self._jvm.org.apache.kafka.common
        parts = [common.TopicPartition(topic, p) for p in range(partitions)]
        wanted = self._jvm.java.util.HashMap()
        for part in parts:
            wanted.put(part, getattr(admin.OffsetSpec, spec)())
        try:
            found = self._asked(lambda: self._client.listOffsets(wanted).all().get())
        except LookupError:
            raise InvalidConfig(
                f"topic '{topic}' at {self._servers} is gone: create it again, or start the "
                "pipeline anew in another directory"
            ) from None
        return {p: int(found.get(part).offset()) for p, part in enumerate(parts)}

    def _list(self, items: Sequence[Any]) -> Any:
        made = self._jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
        return made

    def _asked(self, ask: Any) -> Any:
        try:
            return ask()
        except Py4JJavaError as error:
            raise self._explained(error.java_exception) from None
        except (Py4JError, TypeError) as error:
            if "JavaPackage" in str(error) or "does not exist in the JVM" in str(error):
                raise self._no_connector() from None
            raise

    def _explained(self, error: JavaObject) -> Exception:
        cause = error
        while cause.getCause() is not None:
            cause = cause.getCause()
        kind = str(cause.getClass().getSimpleName())
        if kind == "UnknownTopicOrPartitionException":
            return LookupError(kind)
        if "Authentication" in kind or "Sasl" in kind or "Login" in kind or "Ssl" in kind:
            return InvalidConfig(
                f"Kafka at {self._servers} refuses the credentials ({kind}): check "
                "security.protocol and the sasl.* and ssl.* options"
            )
        if "Authorization" in kind:
            return InvalidConfig(f"Kafka at {self._servers} does not permit this ({kind})")
        if "Timeout" in kind or "Disconnect" in kind:
            return Unreachable(
                f"no Kafka broker answers at {self._servers}: check the address, that the broker "
                "runs, and security.protocol"
            )
        if kind in ("ConfigException", "IllegalArgumentException"):
            message = str(cause.getMessage() or "")
            if "bootstrap" in message:
                return InvalidConfig(
                    f"'{self._servers}' is not a list of Kafka servers host:port, or no host of it "
                    "can be resolved"
                )
            name = message.partition(" for configuration ")[2].partition(":")[0]
            return InvalidConfig(f"Kafka refuses the option {name or 'that was given'}: check it")
        return InvalidConfig(f"Kafka at {self._servers} answers with {kind}")


@contextmanager
def admin(spark: SparkSession, servers: str, options: Mapping[str, str]) -> Iterator[Admin]:
    """A client for as long as it is needed."""
    client = Admin(spark, servers, options)
    try:
        yield client
    finally:
        client.close()


def client_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options meant for the Kafka client: Spark marks them with a prefix.

    >>> client_options({"kafka.security.protocol": "SASL_SSL", "failOnDataLoss": "false"})
    {'security.protocol': 'SASL_SSL'}
    """
    return {k.removeprefix("kafka."): v for k, v in options.items() if k.startswith("kafka.")}
