"""The recurrent networks: LSTM and GRU, read forward or in both directions, with a dense layer that
gives f steps at once.

Owns the mathematics of one network on one input window. Training, scaling to events/s
and other series are handled elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

Cell = Literal["gru", "lstm"]


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides the compiled program: the cell, the directions read, window lengths and how a
    window is normalized.

    ``lookback`` is the paper's b+1 (windows in), ``horizon`` its f (windows out). ``local``
    normalizes every input window by itself.
    """

    cell: Cell = "gru"
    bidirectional: bool = False
    local: bool = False
    lookback: int = 96
    horizon: int = 6
    hidden: int = 32


class RecurrentNetwork(eqx.Module):
    """One recurrent layer per direction and a dense layer on the last states (BGElasor, section
    3.2).

    GRU, the equations of the cell: ``r = s(Wr x + Ur h + br)``, ``z = s(Wz x + Uz h + bz)``, ``n =
    tanh(Wn x + bn + r*(Un h + cn))``, ``h' = n + z*(h - n)``; s is the logistic function. The
    forward state has seen the newest window last, the backward state the oldest one: the forecast
    is ``V [h_forward, h_backward] + c``. The paper prints a plain cell in its equations (1) to (3)
    and calls it a GRU; the gates here are those of the usual GRU and LSTM.
    """

    cells: eqx.nn.GRUCell | eqx.nn.LSTMCell
    dense: eqx.nn.Linear
    shape: Shape = eqx.field(static=True)

    def __init__(self, shape: Shape, key: jax.Array) -> None:
        directions = 2 if shape.bidirectional else 1
        keys = jax.random.split(key, directions + 1)
        kind = eqx.nn.GRUCell if shape.cell == "gru" else eqx.nn.LSTMCell
        self.cells = eqx.filter_vmap(lambda k: kind(1, shape.hidden, key=k))(keys[:directions])
        self.dense = eqx.nn.Linear(directions * shape.hidden, shape.horizon, key=keys[directions])
        self.shape = shape

    def __call__(self, window: jax.Array) -> jax.Array:
        """``lookback`` scaled rates, oldest first -> the next ``horizon`` scaled rates."""
        if not self.shape.local:
            return self.dense(self.states(window))
        # The newest rate is the origin and the spread of the window the unit, so that a network of
        # zeros holds the last rate.
        origin = window[-1]
        unit = jnp.std(window) + 1e-3 * jnp.mean(jnp.abs(window)) + 1e-6
        return origin + unit * self.dense(self.states((window - origin) / unit))

    def states(self, window: jax.Array) -> jax.Array:
        """The last hidden state of every direction, joined."""
        inputs = jnp.stack([window, window[::-1]]) if self.shape.bidirectional else window[None]
        zeros = jnp.zeros((len(inputs), self.shape.hidden))
        first = zeros if self.shape.cell == "gru" else (zeros, zeros)
        step = eqx.filter_vmap(lambda cell, x, state: cell(x[None], state))
        last, _ = jax.lax.scan(lambda state, x: (step(self.cells, x, state), None), first, inputs.T)
        return jnp.ravel(last[0] if isinstance(last, tuple) else last)
