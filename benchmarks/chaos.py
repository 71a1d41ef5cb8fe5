"""SIGKILL at seeded moments on real Spark: is every event there exactly once?

Runs the pipeline of ``_victim.py`` to its end again and again and kills it on the way: its whole
process group, the JVM, the driver, Python workers or, on Kafka edges, the broker, at moments that
hurt (a batch is logged and not delivered, delivered and not committed, being written, being swept,
written out by a user's writer, while the queries start). The end of a round is left in peace; then
the sinks are counted. Nothing may be lost or doubled.

A cycle is short because drivers are forks of a process that has everything imported, because a
killed driver leaves its JVM, with the batches that were under way, to the next one, and because a
spare JVM is loaded when one is killed.

Usage: python benchmarks/chaos.py [--kills N] [--minutes M] [--seed S] [--durability process|power]
       [--edges directory|kafka]  edges on Kafka start a broker of their own
       [--append FILE]            one JSON line per round; a run with another seed adds to it
       python benchmarks/chaos.py --sum FILE                     what all rounds of a file say
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any

from foretide.demo.broker import Broker

VICTIM = Path(__file__).with_name("_victim.py")
OPERATORS = ("split", "loop", "count", "last")
KINDS = {"driver": 54, "workers": 40, "group": 4, "jvm": 2}
BROKER_KILLS = 10
"""Kills of the broker beside those, on Kafka edges: it starts again, and the pipeline waits."""
MOMENTS = (
    "steps", "steps", "delivered", "delivered", "staging", "swept", "logged", "startup", "writer",
    "state",
)  # fmt: skip
KILLS_PER_ROUND = 30
WORKER_GONE = "one of Spark's Python processes ended"
MOMENT_S, START_S, GRACE_S, LIMIT_S = 4.0, 60.0, 5.0, 600.0
"""How long a moment is waited for once a driver has made progress; a driver may take for that, or
to notice that its JVM is gone; the rest of a round may take.
"""


def family(session: int) -> dict[int, tuple[int, str]]:
    """Living processes of a session: id -> (parent, command line)."""
    alive = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(") ")[2].split()
                command = Path(f"/proc/{entry}/cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            if int(fields[3]) == session and command:
                alive[int(entry)] = int(fields[1]), command
    return alive


def kill(pids: Iterable[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def victim(role: str, errors: IO[bytes]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(VICTIM), role],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "OPENBLAS_NUM_THREADS": "1"},
    )


class Jvm:
    """Spark with its Python workers, in a session of its own."""

    def __init__(self, errors: IO[bytes]) -> None:
        self.process = victim("jvm", errors)
        self._address: dict[str, Any] = {}

    @property
    def address(self) -> dict[str, Any]:
        """Port and secret of its gateway; waits until Spark is loaded."""
        assert self.process.stdout is not None
        while not self._address:
            line = self.process.stdout.readline()
            if line.startswith("{"):
                self._address = json.loads(line)
            elif not line:
                raise RuntimeError("Spark did not start: see the log")
        return self._address

    def workers(self, daemons_too: bool) -> list[int]:
        alive = family(self.process.pid)
        daemons = [p for p, (_, command) in alive.items() if "-m foretide.spark.worker" in command]
        forked = [p for p in daemons if alive[p][0] in daemons]
        return daemons if daemons_too else forked

    def end(self) -> None:
        while left := family(self.process.pid):
            kill(left)
            time.sleep(0.01)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


class Driver:
    """One life of the pipeline's driver."""

    def __init__(self, pid: int, folder: Path) -> None:
        self.pid, self.folder = pid, folder
        self.born = time.monotonic()

    @property
    def alive(self) -> bool:
        return Path(f"/proc/{self.pid}").exists()

    def end(self) -> None:
        kill([self.pid])
        while self.alive:
            time.sleep(0.002)

    def wait(self, limit_s: float) -> None:
        until = time.monotonic() + limit_s
        while self.alive and time.monotonic() < until:
            time.sleep(0.05)

    def verdict(self) -> dict[str, Any]:
        """What it wrote at its end."""
        try:
            text = (self.folder / "verdict.json").read_text()
        except FileNotFoundError:
            return {"failed": "no verdict"}
        return dict(json.loads(text))


class Drivers:
    """The process that forks drivers."""

    def __init__(self, errors: IO[bytes]) -> None:
        self.process = victim("drivers", errors)
        assert self.process.stdout is not None
        if self.process.stdout.readline().strip() != "ready":
            raise RuntimeError("the victim did not start: see the log")

    def start(self, folder: Path, args: argparse.Namespace, jvm: Jvm) -> Driver:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "verdict.json").unlink(missing_ok=True)
        job = {
            "folder": str(folder),
            "events": args.events,
            "durability": args.durability,
            "servers": args.servers,
            **jvm.address,
        }
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return Driver(int(self.process.stdout.readline()), folder)

    def end(self) -> None:
        self.process.communicate()


class Disk:
    """What the files of a pipeline show from outside."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def listed(self, *parts: str) -> list[str]:
        try:
            return os.listdir(self.path.joinpath(*parts))
        except OSError:
            return []

    def newest(self, operator: str) -> int:
        names = self.listed("edges", operator)
        return max((int(n[2:]) for n in names if n.startswith("b-")), default=-1)

    def logged(self, operator: str, kind: str = "offsets") -> int:
        names = self.listed("checkpoints", operator, kind)
        return max((int(n) for n in names if n.isdigit()), default=-1)

    def steps(self) -> int:
        return sum(self.logged(o) + self.logged(o, "commits") for o in OPERATORS)

    def written_at(self) -> int:
        try:
            return os.stat(self.path.parent / "sink.db").st_mtime_ns
        except OSError:
            return 0


def moment_of(kind: str, disk: Disk, rng: random.Random) -> Callable[[], float | None]:
    """A function that says whether the moment has come: seconds to wait then, else None."""
    operator, n = rng.choice(OPERATORS), rng.randint(1, 6)
    steps, newest, written = disk.steps(), disk.newest(operator), disk.written_at()
    last, count = disk.newest("last"), disk.newest("count")
    until = time.monotonic() + rng.uniform(0.1, 6.0)

    def come() -> float | None:
        match kind:
            case "steps" if disk.steps() >= steps + n:
                return rng.random() * 0.3
            case "delivered":  # visible, and Spark has not committed it
                new = disk.newest(operator)
                if new > newest and disk.logged(operator, "commits") < new:
                    return rng.choice([0, 0, 0.002, 0.01, 0.03])
            case "staging" if disk.newest(operator) > newest and any(
                name.startswith(".staging-") for name in disk.listed("edges", operator)
            ):
                return rng.choice([0, 0.05, 0.1, 0.2])
            case "swept" if ".swept" in disk.listed("edges", operator):
                return 0.0
            case "logged" if disk.logged(operator) > max(disk.newest(operator), newest + 1):
                return 0.0
            case "writer" if disk.written_at() != written and disk.newest("last") > last:
                return rng.random() * 0.2
            case "state":
                new = disk.newest("count")
                if new > count and disk.logged("count", "commits") < new:
                    return 0.0
            case "startup" if time.monotonic() > until:
                return 0.0
        return None

    return come


class Round:
    """One pipeline from its start to its end, with kills on the way, as one record."""

    def __init__(self, folder: Path, chaos: Chaos) -> None:
        self.folder, self.chaos = folder, chaos
        self.disk = Disk(folder / "pipeline")
        self.kills: Counter[str] = Counter()
        self.moments: Counter[str] = Counter()
        self.recovery_s: dict[str, list[float]] = {"JVM kept": [], "new JVM": []}
        self.cycle_s: list[float] = []
        self.sentences: Counter[str] = Counter()
        self.unexpected = 0

    @property
    def quiet(self) -> bool:
        """Whether the rest of it is left in peace, to come to its end."""
        return self.chaos.enough or sum(self.kills.values()) >= KILLS_PER_ROUND

    def run(self) -> dict[str, Any]:
        """Lives until one comes to its end; the record."""
        lost_jvm, until = False, None
        while True:
            if self.quiet:
                until = until or time.monotonic() + LIMIT_S
                if time.monotonic() > until:
                    raise RuntimeError(f"the pipeline does not come to its end: {self.folder}")
            before, struck = sum(self.kills.values()), self.chaos.jvm
            driver = self.chaos.drivers.start(self.folder, self.chaos.args, struck)
            try:
                self.life(driver, lost_jvm)
            finally:
                driver.end()
            killed = sum(self.kills.values()) > before
            lost_jvm = self.chaos.jvm is not struck
            verdict = driver.verdict()
            if "lost" in verdict:
                return self.record(verdict)
            sentence = str(verdict["failed"])
            if not killed and not (self.chaos.orphans and WORKER_GONE in sentence):
                self.unexpected += 1
                self.chaos.renew()
            if WORKER_GONE in sentence:
                self.chaos.orphans = max(0, self.chaos.orphans - 1)
            self.sentences[sentence] += 1

    def record(self, verdict: dict[str, Any]) -> dict[str, Any]:
        args = self.chaos.args
        return {
            "seed": args.seed,
            "durability": args.durability,
            "edges": args.edges,
            "kills": dict(self.kills),
            "moments": dict(self.moments),
            **verdict,
            "recovery_s": self.recovery_s,
            "cycle_s": self.cycle_s,
            "sentences": dict(self.sentences),
            "unexpected": self.unexpected,
        }

    def life(self, driver: Driver, lost_jvm: bool) -> None:
        """Kill one driver, its JVM, both, or workers until it ends of it."""
        rng, before, recovered, first = self.chaos.rng, self.disk.steps(), False, not self.kills
        while driver.alive:
            kinds = KINDS | ({"broker": BROKER_KILLS} if self.chaos.broker else {})
            kind = rng.choices(list(kinds), list(kinds.values()))[0]
            moment = rng.choice(MOMENTS)
            come = moment_of(moment, self.disk, rng)
            deadline = time.monotonic() + (MOMENT_S if recovered else START_S)
            while driver.alive:
                if not recovered and self.disk.steps() > before:
                    recovered = True
                    deadline = time.monotonic() + MOMENT_S
                    if not first:
                        taken = time.monotonic() - self.chaos.struck_at
                        self.recovery_s["new JVM" if lost_jvm else "JVM kept"].append(taken)
                if not self.quiet and (wait_s := come()) is not None:
                    time.sleep(wait_s)
                    break
                if not self.quiet and time.monotonic() > deadline:
                    moment = "deadline"
                    break
                time.sleep(0.004 if not self.quiet else 0.1)
            if driver.alive:
                now = time.monotonic()
                self.cycle_s.append(now - self.chaos.struck_at)
                self.chaos.struck_at = now
                if self.strike(driver, kind):
                    print(f"{sum(self.kills.values()) + 1}: {kind}, {moment}", file=sys.stderr)
                    self.kills[kind] += 1
                    self.moments[moment] += 1
                    self.chaos.done += 1

    def strike(self, driver: Driver, kind: str) -> bool:
        """Whether there was something to kill."""
        jvm, rng = self.chaos.jvm, self.chaos.rng
        match kind:
            case "driver":  # its JVM is at work until the next one stops it
                driver.end()
            case "workers":  # the driver ends if one of them had a task
                workers = jvm.workers(daemons_too=rng.random() < 0.25)
                kill(workers)
                self.chaos.orphans = len(workers)
                return bool(workers)
            case "jvm":
                kill(
                    p for p, (_, c) in family(jvm.process.pid).items() if "java" in c[: c.find(" ")]
                )
                driver.wait(GRACE_S)
                driver.end()
                self.chaos.renew()
            case "broker" if self.chaos.broker is not None:
                self.chaos.broker.kill()
                self.chaos.broker.start()
            case "group":
                kill([driver.pid, *family(jvm.process.pid)])
                driver.end()
                self.chaos.renew()
        return True


class Chaos:
    """Rounds until there were enough kills, and the processes that all rounds share."""

    def __init__(self, base: Path, args: argparse.Namespace, broker: Broker | None) -> None:
        self.base, self.args, self.rng = base, args, random.Random(args.seed)
        self.broker = broker
        self.until: float = time.monotonic() + args.minutes * 60
        base.mkdir(parents=True, exist_ok=True)
        self.log = (base / "log").open("ab")
        self.jvm, self.spare = Jvm(self.log), Jvm(self.log)
        self.drivers = Drivers(self.log)
        self.struck_at = time.monotonic()
        self.done = 0
        self.orphans = 0
        """Killed workers that the JVM may still hand a task to: it notices only then."""

    def renew(self) -> None:
        """End what is left of the JVM and take the spare one; another loads meanwhile."""
        self.jvm.end()
        self.jvm, self.spare = self.spare, Jvm(self.log)
        self.orphans = 0

    @property
    def enough(self) -> bool:
        return self.done >= int(self.args.kills) or time.monotonic() > self.until

    def round(self, number: int) -> dict[str, Any]:
        folder = self.base / f"round{number}"
        record = Round(folder, self).run()
        shutil.rmtree(folder, ignore_errors=True)
        return record

    def end(self) -> None:
        self.jvm.end()
        self.spare.end()
        self.drivers.end()
        self.log.close()


def lines(records: list[dict[str, Any]]) -> list[str]:
    """What rounds say together."""

    def median(values: list[float]) -> str:
        return f"{statistics.median(values):.1f} s" if values else "-"

    def total(key: str) -> Counter[str]:
        return sum((Counter(r[key]) for r in records), Counter())

    kills, sentences = total("kills"), total("sentences")
    exact = all(r["state"] and r["writer"] and not r["backlog"] for r in records)
    kinds = Counter(f"on edges {r['edges']}, durability {r['durability']}" for r in records)
    recovery = {
        name: [s for r in records for s in r["recovery_s"][name]]
        for name in ("JVM kept", "new JVM")
    }
    return [
        f"kills {kills.total()} {dict(kills)} at {dict(total('moments'))}",
        f"rounds {len(records)} ({'; '.join(f'{n} {k}' for k, n in kinds.items())}) of "
        f"{sum(r['events'] for r in records)} events: lost {sum(r['lost'] for r in records)}, "
        f"doubled {sum(r['doubled'] for r in records)}; state, writers and backlogs "
        f"{'exact' if exact else 'WRONG'}",
        *(
            f"recovery, from the kill to the first new step, {name}: median {median(values)}, "
            f"longest {max(values, default=0):.1f} s"
            for name, values in recovery.items()
        ),
        f"from kill to kill {median([s for r in records for s in r['cycle_s']])}",
        f"lives that ended without a kill: {sum(r['unexpected'] for r in records)}; what drivers "
        "said at their end:",
        *(f"  {n} times: {text}" for text, n in sentences.most_common()),
    ]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="SIGKILL at seeded moments on real Spark")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--events", type=int, default=1500, help="per round")
    parser.add_argument("--durability", choices=("process", "power"), default="process")
    parser.add_argument("--edges", choices=("directory", "kafka"), default="directory")
    parser.add_argument("--minutes", type=float, default=600.0, help="no kills after this time")
    parser.add_argument("--folder", type=Path, help="keep files here instead of a temporary one")
    parser.add_argument("--append", type=Path, help="add one JSON line per round to this file")
    parser.add_argument("--sum", type=Path, help="only print what the rounds in this file say")
    parser.set_defaults(servers="")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    if args.sum is not None:
        print("\n".join(lines([json.loads(line) for line in args.sum.read_text().splitlines()])))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and no process is left behind
    base = args.folder or Path(tempfile.mkdtemp(prefix="foretide-chaos-"))
    with Broker(base / "broker") if args.edges == "kafka" else nullcontext() as broker:
        if broker is not None:
            args.servers = broker.servers
        records = rounds(base, args, broker)
    if args.folder is None:
        shutil.rmtree(base, ignore_errors=True)
    if any(r["lost"] or r["doubled"] or not r["state"] for r in records):
        sys.exit(1)


def rounds(base: Path, args: argparse.Namespace, broker: Broker | None) -> list[dict[str, Any]]:
    chaos = Chaos(base, args, broker)
    records: list[dict[str, Any]] = []
    try:
        while not chaos.enough:
            records.append(chaos.round(len(records) + 1))
            if args.append is not None:
                with args.append.open("a") as f:
                    f.write(json.dumps(records[-1]) + "\n")
            print("\n".join(lines(records)), flush=True)
    finally:
        chaos.end()
    return records


if __name__ == "__main__":
    main()
