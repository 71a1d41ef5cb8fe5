"""Which sizes of BGElasor's networks have the least error on the validation days of its own loads,
and with ``--errors`` what those sizes then err on the test days, seed by seed.

The test days are not read by the search. Runs on whatever device JAX finds; on an accelerator start
one process per model (``--model``).

Run: python benchmarks/network_sizes.py --data DIRECTORY [--model bigru] [--steps 6] [--seeds 2]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from foretide.papers.bgelasor_forecasts import (
    FILES,
    GRID,
    NETWORKS,
    TEST_DAYS,
    errors,
    networks,
    own_load,
    search,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a directory with the authors' loads")
    parser.add_argument("--model", default=",".join(NETWORKS))
    parser.add_argument("--steps", default="6")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--errors", type=int, default=0, help="seeds to score on the test days")
    parser.add_argument("--out", type=Path, help="write all figures to this JSON file")
    options = parser.parse_args()
    if options.data is None:
        print("give --data a directory with the authors' loads: nothing to measure")
        return
    loads, kept = [own_load(options.data, name) for name in FILES], []
    for model in options.model.split(","):
        for steps in map(int, options.steps.split(",")):
            began = time.perf_counter()
            tried = search(model, loads, steps, range(options.seeds))
            for of in loads:
                best = min(GRID, key=lambda s, n=of.name: tried[n][s])
                line = ", ".join(f"{s[0]} in, {s[1]} units: {e:.4g}" for s, e in tried[of.name].items())
                spent = time.perf_counter() - began
                print(f"{model}, {of.name}, {steps} ahead: {best} of {line} ({spent:.0f} s)", flush=True)
                row = {"model": model, "load": of.name, "steps": steps, "size": best}
                kept.append({**row, "tried": list(tried[of.name].items())})
                if options.errors:
                    runs = networks(model, [of], steps, best, range(options.errors))[of.name]
                    scored = [errors(test, of.truth(steps)) for test, _ in runs]
                    kept[-1]["rmse"] = [e.rmse for e in scored]
                    kept[-1]["mae"] = [e.mae for e in scored]
                    mean = np.mean(kept[-1]["rmse"])
                    spent = time.perf_counter() - began
                    print(f"  RMSE {mean:.4g} over {TEST_DAYS} test days ({spent:.0f} s)", flush=True)
                if options.out:
                    options.out.write_text(json.dumps(kept))


if __name__ == "__main__":
    main()
