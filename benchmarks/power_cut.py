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

from chaos import OPERATORS, Disk, Driver, Drivers, Jvm, family

MEGABYTES, LIMIT_S = 192, 300.0


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
    run("umount", "--lazy", str(folder))


def send(pids: list[int], what: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, what)
        except ProcessLookupError:
            continue


def cut(jvm: Jvm, driver: Driver, image: Path, copy: Path) -> dict[str, int]:
    """Freeze, copy what is on the disk, go on; the newest batch per operator at that moment."""
    pids = [driver.pid, *family(jvm.process.pid)]
    send(pids, signal.SIGSTOP)
    shutil.copyfile(image, copy)
    newest = {o: Disk(driver.folder / "pipeline").newest(o) for o in OPERATORS}
    send(pids, signal.SIGCONT)
    return newest


class Bench:
    """The image, and the processes that work on it."""

    def __init__(self, base: Path, args: argparse.Namespace) -> None:
        self.image, self.where, self.args = base / "disk.img", base / "mnt", args
        self.rng = random.Random(args.seed)
        self.log = (base / "log").open("ab")
        self.drivers, self.jvm = Drivers(self.log), Jvm(self.log)

    def cuts(self) -> list[tuple[Path, dict[str, int]]]:
        with self.image.open("wb") as f:
            f.truncate(MEGABYTES * 2**20)
        run("mkfs.ext4", "-q", "-F", str(self.image))
        mount(self.image, self.where)
        taken = []
        try:
            driver = self.drivers.start(self.where / "v", self.args, self.jvm)
            disk = Disk(driver.folder / "pipeline")
            for k in range(self.args.cuts):
                seen, steps = disk.steps(), self.rng.randint(4, 10)
                while driver.alive and disk.steps() < seen + steps:
                    time.sleep(0.01)
                time.sleep(self.rng.random())
                if not driver.alive:
                    break
                copy = self.image.with_name(f"cut{k}.img")
                taken.append((copy, cut(self.jvm, driver, self.image, copy)))
            driver.end()
        finally:
            self.jvm.end()  # it has files of the image open
            unmount(self.where)
        self.jvm = Jvm(self.log)
        return taken

    def resumed(self, copy: Path) -> str:
        """What a start on a copy of the disk says at its end."""
        mount(copy, self.where)
        try:
            path = self.where / "v" / "pipeline"
            kinds = {
                "manifests": "edges/*/b-*/manifest.json",
                "data files": "edges/*/b-*/*/*.parquet",
                "Spark's logs": "checkpoints/*/*/[0-9]*",
            }
            left = ", ".join(f"{name} {empty(path, pattern)}" for name, pattern in kinds.items())
            delivered = {o: Disk(path).newest(o) for o in OPERATORS}
            driver = self.drivers.start(self.where / "v", self.args, self.jvm)
            driver.wait(LIMIT_S)
            driver.end()
            return f"empty: {left}; newest on the disk {delivered}; then {driver.verdict()}"
        finally:
            unmount(self.where)

    def end(self) -> None:
        self.jvm.end()
        self.drivers.end()
        self.log.close()


def empty(path: Path, pattern: str) -> str:
    files = [f for f in path.glob(pattern) if f.is_file()]
    return f"{sum(f.stat().st_size == 0 for f in files)} of {len(files)}"


def main() -> None:
    parser = argparse.ArgumentParser(description="power cuts on an ext4 image")
    parser.add_argument("--cuts", type=int, default=3)
    parser.add_argument("--events", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--durability", choices=("process", "power"), default="power")
    parser.set_defaults(servers="")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("mounting an image needs root")
    base = Path(tempfile.mkdtemp(prefix="foretide-cut-"))
    bench = Bench(base, args)
    try:
        for k, (copy, newest) in enumerate(bench.cuts()):
            print(f"cut {k}, durability {args.durability}: newest batches {newest}", flush=True)
            print(f"  {bench.resumed(copy)}", flush=True)
    finally:
        bench.end()
        shutil.rmtree(base)


if __name__ == "__main__":
    main()
