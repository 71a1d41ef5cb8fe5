"""One Kafka broker (KRaft, broker and controller in one process) on loopback, for the demo and the
tests.

Needs only Java and the jars that ``scripts/ensure-kafka`` put into the cache folder. The broker is
one process, started and stopped by its process id; its data are in the folder it is given.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from uuid import uuid4

from foretide.errors import InvalidConfig, PipelineFailed

USER, PASSWORD = "foretide", "loopback-only"
"""The account of the listener that asks for credentials."""
START_S = 60.0
STOP_S = 20.0
JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=CONTROLLER://127.0.0.1:{controller},PLAIN://127.0.0.1:{plain},SASL://127.0.0.1:{sasl}
advertised.listeners=PLAIN://127.0.0.1:{plain},SASL://127.0.0.1:{sasl}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAIN:PLAINTEXT,SASL:SASL_PLAINTEXT
inter.broker.listener.name=PLAIN
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
log.dirs={data}
auto.create.topics.enable=false
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=2097152
log.retention.check.interval.ms=1000
log.initial.task.delay.ms=500
controlled.shutdown.enable=false
"""


def jars(folder: str) -> list[Path]:
    """The cached jars of ``broker`` or ``spark``; empty where ``scripts/ensure-kafka`` did not put
    any.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "foretide" / "kafka"
    return sorted((cache / folder).glob("*.jar")) if (cache / "complete").exists() else []


def free_port() -> int:
    """A port on loopback that nothing listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Broker:
    """A broker in ``folder``; use as a context manager, or ``start`` and ``stop``.

    ``servers`` accepts anyone on this machine; ``sasl_servers`` asks for SASL/PLAIN with ``USER``
    and ``PASSWORD``. Both keep their ports over a restart.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ports = {name: free_port() for name in ("plain", "sasl", "controller")}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self._ports['plain']}"

    @property
    def sasl_servers(self) -> str:
        return f"127.0.0.1:{self._ports['sasl']}"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Return when the broker accepts connections; PipelineFailed when it does not come up."""
        if not (found := jars("broker")):
            raise InvalidConfig(
                "the Kafka jars are not in the cache folder: run scripts/ensure-kafka first"
            )
        java = (
            str(Path(os.environ["JAVA_HOME"]) / "bin/java") if "JAVA_HOME" in os.environ else "java"
        )
        command = [java, *JVM, "-cp", os.pathsep.join(map(str, found))]
        properties = self._configure()
        log = self.folder / "broker.log"
        with log.open("ab") as out:
            if not (self.folder / "data" / "meta.properties").exists():
                subprocess.run(
                    [*command, "kafka.tools.StorageTool", "format", "-t", uuid4().hex[:22],
                     "-c", str(properties)],
                    stdout=out, stderr=out, check=False,
                )  # fmt: skip
            # The broker ends with the process that started it, also when that one is killed.
            ends = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
            self._process = subprocess.Popen(
                [*ends, *command, "kafka.Kafka", str(properties)],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
        self._wait(log)

    def _configure(self) -> Path:
        data = self.folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        properties = self.folder / "server.properties"
        properties.write_text(
            PROPERTIES.format(**self._ports, data=data, user=USER, password=PASSWORD)
        )
        return properties

    def _wait(self, log: Path) -> None:
        until = time.monotonic() + START_S
        waiting = {self._ports["plain"], self._ports["sasl"]}
        while waiting:
            for port in list(waiting):
                with socket.socket() as s:
                    s.settimeout(1.0)
                    if s.connect_ex(("127.0.0.1", port)) == 0:
                        waiting.discard(port)
            ended = self._process is None or self._process.poll() is not None
            if waiting and (ended or time.monotonic() > until):
                self.kill()
                last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["no output"]
                raise PipelineFailed(f"the Kafka broker did not start: {last[0]} (see {log})")
            if waiting:
                time.sleep(0.1)

    def stop(self) -> None:
        """End the broker, first by asking."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """End the broker as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
