"""The examples with real work, live on local Spark under the demo's load, one after another.

Each runs for a while under one system in mode act; its journal is kept, and the summary of a run is
printed for each. With ``--pictures`` the dashboard of each run is drawn by a headless chromium.

    python benchmarks/apps_live.py dns vld [--seconds 60] [--keep FOLDER] [--pictures FOLDER]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from pyspark.sql import SparkSession

from foretide.cli.demo_app import APPS, app_run
from foretide.cli.demo_live import windows
from foretide.cli.screen import summary
from foretide.journal import read
from foretide.spark import session
from foretide.spark.control.live import LiveRun
from foretide.systems import system
from foretide.web import serve

SHARE = 0.99
SIZE = {"width": 1000, "height": 900}


def ran(name: str, chosen: str, seconds: int, folder: Path, spark: SparkSession) -> LiveRun:
    """One example until its load is done."""
    promised = system(chosen).promised(APPS[name].target_s, SHARE)
    live = app_run(name, promised, seconds, folder)
    live.go(steps=windows(seconds), spark=spark)
    return live


def drawn(live: LiveRun, file: Path) -> None:
    """The dashboard of a run that is over."""
    with serve(live.journal, port=0) as site, sync_playwright() as p:
        chromium = p.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--disable-gpu"], chromium_sandbox=False
        )
        page = chromium.new_page(viewport=SIZE)
        page.goto(site.url)
        page.wait_for_selector("[data-drawn]")
        page.screenshot(path=file, animations="disabled")
        chromium.close()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("apps", nargs="*", default=list(APPS), help=", ".join(APPS))
    options.add_argument("--system", default="foretide")
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--keep", type=Path, default=None)
    options.add_argument("--pictures", type=Path, default=None)
    chosen = options.parse_args()
    keep = chosen.keep or Path(tempfile.mkdtemp(prefix="foretide-apps-"))
    spark = session("apps", "local[32]", short_run=True)
    spark.sparkContext.setLogLevel("OFF")
    for name in chosen.apps:
        live = ran(name, chosen.system, chosen.seconds, keep / name, spark)
        print(f"== {name}\n{summary(*read(live.journal))}\njournal: {live.journal}", flush=True)
        if chosen.pictures is not None:
            drawn(live, chosen.pictures / f"{name}.png")
    spark.stop()


if __name__ == "__main__":
    main()
