"""Groupings without a compiled rule in the event engines: the engines call their Python ``assign``.

Compiled code reaches Python through two C callbacks whose addresses are part of the state. A state
without such groupings has None there, and its engine is compiled without the calls, so the built-in
groupings pay nothing. A call takes some ten microseconds.

As on Spark, the micro-batch engine assigns a whole batch at once. The event engine assigns one
event at a time, with ``start`` counting the events so far. ``learn`` is called once per window.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.extending import intrinsic

from foretide.balance.grouping import Feedback, Grouping, cost_learner
from foretide.balance.keys import Keys, mixed
from foretide.errors import InvalidRecord
from foretide.model import Array
from foretide.sim.events.state import TIMEOUT_S, EngineState

_CHOOSE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_uint64, ctypes.c_double)
_SERVED = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint64, ctypes.c_double
)


class Addresses(NamedTuple):
    """Where compiled code finds the two callbacks."""

    choose: int
    served: int


def _caller(*arguments: Any) -> Callable[..., Any]:
    """A compiled call of a C function, by its address, that returns a 64-bit integer."""

    def typed(context: Any, address: Any, values: Any) -> Any:
        types: Any = numba.types
        signature = types.int64(types.int64, types.Tuple(arguments))

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            cgutils: Any = numba.core.cgutils
            values = cgutils.unpack_tuple(builder, args[1])
            function = ir.FunctionType(ir.IntType(64), [v.type for v in values])
            return builder.call(builder.inttoptr(args[0], function.as_pointer()), values)

        return signature, code

    return cast("Callable[..., Any]", intrinsic(typed))


call_choose = _caller(numba.types.int64, numba.types.uint64, numba.types.float64)
call_served = _caller(numba.types.int64, numba.types.int64, numba.types.uint64, numba.types.float64)


class PythonGroupings:
    """The groupings of a model's operators (by their numbers) that have no compiled rule.

    ``state`` returns the model's state, which moves when it grows. An exception cannot pass through
    compiled code: it is kept until ``check``.
    """

    def __init__(
        self, groupings: Mapping[int, Grouping], state: Callable[[], EngineState], batched: bool
    ) -> None:
        self._groupings = groupings
        self._state = state
        self._batched = batched
        self._assigned = dict.fromkeys(groupings, 0)
        self._replicas: dict[int, list[int]] = {op: [] for op in groupings}
        self._services: dict[int, list[tuple[int, int, float]]] = {op: [] for op in groupings}
        self._error: BaseException | None = None
        self._callbacks = (_CHOOSE(self._choose), _SERVED(self._served))

    @property
    def addresses(self) -> Addresses:
        choose, served = (ctypes.cast(c, ctypes.c_void_p).value or 0 for c in self._callbacks)
        return Addresses(choose, served)

    def check(self) -> None:
        """Raise what a grouping raised."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def close_window(self, window_s: float) -> None:
        """Give each grouping what the window measured, before its counters are cleared."""
        s = self._state()
        for op, grouping in self._groupings.items():
            if not grouping.traits.wants_reports:
                continue
            first, replicas = int(s.ops["base"][op]), int(s.ops["replicas"][op])
            window = s.w_slots[first : first + replicas]
            feedback = Feedback(window["busy_s"].copy(), window["done"].copy(), window_s)
            grouping.learn(self._with_costs(op, grouping, feedback))

    def _with_costs(self, op: int, grouping: Grouping, feedback: Feedback) -> Feedback:
        services, self._services[op] = self._services[op], []
        learner = cost_learner(grouping)
        if learner is None:
            return feedback
        keys: Keys = np.array([key for _, key, _ in services], dtype=np.uint64)
        costs, expected_s = learner.new_sketch(), np.zeros(len(feedback.busy_s))
        costs.update(keys, np.array([seconds for *_, seconds in services], dtype=float))
        for (replica, *_), seconds in zip(services, learner.estimate(keys), strict=True):
            if replica < len(expected_s):
                expected_s[replica] += seconds
        return Feedback(feedback.busy_s, feedback.processed, feedback.span_s, costs, expected_s)

    def _choose(self, op: int, key: int, now: float) -> int:
        try:
            if not self._replicas[op]:
                self._replicas[op] = self._assign(op, key, now)
            return self._replicas[op].pop()
        except BaseException as error:
            self._error = self._error or error
            return 0

    def _assign(self, op: int, key: int, now: float) -> list[int]:
        """Replicas of the event and, in a micro-batch, of those that follow it, last one first."""
        s, grouping = self._state(), self._groupings[op]
        keys: Keys = np.array([key], dtype=np.uint64)
        if self._batched:
            keys = np.concatenate([keys, _waiting(s, op, now)])
        replicas = int(s.ops["replicas"][op])
        ids = np.asarray(grouping.assign(keys, replicas, self._assigned[op]))
        if ids.shape != keys.shape or ids.min() < 0 or ids.max() >= replicas:
            raise InvalidRecord(
                f"{type(grouping).__name__}.assign must return one replica in [0, {replicas}) for "
                f"each of {len(keys)} events, it returned {ids}"
            )
        self._assigned[op] += len(keys)
        return [int(i) for i in ids[::-1]]

    def _served(self, op: int, replica: int, key: int, seconds: float) -> int:
        if seconds > 0 and self._groupings[op].traits.learns_costs:
            self._services[op].append((replica, key, seconds))
        return 0


def _waiting(s: EngineState, op: int, now: float) -> Keys:
    """Keys of an operator's waiting events that are not too old."""
    queue = s.slots[int(s.ops["base"][op])]
    job, values = int(queue["head"]), list[int]()
    for _ in range(int(queue["length"])):
        if now - s.jobs["entered"][job] <= s.clock[TIMEOUT_S]:
            values.append(int(s.jobs["value"][job]))
        job = int(s.jobs["next"][job])
    plain: Array = np.array(values, dtype=np.uint64)
    with np.errstate(over="ignore"):
        return mixed(cast("Keys", plain))
