"""Ten million events in bounded memory.

The highest use is read from /proc: what getrusage tells of a child includes the process that
started it.
"""

import subprocess
import sys

import pytest

SCRIPT = """
import re
import numpy as np
from foretide.apps import app
from foretide.load import Load
from foretide.sim.environment import Simulation
load = Load("steady", np.full(10_000, {rate}))
environment = Simulation(app("twitter-linear"), load, window_s=100.0, replicas={replicas})
for i in range(100):
    environment.read((i + 1) * 100.0)
values, _ = environment.latencies_ms()
status = open("/proc/self/status").read()
print(len(values), int(re.search(r"VmHWM:\\s+(\\d+)", status).group(1)) / 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "replicas",
    [
        {"parse": 2, "spam": 2, "topic": 2, "store": 2},
        {"parse": 2, "spam": 1, "topic": 2, "store": 2},
    ],
)
def test_ten_million_events_stay_under_a_gigabyte_and_a_half(replicas):
    """Once all of them leave, once most of them are left behind."""
    script = SCRIPT.format(rate=1000.0, replicas=replicas)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    left, mebibytes = map(float, run.stdout.split())
    assert left > 1e6
    assert mebibytes < 1430  # 1.5 GB
