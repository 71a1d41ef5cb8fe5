"""Retraining while the loop runs: forecasters that train slowly are trained together, in a thread
beside the loop where that is wanted.

Owns when a trained model takes over. It uses the protocol of slow learners only, not networks.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from foretide.model import Array
from foretide.parts import Forecaster

log = logging.getLogger(__name__)


@runtime_checkable
class SlowLearner(Protocol):
    """A forecaster whose learning is split in two: training, which changes nothing and may run
    anywhere, and taking over.

    ``train_many`` trains several forecasters of one kind at once and gives one result for each;
    ``take`` makes a result serve.
    """

    @staticmethod
    def train_many(
        forecasters: Sequence[Any], series: Sequence[Array], stopped: Callable[[], bool]
    ) -> Sequence[Any]: ...

    def take(self, trained: Any) -> None: ...


def core(forecaster: Forecaster) -> Forecaster:
    """The forecaster inside its wrappers (a wrapper calls what it wraps ``inner``)."""
    while hasattr(forecaster, "inner"):
        forecaster = forecaster.inner
    return forecaster


def lesson(forecaster: Forecaster, rates: Array) -> Array:
    """What the forecaster inside its wrappers learns from: a wrapper may put a past in front."""
    while hasattr(forecaster, "inner"):
        if hasattr(forecaster, "lesson"):
            rates = forecaster.lesson(rates)
        forecaster = forecaster.inner
    return rates


class Retraining:
    """Fits the forecasters of one loop. Slow learners of one kind are trained in one call, all
    others by their own ``fit``.

    With ``beside`` the slow ones train in a worker thread, at most one training at a time, and the
    old models serve until ``settle`` finds the new ones ready: the loop never waits. A training
    that fails is one warning and the old models go on. Without it (simulations, replays) everything
    happens in ``fit``, so that the same input gives the same run.
    """

    def __init__(self, beside: bool = False) -> None:
        self.beside = beside
        self._stop = threading.Event()
        self._worker: threading.Thread | None = None
        self._ready: list[tuple[SlowLearner, Any]] | None = None

    @property
    def busy(self) -> bool:
        """Whether a training is under way or waits to take over."""
        return self._worker is not None

    def fit(self, forecasters: Sequence[Forecaster], series: Sequence[Array]) -> None:
        slow: dict[type, list[tuple[SlowLearner, Array]]] = {}
        for forecaster, rates in zip(forecasters, series, strict=True):
            inner = core(forecaster)
            if isinstance(inner, SlowLearner):
                slow.setdefault(type(inner), []).append((inner, lesson(forecaster, rates)))
            else:
                forecaster.fit(rates)
        if not slow:
            return
        if not self.beside:
            self._take(self._train(slow))
        elif self.busy:
            log.info("a training is still under way: this one is left out")
        else:
            self._worker = threading.Thread(
                target=self._work, args=(slow,), name="foretide-training"
            )
            self._worker.start()

    def settle(self, wait: bool = False) -> None:
        """Let what was trained take over, if it is ready; ``wait`` for it in tests and at an
        orderly end.
        """
        if self._worker is None or (self._worker.is_alive() and not wait):
            return
        self._worker.join()
        self._worker = None
        ready, self._ready = self._ready, None
        self._take(ready or [])

    def close(self) -> None:
        """End a training under way; what it had is dropped."""
        self._stop.set()
        if self._worker is not None:
            self._worker.join()
        self._worker, self._ready = None, None
        self._stop.clear()

    def _work(self, slow: Mapping[type, Sequence[tuple[SlowLearner, Array]]]) -> None:
        try:
            self._ready = self._train(slow)
        except Exception as error:
            log.warning(
                "training failed, the old models go on: %s: %s", type(error).__name__, error
            )

    def _train(
        self, slow: Mapping[type, Sequence[tuple[SlowLearner, Array]]]
    ) -> list[tuple[SlowLearner, Any]]:
        done: list[tuple[SlowLearner, Any]] = []
        for members in slow.values():
            learners = [learner for learner, _ in members]
            results = learners[0].train_many(
                learners, [rates for _, rates in members], self._stop.is_set
            )
            done.extend(zip(learners, results, strict=True))
        return done

    @staticmethod
    def _take(done: Sequence[tuple[SlowLearner, Any]]) -> None:
        for learner, result in done:
            learner.take(result)
