"""Every forecaster on every recorded load: WAPE one step and six steps ahead, and coverage of the
95 % quantile, as Markdown.

Each model walks through the last sixth of each trace once, six steps ahead; the first step of that
walk is the one-step figure. All are scored on the same origins, about a thousand per trace; quick
models walk through every window between them, as the loop would have it. The slowest, marked *, are
scored on about a hundred origins only and do not compete for best. Figures are kept in a file, so
that models can be added one by one.

Run: python benchmarks/forecast_table.py --traces DIRECTORY [--models basic,auto] [--kept
runs/forecast_table.json]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from foretide.errors import MissingExtra, NotReady
from foretide.forecast import FORECASTERS
from foretide.forecast.auto import MEMBERS
from foretide.forecast.evaluate import evaluate, score, stride
from foretide.forecast.leaderboard import builder
from foretide.load import read_csv

HORIZON = 6
ORIGINS = 1000
QUICK = {
    "basic",
    "lr",
    "fft",
    "fft-tuned",
    "regression",
    "smooth",
    "seasonal",
    "lr-lags",
    "median-lags",
    "growth-lags",
    "seasonal-lags",
    "auto",
}
SLOW = {"ann", "ann-tuned", "rf", "rf-tuned", "rf-lags", "ets", "auto-arima", "svr"}
SLOW_ORIGINS = 100


def measure(model: str, trace: Path) -> dict[str, Any]:
    series = read_csv(trace).rates()
    every = stride(len(series), SLOW_ORIGINS if model in SLOW else ORIGINS)
    walked = evaluate(model, builder(model), series, HORIZON, 1, 1 if model in QUICK else every)[1]
    thin = slice(None, None, every if model in QUICK else 1)
    walked = replace(
        walked,
        origins=walked.origins[thin],
        truth=walked.truth[thin],
        mean=walked.mean[thin],
        upper=walked.upper[thin],
    )
    six = score(model, walked)
    one = score(
        model,
        replace(
            walked, truth=walked.truth[:, :1], mean=walked.mean[:, :1], upper=walked.upper[:, :1]
        ),
    )
    return {
        "wape_1": one.wape,
        "wape_6": six.wape,
        "rmse_6": six.rmse,
        "coverage": six.coverage,
        "fit_s": six.fit_s,
        "forecast_ms": six.forecast_ms,
        "origins": six.origins,
    }


def printed(kept: dict[str, dict[str, Any]], figure: str, title: str) -> None:
    traces = sorted({t for row in kept.values() for t in row})
    print(
        f"\n{title}\n\n| model | "
        + " | ".join(t.rsplit("_", 1)[0] for t in traces)
        + " |\n|---|"
        + "---:|" * len(traces)
    )
    best = {
        t: min(
            (row[t][figure] for model, row in kept.items() if t in row and model not in SLOW),
            default=None,
        )
        for t in traces
    }
    for model in [name for name in FORECASTERS.names if name in kept]:
        cells = []
        for t in traces:
            value = kept[model].get(t, {}).get(figure)
            cell = "" if value is None else f"{value:.3f}" if value < 10 else f"{value:.0f}"
            cells.append(f"**{cell}**" if value == best[t] and figure != "coverage" else cell)
        print(f"| `{model}`{'*' if model in SLOW else ''} | " + " | ".join(cells) + " |")


def printed_auto(kept: dict[str, dict[str, Any]]) -> None:
    """Auto beside the best of its own set, the best of all, and 'basic'."""
    print(
        "\n'auto' against its set\n\n| trace | steps | auto | best of its set | ratio | best of "
        "all | ratio | / basic | coverage |"
    )
    print("|---|---:|---:|---|---:|---|---:|---:|---:|")
    for trace, own in kept["auto"].items():
        for steps in (1, 6):
            figure = f"wape_{steps}"
            best = {
                who: min((kept[m][trace][figure], m) for m in names if trace in kept.get(m, {}))
                for who, names in (
                    ("set", MEMBERS),
                    ("all", [m for m in kept if m != "auto" and m not in SLOW]),
                )
            }
            cells = [f"{own[figure]:.4f}"]
            for value, model in best.values():
                cells += [f"{value:.4f} `{model}`", f"{own[figure] / value:.3f}"]
            cells += [
                f"{own[figure] / kept['basic'][trace][figure]:.3f}",
                f"{own['coverage']:.3f}" if steps == 6 else "",
            ]
            print(f"| {trace.rsplit('_', 1)[0]} | {steps} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--traces",
        type=Path,
        default=os.environ.get("FORETIDE_TRACES"),
        help="a folder of CSV files",
    )
    parser.add_argument("--models", default="all")
    parser.add_argument("--only", default="", help="traces whose names hold this")
    parser.add_argument("--kept", type=Path, default=Path("runs/forecast_table.json"))
    options = parser.parse_args()
    if options.traces is None:
        print(
            "every model on every trace takes an hour or more: name a folder of CSV files with "
            "--traces to measure it"
        )
        return
    files = sorted(f for f in options.traces.glob("*.csv") if options.only in f.stem)
    if not files:
        print(f"no traces in {options.traces}: nothing to measure")
        return
    kept: dict[str, dict[str, Any]] = (
        json.loads(options.kept.read_text()) if options.kept.exists() else {}
    )
    for model in FORECASTERS.names if options.models == "all" else options.models.split(","):
        for trace in files:
            if trace.stem in kept.get(model, {}):
                continue
            began = time.perf_counter()
            try:
                kept.setdefault(model, {})[trace.stem] = measure(model, trace)
            except (MissingExtra, NotReady) as error:
                print(f"left out: {model} on {trace.stem}: {error}", file=sys.stderr)
                continue
            print(
                f"{model} on {trace.stem}: {time.perf_counter() - began:.1f} s",
                file=sys.stderr,
                flush=True,
            )
            options.kept.parent.mkdir(parents=True, exist_ok=True)
            options.kept.write_text(json.dumps(kept, indent=1))
    kept = {model: row for model, row in kept.items() if row}
    printed(kept, "wape_1", "WAPE one step ahead")
    printed(kept, "wape_6", "WAPE over six steps ahead")
    printed(kept, "coverage", "Coverage of the 0.95 quantile, six steps ahead")
    if {"auto", *MEMBERS} <= set(kept):
        printed_auto(kept)


if __name__ == "__main__":
    main()
