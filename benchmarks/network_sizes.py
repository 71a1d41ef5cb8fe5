"""BGElasor's networks in several sizes on its own loads: errors on the validation days, which
choose the size, and on the test days, seed by seed.

The test days decide nothing. Runs on whatever device JAX finds; on an accelerator start one process
per model (``--model``). ``--out`` keeps all errors and the forecasts of the test days.

Run: python benchmarks/network_sizes.py --data DIRECTORY [--model bigru] [--steps 6] [--seeds 10]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from foretide.papers.bgelasor_forecasts import FILES, NETWORKS, errors, networks, own_load

GRID = "24x32,96x32,96x128,288x64"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a directory with the authors' loads")
    parser.add_argument("--model", default=",".join(NETWORKS))
    parser.add_argument("--steps", default="1,6")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--grid", default=GRID, help="windows in x hidden units")
    parser.add_argument("--out", type=Path, help="a directory for errors and forecasts")
    options = parser.parse_args()
    if options.data is None:
        print("give --data a directory with the authors' loads: nothing to measure")
        return
    loads = [own_load(options.data, name) for name in FILES]
    cases = [
        (model, int(steps), size)
        for model in options.model.split(",")
        for steps in options.steps.split(",")
        for size in options.grid.split(",")
    ]
    for model, steps, size in cases:
        began = time.perf_counter()
        lookback, hidden = map(int, size.split("x"))
        runs = networks(model, loads, steps, (lookback, hidden), range(options.seeds))
        spent = time.perf_counter() - began
        for of in loads:
            tests = np.stack([test for test, _ in runs[of.name]])
            check = np.array([e.rmse for _, e in runs[of.name]])
            scored = [errors(test, of.truth(steps)) for test in tests]
            rmse, mae = np.array([e.rmse for e in scored]), np.array([e.mae for e in scored])
            print(
                f"{model} {size}, {of.name}, {steps} ahead: RMSE {check.mean():.4g} on the "
                f"validation days, {rmse.mean():.4g} on the test days ({spent:.0f} s)",
                flush=True,
            )
            if options.out:
                options.out.mkdir(parents=True, exist_ok=True)
                file = options.out / f"{model}-{size}-{of.name}-{steps}.npz"
                np.savez(file, check=check, rmse=rmse, mae=mae, forecasts=tests.astype(np.float32))


if __name__ == "__main__":
    main()
