"""Flink's autoscaler by its own code, beside foretide: org.apache.flink:flink-autoscaler 1.10.0.

The jars come from Maven Central by the coordinates and checksums in flink/jars.txt and are kept in
the user's cache folder; flink/TwinScaler.java is compiled against them. Window by window the twin's
measurements go to Flink's evaluator (ScalingMetricEvaluator) and scaler (ScalingExecutor,
JobVertexScaler), and the parallelisms that they decide go back into the twin.

Settings: Flink's defaults (utilization 0.7 within 0.4 to 1.0), but for intervals that are made for
hours: metrics window 15 s (default 15 min), stabilization none (5 min), scale-down interval 60 s
(1 h), catch-up 60 s (30 min), and the restart time is the lead time (5 min). What queues between
operators counts as the source's lag: Flink's back-pressure would keep it there. Replicas change
without a restart, which is kinder than Flink is.

    python benchmarks/flink_peer.py TRACES --loads dns-zeek,ticks
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from foretide.figures.metrics import figures
from foretide.history import History
from foretide.model import Forecast, Plan
from foretide.parts import Planner
from foretide.sim.compare import Scenario, simulate
from foretide.systems import System, system
from foretide.topology import Topology

sys.path.insert(0, str(Path(__file__).parent))
import frontier

HERE = Path(__file__).parent / "flink"
CENTRAL = "https://repo1.maven.org/maven2"
SETTINGS_S = {"metrics window": 15, "scale-down interval": 60, "catch-up": 60}


def jars() -> list[Path]:
    """The pinned jars, fetched where they are missing; a wrong checksum is an error."""
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    cache = home / "foretide" / "flink"
    cache.mkdir(parents=True, exist_ok=True)
    found = []
    for line in (HERE / "jars.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        checksum, coordinates = line.split()
        group, artifact, version = coordinates.split(":")
        jar = cache / f"{artifact}-{version}.jar"
        if not jar.exists():
            folder = f"{group.replace('.', '/')}/{artifact}/{version}"
            with urllib.request.urlopen(f"{CENTRAL}/{folder}/{jar.name}", timeout=60) as answer:
                content = answer.read()
            if hashlib.sha256(content).hexdigest() != checksum:
                raise SystemExit(f"{jar.name} does not have the pinned checksum: nothing was kept")
            jar.write_bytes(content)
        elif hashlib.sha256(jar.read_bytes()).hexdigest() != checksum:
            raise SystemExit(f"{jar} does not have the pinned checksum: delete it and run again")
        found.append(jar)
    return found


class Flink:
    """A planner whose decisions are made by Flink's classes in a Java process of its own."""

    def __init__(self, classpath: str, lead_s: float, topology: Topology, most: int) -> None:
        self.names = topology.names
        settings = [str(s) for s in SETTINGS_S.values()]
        self.java = subprocess.Popen(
            [
                *("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", classpath),
                *("org.apache.flink.autoscaler.TwinScaler", str(len(self.names)), str(most)),
                *(settings[0], str(round(lead_s)), *settings[1:]),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.total = {n: [0.0, 0.0, 0.0] for n in self.names}

    def plan(self, topology: Topology, history: History, forecasts: Mapping[str, Forecast]) -> Plan:
        latest = history.latest
        cells = [round(latest.at * 1000)]
        lag = sum(s.backlog for s in latest.samples.values())
        for name in self.names:
            sample = latest.samples[name]
            busy_s, total = sample.busy_s or 0.0, self.total[name]
            total[0] += sample.processed
            total[1] += sum(sample.emitted.values()) if sample.emitted else sample.processed
            total[2] += busy_s * 1000
            load = min(1.0, busy_s / latest.window_s / max(1, sample.replicas))
            cells += [*total, load, lag, sample.replicas]  # type: ignore[list-item]
        assert self.java.stdin
        assert self.java.stdout
        self.java.stdin.write(" ".join(map(str, cells)) + "\n")
        self.java.stdin.flush()
        decided = self.java.stdout.readline().split()
        if len(decided) != len(self.names):
            raise RuntimeError("Flink's process gave no answer: see its error above")
        return Plan({n: int(k) for n, k in zip(self.names, decided, strict=True)})

    def close(self) -> None:
        assert self.java.stdin
        self.java.stdin.close()
        self.java.wait(timeout=30)


class Peer(System):
    """A system whose planner exists already."""

    planner_object: Planner

    def new_planner(self) -> Planner:
        return Peer.planner_object


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("traces", type=Path)
    parser.add_argument("--loads", default="dns-zeek,ticks,twitter-raw,pasps-log,azure-llm")
    parser.add_argument("--leads", default="0,10,60", help="seconds")
    asked = parser.parse_args()
    if not asked.traces.is_dir():
        print(f"{asked.traces} is not a folder: the recorded loads are not here, nothing to do")
        return
    with tempfile.TemporaryDirectory(prefix="foretide-flink-") as compiled:
        path = os.pathsep.join(map(str, jars()))
        source = str(HERE / "TwinScaler.java")
        subprocess.run(["javac", "-cp", path, "-d", compiled, source], check=True)
        classpath = os.pathsep.join([path, compiled])
        print("| load | lead s | Flink's autoscaler | foretide |", "|---|---|---|---|", sep="\n")
        for name in asked.loads.split(","):
            compare(asked.traces, name, tuple(map(float, asked.leads.split(","))), classpath)


def compare(traces: Path, name: str, leads_s: tuple[float, ...], classpath: str) -> None:
    load, app = frontier.trace(traces, name), frontier.chain()
    least = None
    for lead_s in leads_s:
        case = Scenario(app, load, frontier.WINDOW_S, engine="fluid", lead_s=lead_s)
        least = least or case.target_cost() or 1.0
        flink = Flink(classpath, lead_s, app.topology, 400)
        Peer.planner_object = flink
        cells = []
        try:
            for which in (Peer("flink", "Flink's autoscaler", "Flink", "ds2"), system("foretide")):
                found = figures(simulate(case, which))
                cells.append(f"{found.slo_share or 0:.1%} at {(found.cost or 0) / least:.2f}")
        finally:
            flink.close()
        print(f"| {name} | {lead_s:g} | {cells[0]} | {cells[1]} |", flush=True)


if __name__ == "__main__":
    main()
