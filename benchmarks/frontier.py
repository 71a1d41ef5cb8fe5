"""Cost against share in target: every system on recorded loads, for lead times of 0, 10 and 60 s.

Setting, the same for all: a chain of three operators (5, 10 and 7.5 ms per event, exponential),
fluid twin, latency target 5 s for 99 % of the events, a step every 5 s, default prices. The last
200 rows of each trace, as recorded but no row longer than 60 s, scaled so that the mean keeps 8
replicas of the middle operator busy. Costs are over the least that keeps the promise
(clairvoyant-target's bound).

    python benchmarks/frontier.py ../shared/traces                     all loads, the systems below
    python benchmarks/frontier.py TRACES --loads taxi,ticks --systems foretide,ds2 --svg out.svg
    python benchmarks/frontier.py TRACES --loads "" --json rows.json   tables of what was measured
    python benchmarks/frontier.py TRACES --loads ticks --engine events  every event, not a fluid
    python benchmarks/frontier.py TRACES --warm-up 1000               in operation for 1000 windows
    python benchmarks/frontier.py TRACES --past 1000                  from the first minute, those
                                                                  before as with --history
    python benchmarks/frontier.py FOLDER --loads mine,other --systems foretide,ds2   FOLDER/mine.csv

``bgelasor-basic`` is BGElasor with a fading average instead of its recurrent network, which takes
an hour to train. The systems of FUGU place operators on hosts; this chain has none.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path

import numpy as np

from foretide.apps.app import App, Service
from foretide.figures.metrics import figures
from foretide.load import Load, read_csv
from foretide.sim.compare import Engine, Scenario, simulate
from foretide.systems import System, system
from foretide.topology import Operator, Topology

SMOOTH = {
    "taxi": "nyc_taxi_30min",
    "worldcup": "worldcup98_http_1min",
    "nasa": "nasa_http_jul95_1min",
    "azure-functions": "azure_functions_500fn_1min",
    "bgelasor-periodic": "authors/bgelasor_periodic_5min",
    "bgelasor-fluctuate": "authors/bgelasor_fluctuate_10min",
    "twitter-smoothed": "authors/pasps_sbac_1s",
}
OTHER = {
    "tweets": "twitter_10tickers_5min",
    "elb": "aws_elb_requests_5min",
    "azure-llm": "azure_llm_conv_1s",
    "dns-zeek": "dns_queries_zeek_1s",
    "ticks": "stock_ticks_us_5s",
    "twitter-raw": "authors/pasps_twitter_raw_1s",
    "pasps-dns": "authors/pasps_dns_1s",
    "pasps-log": "authors/pasps_log_1s",
}
SYSTEMS = (
    "foretide", "ds2", "spark-dra", "backlog", "drs", "pa-sps", "psps", "dabs-storm",
    "bgelasor-basic", "srea", "spea", "lcp", "incremental", "rlearning", "static-peak",
    "clairvoyant", "clairvoyant-target",
)  # fmt: skip
VARIANTS = {"bgelasor-basic": ("bgelasor", {"forecaster": "basic"})}
LIMITS = ("clairvoyant", "clairvoyant-target", "static-peak")
LEADS_S = (0.0, 10.0, 60.0)
BUSY, ROWS, WINDOW_S, TARGET_S = 8.0, 200, 5.0, 5.0
Row = dict[str, object]
SERVICE_S = {"parse": 0.005, "work": 0.010, "store": 0.0075}
GOALS = {
    0.0: ((0.99, 1.15), (0.99, 1.5)),
    10.0: ((0.985, 1.25), (0.985, 1.6)),
    60.0: ((0.98, 1.4), (0.93, 2.0)),
}


def chain() -> App:
    names = tuple(SERVICE_S)
    operators = tuple(
        Operator(n, names[i - 1 : i] if i else (), max_replicas=400) for i, n in enumerate(names)
    )
    service = {n: Service(s, "exponential") for n, s in SERVICE_S.items()}
    return App(
        "chain-of-three",
        "three operators",
        "benchmark",
        Topology(operators),
        service,
        arrivals="poisson",
        target_latency_s=TARGET_S,
    )


def trace(folder: Path, name: str, rows: int = ROWS, skip: int = 0, warm_up: int = 0) -> Load:
    """The last rows of a recorded load, without the very last ``skip`` of them, after as many of
    the ``warm_up`` windows before them as were recorded. Scaled by the last rows alone.
    """
    found = read_csv(folder / f"{(SMOOTH | OTHER).get(name, name)}.csv")
    row_s = min(found.interval_s, 60.0)
    before = int(warm_up * WINDOW_S / row_s)
    counts = np.array(found.counts[: max(0, len(found.counts) - skip)][-rows - before :])
    return Load(name, counts / counts[-rows:].mean() * BUSY / SERVICE_S["work"] * row_s, row_s)


def declared(name: str) -> System:
    """A built-in system, or a variant that this benchmark declares."""
    built_in, changes = VARIANTS.get(name, (name, {}))
    return system(built_in, **changes)


def measure(
    load: Load,
    systems: tuple[str, ...],
    leads_s: tuple[float, ...],
    engine: Engine,
    measured_rows: int = ROWS,
    recorded: bool = False,
) -> list[Row]:
    """Every system on the whole load; share and cost are those of its last rows. What comes before
    them was run, or ``recorded``: then it is known to systems that learn from a past.
    """
    rows: list[Row] = []
    name, least = load.name, None
    warm_up_s, past = load.duration_s - measured_rows * load.interval_s, np.empty(0)
    if recorded:
        past = load.rates(WINDOW_S)[: int(warm_up_s / WINDOW_S)]
        load, warm_up_s = Load(name, load.counts[-measured_rows:], load.interval_s), 0.0
    for lead_s in leads_s:
        case = Scenario(chain(), load, WINDOW_S, engine=engine, lead_s=lead_s, warm_up_s=warm_up_s)
        least = case.target_cost() if least is None else least
        for which in systems:
            found = figures(simulate(case, declared(which).remembering(past)))
            share, cost = found.slo_share or 0.0, (found.cost or 0.0) / (least or 1.0)
            p99_s = (found.latency_p99_ms or 0.0) / 1e3
            rows.append(
                {
                    "load": name,
                    "lead_s": lead_s,
                    "system": which,
                    "share": share,
                    "cost": cost,
                    "p99_s": p99_s,
                }
            )
            print(
                f"{name:20} lead {lead_s:3.0f} s  {which:20} share {share:8.2%}  cost {cost:5.2f}  "
                f"p99 {p99_s:8.2f} s",
                flush=True,
            )
    return rows


def verdict(rows: list[Row]) -> str:
    """Goals that foretide keeps and misses, and rivals that beat it in both."""
    lines = []
    ours = {(r["load"], r["lead_s"]): r for r in rows if r["system"] == "foretide"}
    for (load, lead_s), mine in ours.items():
        share, cost = GOALS[float(str(lead_s))][0 if load in SMOOTH else 1]
        kept = float(str(mine["share"])) >= share and float(str(mine["cost"])) <= cost
        better = [
            str(r["system"])
            for r in rows
            if (r["load"], r["lead_s"]) == (load, lead_s)
            and r["system"] not in (*LIMITS, "foretide")
            and float(str(r["share"])) > float(str(mine["share"])) + 0.002
            and float(str(r["cost"])) < 0.99 * float(str(mine["cost"]))
        ]
        lines.append(
            f"| {load} | {lead_s:g} | {mine['share']:.2%} | {mine['cost']:.2f} | "
            f"{share:.1%} at {cost:g} | {'kept' if kept else 'missed'} | "
            f"{', '.join(better) or 'none'} |"
        )
    return "\n".join(
        [
            "| load | lead s | share | cost | goal | | better in both |",
            "|---|---|---|---|---|---|---|",
            *lines,
        ]
    )


def by_load(rows: list[Row]) -> str:
    """Share at cost of foretide, a line per load; bold is what missed its goal. Costs are over the
    bound; how many cases keep their goals over what clairvoyant-target cost with that lead time is
    counted besides.
    """
    ours = {(r["load"], r["lead_s"]): r for r in rows if r["system"] == "foretide"}
    limit = {(r["load"], r["lead_s"]): r for r in rows if r["system"] == "clairvoyant-target"}
    lines = [
        "| `foretide` on | " + " | ".join(f"lead {lead_s:g} s" for lead_s in LEADS_S) + " |",
        "|---|" + "---|" * len(LEADS_S),
    ]
    kept = near = 0
    for load in dict.fromkeys([*SMOOTH, *OTHER, *(str(name) for name, _ in ours)]):
        if not all((load, lead_s) in ours for lead_s in LEADS_S):
            continue
        cells = []
        for lead_s in LEADS_S:
            mine = ours[load, lead_s]
            share, cost = float(str(mine["share"])), float(str(mine["cost"]))
            least, most = GOALS[lead_s][0 if load in SMOOTH else 1]
            kept += share >= least and cost <= most
            over = float(str(limit[load, lead_s]["cost"])) if (load, lead_s) in limit else 1.0
            near += share >= least and cost <= most * over
            bold = ["**" if missed else "" for missed in (share < least, cost > most)]
            cells.append(f"{bold[0]}{100 * share:.1f} %{bold[0]} at {bold[1]}{cost:.2f}{bold[1]}")
        lines.append(f"| {load}{' (smooth)' if load in SMOOTH else ''} | {' | '.join(cells)} |")
    verdicts = f"Both goals are kept in {kept} of {len(ours)} cases"
    if limit:
        verdicts += f", in {near} over the cost of clairvoyant-target with the same lead time"
    return "\n".join([*lines, "", f"{verdicts}."])


def common_loads(rows: list[Row]) -> set[object]:
    """The loads that all systems ran on."""
    systems = {str(r["system"]) for r in rows}
    each = [{r["load"] for r in rows if r["system"] == name} for name in systems]
    return set.intersection(*each) if each else set()


def means(rows: list[Row]) -> str:
    """Mean share and cost of every system over the loads that all of them ran on."""
    systems = list(dict.fromkeys(str(r["system"]) for r in rows))
    common = common_loads(rows)
    lines = [
        f"Means over {len(common)} loads: {', '.join(sorted(map(str, common)))}",
        "",
        "| system | " + " | ".join(f"lead {lead_s:g} s" for lead_s in LEADS_S) + " |",
        "|---|" + "---|" * len(LEADS_S),
    ]
    for name in systems:
        cells = []
        for lead_s in LEADS_S:
            mine = [r for r in rows if (r["system"], r["lead_s"]) == (name, lead_s)]
            mine = [r for r in mine if r["load"] in common]
            cells.append(f"{mean(mine, 'share'):.1%} at {mean(mine, 'cost'):.2f}" if mine else "-")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def mean(rows: list[Row], figure: str) -> float:
    return float(np.mean([float(str(r[figure])) for r in rows]))


def height_of(share: float) -> float:
    """Where a share stands on the axis, 0 at the bottom: each third is ten times fewer late events.

    >>> [round(height_of(s), 2) for s in (0.0, 0.9, 0.99, 1.0)]
    [0.0, 0.33, 0.67, 1.0]
    """
    return min(1.0, -math.log10(max(1e-3, 1.0 - share)) / 3.0)


def svg(rows: list[Row]) -> str:
    """Mean share and mean cost of every system over the loads that all ran on, one panel per lead
    time: up and left is better.
    """
    width, height, left_pad, top, bottom, names = 380, 340, 44, 26, 40, 110
    inner, tall = width - left_pad - names, height - top - bottom
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * 3}" height="{height}" '
        'font-family="sans-serif" font-size="10" fill="#333">',
        f'<rect width="{width * 3}" height="{height}" fill="#fff"/>',
    ]
    for panel, lead_s in enumerate(LEADS_S):
        left = panel * width + left_pad
        parts += [
            f'<text x="{left}" y="16" font-size="12">lead time {lead_s:g} s</text>',
            f'<rect x="{left}" y="{top}" width="{inner}" height="{tall}" fill="none" '
            'stroke="#999"/>',
            f'<text x="{left}" y="{height - 6}">mean cost, multiples of the least</text>',
        ]
        for cost in (1.0, 2.0, 3.0):
            x = left + inner * (cost - 0.5) / 3.0
            parts.append(f'<text x="{x:.0f}" y="{height - 24}">{cost:g}</text>')
        for share in (0.0, 0.5, 0.9, 0.99, 0.999):
            y = top + tall * (1 - height_of(share))
            parts.append(
                f'<line x1="{left}" y1="{y:.1f}" x2="{left + inner}" y2="{y:.1f}" stroke="#eee"/>'
                f'<text x="{left - 36}" y="{y + 4:.0f}">{100 * share:g} %</text>'
            )
        parts += points([r for r in rows if r["lead_s"] == lead_s], left, top, inner, tall)
    return "\n".join([*parts, "</svg>", ""])


def points(rows: list[Row], left: int, top: int, inner: int, tall: int) -> list[str]:
    """A dot per system, and its name beside the panel with a line to the dot."""
    dots = []
    for name in dict.fromkeys(str(r["system"]) for r in rows):
        mine = [r for r in rows if r["system"] == name]
        x = left + inner * min(1.0, max(0.0, (mean(mine, "cost") - 0.5) / 3.0))
        dots.append((top + tall * (1 - height_of(mean(mine, "share"))), x, name))
    parts, label = list[str](), float(top - 8)
    for rest, (y, x, name) in zip(range(len(dots), 0, -1), sorted(dots), strict=True):
        label = min(max(label + 12, y), top + tall - 12 * (rest - 1))
        color = "#c33" if name == "foretide" else "#999" if name in LIMITS else "#357"
        parts += [
            f'<path d="M{x:.1f} {y:.1f} L{left + inner + 4} {label:.1f}" stroke="{color}" '
            'stroke-width="0.4" fill="none"/>',
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>',
            f'<text x="{left + inner + 6}" y="{label + 3:.1f}" fill="{color}">{name}</text>',
        ]
    return parts


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("traces", type=Path, nargs="?", default=Path("../shared/traces"))
    parser.add_argument("--loads", default=",".join(SMOOTH | OTHER))
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--leads", default="0,10,60", help="seconds")
    parser.add_argument("--rows", type=int, default=ROWS, help="of each load")
    parser.add_argument("--skip", type=int, default=0, help="rows at the end to leave out")
    parser.add_argument(
        "--warm-up", type=int, default=0, help="windows before them that only teach (default: 0)"
    )
    parser.add_argument(
        "--past", type=int, default=0, help="windows before them that were recorded, not run"
    )
    parser.add_argument("--engine", choices=("fluid", "events"), default="fluid")
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--json", type=Path, help="read and extend the rows in this file")
    asked = parser.parse_args()
    if asked.past and asked.warm_up:
        parser.error("--past and --warm-up exclude each other: rows before were recorded or run")
    if not asked.traces.is_dir():
        print(f"{asked.traces} is not a folder: the recorded loads are not here, nothing to do")
        sys.exit(0)
    rows: list[Row] = []
    if asked.json and asked.json.exists():
        rows = json.loads(asked.json.read_text())
    for name in filter(None, asked.loads.split(",")):
        leads_s = tuple(map(float, asked.leads.split(",")))
        before = max(asked.warm_up, asked.past)
        load = trace(asked.traces, name, asked.rows, asked.skip, before)
        if len(load.counts) < asked.rows:
            print(f"{name:20} has only {len(load.counts)} of {asked.rows} rows: left out")
            continue
        found = measure(
            load,
            tuple(asked.systems.split(",")),
            leads_s,
            asked.engine,
            asked.rows,
            recorded=asked.past > 0,
        )
        new = {(r["load"], r["lead_s"], r["system"]) for r in found}
        rows = [r for r in rows if (r["load"], r["lead_s"], r["system"]) not in new] + found
        if asked.json:
            asked.json.write_text(json.dumps(rows, indent=0))
    print(verdict(rows), by_load(rows), means(rows), sep="\n\n")
    if asked.svg:
        common = common_loads(rows)
        asked.svg.write_text(svg([r for r in rows if r["load"] in common]))


if __name__ == "__main__":
    main()
