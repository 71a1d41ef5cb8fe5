"""What ``make fast`` does not even import: modules whose libraries take seconds to load and whose
tests are all slow.
"""

from pathlib import Path

import hypothesis
import pytest

# No wall clock in tests: a busy machine is not a failure.
hypothesis.settings.register_profile("foretide", deadline=None)
hypothesis.settings.load_profile("foretide")

HEAVY = (
    "forecast/arima.py",
    "forecast/ets.py",
    "forecast/theta.py",
    "forecast/recurrent",
    "forecast/test_stats.py",
    "forecast/test_recurrent",
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    fast = "not slow" in str(config.getoption("markexpr"))
    return True if fast and any(name in collection_path.as_posix() for name in HEAVY) else None
