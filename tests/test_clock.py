import threading
import time

from foretide.clock import WallClock


def test_waiting_for_the_past_or_after_a_stop_returns_at_once() -> None:
    stop = threading.Event()
    clock = WallClock()
    clock.wait_until(clock.now() - 5, stop)
    stop.set()
    before = time.monotonic()
    clock.wait_until(clock.now() + 3600, stop)
    assert time.monotonic() - before < 60
