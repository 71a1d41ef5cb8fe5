"""The earliest instant of many, against a plain search."""

from typing import Any, NamedTuple

import numba
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from foretide.sim.events import agenda


class Agenda(NamedTuple):
    due_time: Any
    due_bits: Any
    due_slot: Any


@numba.njit
def _set(s, slot, time):
    agenda.set_due(s, slot, time)
    return agenda.due_of(s, slot)


@settings(max_examples=60, deadline=None)
@given(
    slots=st.integers(1, 40),
    changes=st.lists(
        st.tuples(
            st.integers(0, 39),
            st.one_of(st.floats(0, 1e9), st.just(np.inf), st.sampled_from([0.0, -0.0, 5e-324])),
        ),
        max_size=60,
    ),
)
def test_the_top_is_the_earliest(slots, changes):
    s, due = Agenda(*agenda.new_agenda(slots)), np.full(slots, np.inf)
    for number, time in changes:
        slot = number % slots
        due[slot] = time
        assert _set(s, slot, time) == time
        assert s.due_time[1] == due.min()
        if due.min() < np.inf:
            assert due[s.due_slot[1]] == due.min()
