"""SIGKILL at seeded moments on real Spark: is every event there exactly once?

Runs the pipeline of ``_victim.py`` to its end again and again and kills it on the way: the whole
process group, the driver, the JVM or the Python workers, at moments that hurt (a batch is logged
and not delivered, delivered and not committed, being written, being swept, written out by a user's
writer, while the queries start). A spare driver with Spark loaded waits, so that a cycle is short.
Prints kills, lost, doubled and the time to recover. Nothing may be lost or doubled. Usage:
python benchmarks/chaos.py [--kills N] [--seed S] [--durability process|power] [--minutes M]
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

VICTIM = Path(__file__).with_name("_victim.py")
OPERATORS = ("split", "loop", "count", "last")
KINDS = {"group": 70, "driver": 12, "jvm": 9, "workers": 9}
MOMENTS = (
    "steps", "steps", "delivered", "delivered", "staging", "swept", "logged", "startup", "writer",
    "state",
)  # fmt: skip


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


def kill(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


class Driver:
    """One life of the victim, in a session of its own."""

    def __init__(self, folder: Path, events: int, durability: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.born = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, str(VICTIM), str(folder), str(events), durability],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / "log").open("ab"),
            text=True,
            start_new_session=True,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )
        self.gone_at = 0.0

    def wait_ready(self) -> float:
        """Seconds until Spark was loaded."""
        assert self.process.stdout is not None
        while (line := self.process.stdout.readline().strip()) != "ready":
            if not line and self.process.poll() is not None:
                raise RuntimeError("the victim did not start: see its log")
        return time.monotonic() - self.born

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        self.gone_at = time.monotonic()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        """Kill all that is left of it."""
        while left := family(self.process.pid):
            kill(list(left))
            time.sleep(0.01)
        self.process.wait()

    def verdict(self) -> dict[str, Any]:
        out = self.process.communicate(timeout=600)[0]
        lines = [line for line in out.splitlines() if line.startswith("{")]
        return dict(json.loads(lines[-1])) if lines else {"failed": "no verdict"}


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


def strike(driver: Driver, kind: str, rng: random.Random) -> None:
    """Kill some of a driver's processes; then, where it lives on for a while, the rest."""
    alive = family(driver.process.pid)
    jvm = [p for p, (_, command) in alive.items() if "java" in command.split(" ")[0]]
    daemons = [p for p, (_, command) in alive.items() if "worker.daemon" in command]
    workers = [p for p, (parent, _) in alive.items() if parent in daemons]
    if kind == "driver":  # its JVM and workers may still be at work while the next one starts
        kill([driver.process.pid])
        driver.process.wait()
        return
    if kind in ("jvm", "workers"):
        kill(jvm if kind == "jvm" else (workers if rng.random() < 0.5 else workers + daemons))
        until = time.monotonic() + 2.0
        while driver.alive and time.monotonic() < until:
            time.sleep(0.01)
    driver.end()


class Chaos:
    """Rounds of the victim with kills, until there were enough of them."""

    def __init__(self, base: Path, args: argparse.Namespace) -> None:
        self.base, self.args, self.rng = base, args, random.Random(args.seed)
        self.kills: Counter[str] = Counter()
        self.moments: Counter[str] = Counter()
        self.ready_s: list[float] = []
        self.recovery_s: list[float] = []
        self.cycle_s: list[float] = []
        self.verdicts: list[dict[str, Any]] = []
        self.failures: list[str] = []
        self.drivers: list[Driver] = []
        self.until = time.monotonic() + args.minutes * 60

    @property
    def enough(self) -> bool:
        return sum(self.kills.values()) >= self.args.kills or time.monotonic() > self.until

    def round(self, number: int) -> None:
        folder = self.base / f"round{number}"
        spare = self.driver(folder)
        try:
            while True:
                driver = spare
                self.ready_s.append(driver.wait_ready())
                if not self.enough:
                    spare = self.driver(folder)
                if self.life(driver, Disk(folder / "pipeline")):
                    break
                if spare is driver:
                    spare = self.driver(folder)
        finally:
            while self.drivers:
                self.drivers.pop().end()
        shutil.rmtree(folder, ignore_errors=True)

    def driver(self, folder: Path) -> Driver:
        self.drivers.append(Driver(folder, self.args.events, self.args.durability))
        return self.drivers[-1]

    def life(self, driver: Driver, disk: Disk) -> bool:
        """Run one life; True when it came to its end."""
        kind = self.rng.choices(list(KINDS), list(KINDS.values()))[0]
        moment = self.rng.choice(MOMENTS)
        come, before = moment_of(moment, disk, self.rng), disk.steps()
        driver.go()
        deadline, recovered = time.monotonic() + 45, False
        while driver.alive:
            if not recovered and disk.steps() > before:
                recovered = True
                self.recovery_s.append(time.monotonic() - driver.gone_at)
            if not self.enough and (wait_s := come()) is not None:
                time.sleep(wait_s)
                break
            if not self.enough and time.monotonic() > deadline:
                moment = "deadline"
                break
            time.sleep(0.002 if not self.enough else 0.1)
        if driver.alive:
            strike(driver, kind, self.rng)
            self.kills[kind] += 1
            self.moments[moment] += 1
            self.cycle_s.append(time.monotonic() - driver.gone_at)
            return False
        verdict = driver.verdict()
        if "failed" in verdict:
            self.failures.append(str(verdict["failed"]))
            return False
        self.verdicts.append(verdict)
        return True

    def lines(self) -> list[str]:
        def median(values: list[float]) -> str:
            return f"{statistics.median(values):.1f} s" if values else "-"

        lost, doubled = (sum(v[k] for v in self.verdicts) for k in ("lost", "doubled"))
        right = all(v["state"] and v["writer"] and not v["backlog"] for v in self.verdicts)
        return [
            f"kills {sum(self.kills.values())} {dict(self.kills)} at {dict(self.moments)}",
            f"rounds {len(self.verdicts)} of {self.args.events} events, durability "
            f"{self.args.durability}: lost {lost}, doubled {doubled}, state, writers and backlogs "
            f"{'exact' if right else 'WRONG'}",
            f"recovery, from start to the first new step, Spark loaded: median "
            f"{median(self.recovery_s)}, longest {max(self.recovery_s, default=0):.1f} s; Spark "
            f"loads in {median(self.ready_s)} beside the running one; a cycle takes "
            f"{median(self.cycle_s)}",
            f"starts that failed with a sentence and were repeated: {len(self.failures)}",
            *(f"  {text}" for text in sorted(set(self.failures))),
        ]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="SIGKILL at seeded moments on real Spark")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--events", type=int, default=1500)
    parser.add_argument("--durability", choices=("process", "power"), default="process")
    parser.add_argument("--minutes", type=float, default=600.0, help="no kills after this time")
    parser.add_argument("--folder", type=Path, help="keep files here instead of a temporary one")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and no driver is left behind
    base = args.folder or Path(tempfile.mkdtemp(prefix="foretide-chaos-"))
    chaos = Chaos(base, args)
    number = 0
    while not chaos.enough:
        number += 1
        chaos.round(number)
        print("\n".join(chaos.lines()), flush=True)
    if args.folder is None:
        shutil.rmtree(base, ignore_errors=True)
    if any(v["lost"] or v["doubled"] or not v["state"] for v in chaos.verdicts):
        sys.exit(1)


if __name__ == "__main__":
    main()
