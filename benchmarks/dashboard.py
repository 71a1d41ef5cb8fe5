"""What the dashboard costs the loop it watches, and whether it keeps up with a large run.

1. A loop over 50 operators steps every half second; in every second phase the dashboard runs in
   the same process and 200 clients (``--readers``) in another one read its stream. Printed: step
   time with clients over step time without any dashboard. Must stay below 1.10.
2. A day's journal of 50 operators (10 s windows; ``--full``: 1 s windows, about 2 GB on disk) is
   opened: seconds until all of it is read, memory used, and the time one further window takes from
   its journal line to the event that clients get. ``--steps`` leaves this part out.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import itertools
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from foretide.journal import Journal, Run
from foretide.model import Decision
from foretide.systems import system
from foretide.testing import ScriptedEnvironment
from foretide.topology import Operator, Topology
from foretide.web import serve
from foretide.web.watch import JournalWatch

OPERATORS, WINDOW_S, ROUNDS = 50, 0.5, 3


def topology(operators: int) -> Topology:
    """A source and layers of seven, each operator fed by one of the layer before."""
    made = [Operator("in", max_replicas=64)]
    for i in range(1, operators):
        made.append(Operator(f"op{i}", inputs=("in" if i <= 7 else f"op{i - 7}",), max_replicas=64))
    return Topology(tuple(made))


def scripted(window_s: float) -> ScriptedEnvironment:
    pipeline = topology(OPERATORS)
    times = {n: 0.01 + 0.002 * (i % 5) for i, n in enumerate(pipeline.names)}
    return ScriptedEnvironment(pipeline, times, lambda at: 200 + 150 * ((at / 40) % 2), window_s)


async def read_streams(port: int, clients: int) -> None:
    """Open so many streams, say so, read until standard input ends, say how much came."""
    got = [0] * clients

    async def client(i: int, opened: asyncio.Event) -> None:
        here = f"127.0.0.{1 + i // 200}"  # one address may have 320 connections
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(here, 0))
        writer.write(b"GET /api/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        while data := await reader.read(65536):
            got[i] += data.count(b"event: tick")
            opened.set()

    opened = [asyncio.Event() for _ in range(clients)]
    tasks = [asyncio.create_task(client(i, opened[i])) for i in range(clients)]
    await asyncio.gather(*(o.wait() for o in opened))
    print("open", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    served = [ticks for ticks in got if ticks]  # the server has 256 streams at most
    print(f"{len(served)} clients got at least {min(served, default=0)} ticks", flush=True)
    for task in tasks:
        task.cancel()


@contextlib.contextmanager
def clients(journal: Path, readers: int) -> Iterator[None]:
    with serve(journal, port=0) as site:
        port = site.url.rpartition(":")[2]
        command = [sys.executable, __file__, "--port", port, "--readers", str(readers)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            assert child.stdin is not None
            assert child.stdout.readline().strip() == "open"
            yield
            child.stdin.close()
            print(f"    {child.stdout.readline().strip()}")


def phase(
    folder: Path, watched: bool, number: int, asked: argparse.Namespace
) -> tuple[list[float], list[float]]:
    """Milliseconds per step: on the clock, and of this thread's own processor time."""
    world = scripted(WINDOW_S)
    wall, own = [], []
    journal = folder / f"{number}" / "journal.jsonl"
    with Journal(journal, Run("bench", "srea", world.topology, WINDOW_S, 0.0)) as book:
        loop = system("srea").autoscaler(world.topology, world, world, record=book.append)
        for i in range(20):
            loop.step(i * WINDOW_S)
        with clients(journal, asked.readers) if watched else contextlib.nullcontext():
            gc.collect()
            wait, end = threading.Event(), time.monotonic() + asked.seconds
            for i in itertools.count(20):
                begun, used = time.perf_counter(), time.thread_time()
                loop.step(i * WINDOW_S)
                wall.append(1000 * (time.perf_counter() - begun))
                own.append(1000 * (time.thread_time() - used))
                if time.monotonic() > end:
                    break
                wait.wait(WINDOW_S)
    return wall, own


def step_time(folder: Path, asked: argparse.Namespace) -> None:
    print(
        f"1. {asked.readers} clients, {OPERATORS} operators, a step every {WINDOW_S} s, phases of "
        f"{asked.seconds:.0f} s in turn"
    )
    found: dict[bool, tuple[list[float], list[float]]] = {False: ([], []), True: ([], [])}
    for number in range(2 * ROUNDS):
        watched = number % 2 == 1
        wall, own = phase(folder, watched, number, asked)
        found[watched][0].extend(wall)
        found[watched][1].extend(own)
        name = "with clients" if watched else "no dashboard"
        print(
            f"  {name}: step median {statistics.median(wall):.2f} ms, mean "
            f"{statistics.fmean(wall):.2f} ms, {len(wall)} steps"
        )
    for kind, which in (("on the clock", 0), ("of processor time", 1)):
        for what, of in (("median", statistics.median), ("mean", statistics.fmean)):
            print(
                f"  step time {kind}, {what}: "
                f"{of(found[True][which]) / of(found[False][which]):.3f} of that without a "
                "dashboard"
            )


def write_day(journal: Path, window_s: float) -> Decision:
    """A day of windows: 200 decisions of a real loop, again and again with later instants."""
    world = scripted(window_s)
    made: list[Decision] = []
    loop = system("srea").autoscaler(world.topology, world, world, record=made.append)
    for i in range(200):
        loop.step(i * window_s)
    with Journal(journal, Run("day", "srea", world.topology, window_s, 0.0)) as book:
        for i in range(int(86400 / window_s)):
            d = made[i % 200]
            assert d.snapshot is not None
            last = replace(d, at=i * window_s, snapshot=replace(d.snapshot, at=i * window_s))
            book.append(last)
    return last


def large(folder: Path, window_s: float) -> None:
    journal = folder / "day" / "journal.jsonl"
    last = write_day(journal, window_s)
    size, lines = journal.stat().st_size, int(86400 / window_s)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    watch = JournalWatch(journal, time.time, 1)
    begun, used = time.perf_counter(), time.process_time()
    while watch.tail.index.total < lines:
        watch.tail.advance()
    took, used = time.perf_counter() - begun, time.process_time() - used
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(
        f"2. a day of {OPERATORS} operators at {window_s:.0f} s windows: {lines} lines, "
        f"{size / 1e6:.0f} MB"
    )
    print(
        f"  read in {took:.1f} s, {used:.1f} s of it processor time, {1000 * used / lines:.2f} ms "
        "a window"
    )
    print(f"  memory grew by {grown:.0f} MB")
    ticks = []
    with Journal(journal, Run("day", "srea", topology(OPERATORS), window_s, 0.0)) as book:
        for i in range(50):
            book.append(replace(last, at=86400 + i * window_s))
            begun, state, known = time.perf_counter(), watch.tail.state, watch.tail.index.total
            watch.tail.advance()
            watch.publish(state, known)
            ticks.append(1000 * (time.perf_counter() - begun))
    _, event = watch.hub.since(watch.hub.number - 1)
    print(
        f"  a further window becomes an event in {statistics.median(ticks):.2f} ms "
        f"({len(event) / 1000:.1f} kB, encoded once for all)"
    )
    first = len(watch.hub.since(None)[1]) / 1000
    print(
        f"  of a 1 s window that is {statistics.median(ticks) / 1000:.4f}; a new reader's first "
        f"event has {first:.0f} kB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="a day at 1 s windows")
    parser.add_argument("--readers", type=int, default=200, help="clients that read the stream")
    parser.add_argument("--seconds", type=float, default=20.0, help="length of a phase")
    parser.add_argument("--steps", action="store_true", help="only the step time")
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.port:
        asyncio.run(read_streams(asked.port, asked.readers))
        return
    with tempfile.TemporaryDirectory() as folder:
        step_time(Path(folder), asked)
        if asked.steps:
            return
        large(Path(folder), 1.0 if asked.full else 10.0)


if __name__ == "__main__":
    main()
