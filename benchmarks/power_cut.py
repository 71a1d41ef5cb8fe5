"""A power cut on a real file system: what is left, and does the pipeline go on from it?

Runs the pipeline of ``_victim.py`` on an ext4 image that is mounted through a loop device. At
seeded moments all its processes are frozen and the image is copied: the copy holds what had reached
the disk, and not what was only in the page cache, as after a power cut. Then the pipeline is
started on every copy and runs to its end. Prints per cut how many files were empty, and what a
start said.
Needs root, mkfs.ext4 and loop devices. Usage: sudo python benchmarks/power_cut.py [--cuts N]
[--durability process|power] [--events N]
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from chaos import OPERATORS, Disk, Driver, family

MEGABYTES = 192


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def mount(image: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    run("mount", "-o", "loop", str(image), str(folder))


def unmount(folder: Path) -> None:
    for _ in range(50):
        if (
            subprocess.run(["umount", str(folder)], check=False, capture_output=True).returncode
            == 0
        ):
            return
        time.sleep(0.2)


def send(pids: list[int], what: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, what)
        except ProcessLookupError:
            continue


def cut(driver: Driver, image: Path, copy: Path, disk: Disk) -> dict[str, int]:
    """Freeze, copy what is on the disk, go on; the newest batch per operator at that moment."""
    pids = list(family(driver.process.pid))
    send(pids, signal.SIGSTOP)
    shutil.copyfile(image, copy)
    newest = {o: disk.newest(o) for o in OPERATORS}
    send(pids, signal.SIGCONT)
    return newest


def cuts(base: Path, args: argparse.Namespace) -> list[tuple[Path, dict[str, int]]]:
    image, where, rng = base / "disk.img", base / "mnt", random.Random(args.seed)
    with image.open("wb") as f:
        f.truncate(MEGABYTES * 2**20)
    run("mkfs.ext4", "-q", "-F", str(image))
    mount(image, where)
    taken = []
    driver = Driver(where / "v", args.events, args.durability)
    try:
        driver.wait_ready()
        driver.go()
        disk = Disk(where / "v" / "pipeline")
        for k in range(args.cuts):
            seen, steps = disk.steps(), rng.randint(4, 10)
            while driver.alive and disk.steps() < seen + steps:
                time.sleep(0.01)
            time.sleep(rng.random())
            if not driver.alive:
                break
            copy = base / f"cut{k}.img"
            taken.append((copy, cut(driver, image, copy, disk)))
    finally:
        driver.end()
        unmount(where)
    return taken


def empty(path: Path, pattern: str) -> str:
    files = [f for f in path.glob(pattern) if f.is_file()]
    return f"{sum(f.stat().st_size == 0 for f in files)} of {len(files)}"


def resumed(copy: Path, base: Path, args: argparse.Namespace) -> str:
    """What a start on a copy of the disk says at its end."""
    where = base / "mnt"
    mount(copy, where)
    try:
        path = where / "v" / "pipeline"
        kinds = {
            "manifests": "edges/*/b-*/manifest.json",
            "data files": "edges/*/b-*/*/*.parquet",
            "Spark's logs": "checkpoints/*/*/[0-9]*",
        }
        left = ", ".join(f"{name} {empty(path, pattern)}" for name, pattern in kinds.items())
        delivered = {o: Disk(path).newest(o) for o in OPERATORS}
        driver = Driver(where / "v", args.events, args.durability)
        try:
            driver.wait_ready()
            driver.go()
            verdict = driver.verdict()
        finally:
            driver.end()
        return f"empty: {left}; newest on the disk {delivered}; then {verdict}"
    finally:
        unmount(where)


def main() -> None:
    parser = argparse.ArgumentParser(description="power cuts on an ext4 image")
    parser.add_argument("--cuts", type=int, default=3)
    parser.add_argument("--events", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--durability", choices=("process", "power"), default="power")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("mounting an image needs root")
    base = Path(tempfile.mkdtemp(prefix="foretide-cut-"))
    try:
        for k, (copy, newest) in enumerate(cuts(base, args)):
            print(f"cut {k}, durability {args.durability}: newest batches {newest}", flush=True)
            print(f"  {resumed(copy, base, args)}", flush=True)
    finally:
        shutil.rmtree(base)


if __name__ == "__main__":
    main()
