"""The cells against the equations, worked out step by step with numpy."""

import equinox as eqx
import jax
import numpy as np
import pytest

from foretide.forecast.recurrent_net import Cell, RecurrentNetwork, Shape
from foretide.forecast.recurrent_training import Schedule, loss, program, skeleton
from foretide.model import Array

pytestmark = pytest.mark.slow  # compiling takes its time
WINDOW = np.array([0.1, 0.5, 0.9, 0.4, 0.2, 0.7], dtype=np.float32)


def logistic(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def gru(cells: object, way: int, rates: Array) -> Array:
    """r = s(Wr x + Ur h + br), z likewise, n = tanh(Wn x + bn + r(Un h + cn)), h' = n + z(h-n)."""
    wx, wh, b, c = (
        np.asarray(getattr(cells, k)[way], dtype=float)
        for k in ("weight_ih", "weight_hh", "bias", "bias_n")
    )
    size = len(c)
    h = np.zeros(size)
    for x in rates:
        r = logistic(wx[:size, 0] * x + wh[:size] @ h + b[:size])
        z = logistic(wx[size : 2 * size, 0] * x + wh[size : 2 * size] @ h + b[size : 2 * size])
        n = np.tanh(wx[2 * size :, 0] * x + b[2 * size :] + r * (wh[2 * size :] @ h + c))
        h = n + z * (h - n)
    return h


def lstm(cells: object, way: int, rates: Array) -> Array:
    """i, f, o = s(W x + U h + b); g = tanh(...); c' = f c + i g; h' = o tanh(c')."""
    wx, wh, b = (
        np.asarray(getattr(cells, k)[way], dtype=float) for k in ("weight_ih", "weight_hh", "bias")
    )
    size = len(b) // 4
    h, c = np.zeros(size), np.zeros(size)
    for x in rates:
        i, f, g, o = np.split(wx[:, 0] * x + wh @ h + b, 4)
        c = logistic(f) * c + logistic(i) * np.tanh(g)
        h = logistic(o) * np.tanh(c)
    return h


@pytest.mark.parametrize(("cell", "reference"), [("gru", gru), ("lstm", lstm)])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_network_is_its_equations(cell: Cell, reference: object, bidirectional: bool) -> None:
    network = RecurrentNetwork(
        Shape(cell, bidirectional, lookback=6, horizon=3, hidden=5), jax.random.key(3)
    )
    states = [reference(network.cells, 0, WINDOW)] + [
        reference(network.cells, 1, WINDOW[::-1])
    ] * bidirectional  # type: ignore[operator]
    dense = (
        np.asarray(network.dense.weight, dtype=float),
        np.asarray(network.dense.bias, dtype=float),
    )
    np.testing.assert_allclose(
        eqx.filter_jit(network.states)(WINDOW), np.concatenate(states), atol=2e-6
    )
    np.testing.assert_allclose(
        eqx.filter_jit(network)(WINDOW), dense[0] @ np.concatenate(states) + dense[1], atol=2e-6
    )


def test_a_local_network_follows_the_level_and_the_unit_of_its_window() -> None:
    network = RecurrentNetwork(
        Shape(local=True, lookback=6, horizon=3, hidden=5), jax.random.key(3)
    )
    run = eqx.filter_jit(lambda n, w: n(w))
    small, large = np.asarray(run(network, WINDOW)), np.asarray(run(network, 40 * WINDOW))
    np.testing.assert_allclose(large, 40 * small, rtol=1e-3)
    silent = eqx.tree_at(
        lambda n: (n.dense.weight, n.dense.bias), network, replace_fn=lambda w: 0 * w
    )
    np.testing.assert_allclose(run(silent, WINDOW), np.full(3, WINDOW[-1]), rtol=1e-6)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_gradients_are_finite_even_on_a_constant_load(cell: Cell, local: bool) -> None:
    shape = Shape(cell, bidirectional=True, local=local, lookback=6, horizon=2, hidden=4)
    weights, rest = skeleton(shape)
    gradient = jax.jit(jax.grad(lambda w, s: loss(eqx.combine(w, rest), s, np.arange(4))))
    for series in (np.zeros(12), np.ones(12), np.linspace(0, 1, 12), np.full(12, 1e3)):
        assert all(
            np.isfinite(g).all()
            for g in jax.tree.leaves(gradient(weights, series.astype(np.float32)))
        )


def test_one_shape_is_compiled_once() -> None:
    assert program(Shape(), Schedule()) is program(Shape(), Schedule())
