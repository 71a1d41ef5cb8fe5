"""Training of recurrent networks: many series in one batched program, with early stopping per
series.

Owns optimizer, minibatches, stopping and how a batch is spread over the cores. Series come scaled;
what their numbers mean in events/s is not known here.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax

from foretide.forecast.evaluate import tuning_split
from foretide.forecast.recurrent_net import RecurrentNetwork, Shape

Weights = Any  # the arrays of a RecurrentNetwork: a pytree of the same structure
Scaled = npt.NDArray[np.float32]
CHUNK = 4  # series per program on processor cores


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast to learn; the same for every load, and bounded however long the series
    is.

    A round is ``steps`` minibatches of ``batch`` windows drawn at random from the training part,
    then a look at the tuning part. Training stops after ``patience`` rounds without a lower error
    there, or after ``rounds``; the best round's weights are kept. The learning rate falls from
    ``rate`` to 0 along a half cosine over all rounds. What is looked at and kept is a fading
    average of the weights, ``memory`` of it from the step before: single steps jump about, and the
    luck of the last one should not decide.
    """

    rounds: int = 80
    patience: int = 16
    steps: int = 128
    batch: int = 32
    rate: float = 2e-3
    checks: int = 512
    memory: float = 0.995


class Progress(NamedTuple):
    """What training carries from one minibatch to the next."""

    weights: Weights
    average: Weights
    optimizer: Any
    key: jax.Array


class Parts(NamedTuple):
    """One scaled series, padded at its end, and which of its windows train and which decide when to
    stop.
    """

    series: Any
    train: Any
    first_check: Any
    last_check: Any


class Program(NamedTuple):
    """The compiled functions of one shape. The first two take a leading axis over series."""

    start: Callable[[jax.Array], Progress]
    round: Callable[[Progress, Parts], tuple[Progress, jax.Array]]
    predict: Callable[[Weights, Scaled], jax.Array]
    predict_many: Callable[[Weights, Scaled], jax.Array]


def skeleton(shape: Shape) -> tuple[Weights, Any]:
    """A network of this shape, cut into its arrays and the rest."""
    weights, rest = eqx.partition(RecurrentNetwork(shape, jax.random.key(0)), eqx.is_array)
    return weights, rest


def loss(network: RecurrentNetwork, series: jax.Array, starts: jax.Array) -> jax.Array:
    """Mean squared error over the windows that begin at ``starts`` (BGElasor, equation 4)."""
    shape = network.shape
    windows = series[starts[:, None] + jnp.arange(shape.lookback + shape.horizon)]
    return jnp.mean(
        (jax.vmap(network)(windows[:, : shape.lookback]) - windows[:, shape.lookback :]) ** 2
    )


@functools.lru_cache(maxsize=64)
def program(shape: Shape, schedule: Schedule) -> Program:
    """Compiled once per shape, number of series and padded length of series."""
    total = schedule.rounds * schedule.steps
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adam(optax.cosine_decay_schedule(schedule.rate, total)),
    )
    _, rest = skeleton(shape)

    def error(weights: Weights, series: jax.Array, starts: jax.Array) -> jax.Array:
        return loss(eqx.combine(weights, rest), series, starts)

    def start(seed: jax.Array) -> Progress:
        first, key = jax.random.split(jax.random.key(seed))
        weights, _ = eqx.partition(RecurrentNetwork(shape, first), eqx.is_array)
        return Progress(weights, weights, optimizer.init(weights), key)

    def one_round(progress: Progress, parts: Parts) -> tuple[Progress, jax.Array]:
        def step(now: Progress, starts: jax.Array) -> tuple[Progress, None]:
            gradients = jax.grad(error)(now.weights, parts.series, starts)
            updates, state = optimizer.update(gradients, now.optimizer)
            weights = optax.apply_updates(now.weights, updates)
            average = optax.incremental_update(weights, now.average, 1 - schedule.memory)
            return Progress(weights, average, state, now.key), None

        key, draw = jax.random.split(progress.key)
        starts = jax.random.randint(draw, (schedule.steps, schedule.batch), 0, parts.train)
        progress, _ = jax.lax.scan(step, progress._replace(key=key), starts)
        spread = jnp.linspace(0.0, 1.0, schedule.checks) * (parts.last_check - parts.first_check)
        return progress, error(
            progress.average, parts.series, parts.first_check + jnp.round(spread).astype(int)
        )

    def predict(weights: Weights, window: Scaled) -> jax.Array:
        network: RecurrentNetwork = eqx.combine(weights, rest)
        return network(jnp.asarray(window))

    functions = (
        jax.vmap(start),
        jax.vmap(one_round),
        predict,
        jax.vmap(predict, in_axes=(None, 0)),
    )
    return Program(*(_precise(jax.jit(f)) for f in functions))


def _precise(function: Callable[..., Any]) -> Callable[..., Any]:
    """With whole 32-bit products: accelerators shorten them otherwise, and a recurrence adds that
    up.
    """

    @functools.wraps(function)
    def called(*arguments: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return function(*arguments)

    return called


def train(
    shape: Shape,
    schedule: Schedule,
    series: Sequence[Scaled],
    seeds: Sequence[int],
    stopped: Callable[[], bool] = lambda: False,
) -> list[Weights]:
    """One network per series, trained side by side. Each series and seed gives the same network
    alone or in company, up to rounding.

    An accelerator trains all of them in one program. On processor cores a program of ``CHUNK``
    series at a time still fits the cache, and every core runs one. ``stopped`` is called after
    every round: when it returns True, training ends with the weights it has.
    """
    on_cores = jax.default_backend() == "cpu"
    size = min(CHUNK, len(series)) if on_cores else len(series)
    length = 1 << max(9, (max(map(len, series)) - 1).bit_length())  # few lengths, few compilations
    parts = [_parts(shape, s, length) for s in series]
    firsts = range(0, len(series), size)

    def chunk(first: int) -> list[Weights]:
        # The last chunk is filled up with copies of its last series: one shape, one compilation.
        members = [min(first + i, len(series) - 1) for i in range(size)]
        return _side_by_side(
            program(shape, schedule),
            schedule,
            [parts[m] for m in members],
            [seeds[m] for m in members],
            stopped,
        )

    with ThreadPoolExecutor(min(len(firsts), _cores()) if on_cores else 1) as cores:
        trained = [weights for part in cores.map(chunk, firsts) for weights in part]
    return trained[: len(series)]


def _cores() -> int:
    """Cores this process may use; the system call is not everywhere."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _side_by_side(
    run: Program,
    schedule: Schedule,
    members: Sequence[Parts],
    seeds: Sequence[int],
    stopped: Callable[[], bool],
) -> list[Weights]:
    parts = Parts(*(np.stack(values) for values in zip(*members, strict=True)))
    progress = run.start(jnp.array(seeds))
    best, least, waited = (
        progress.average,
        np.full(len(members), np.inf),
        np.zeros(len(members), int),
    )
    for _ in range(schedule.rounds):
        progress, error = run.round(progress, parts)
        better = (np.asarray(error) < least) & (waited < schedule.patience)
        best = _select(better, progress.average, best)
        least, waited = np.where(better, error, least), np.where(better, 0, waited + 1)
        if (waited >= schedule.patience).all() or stopped():
            break
    host = jax.tree.map(np.asarray, best)
    return [jax.tree.map(lambda w, i=i: w[i], host) for i in range(len(members))]


@jax.jit
def _select(take: Any, new: Weights, old: Weights) -> Weights:
    return jax.tree.map(
        lambda n, o: jnp.where(take.reshape(-1, *(1,) * (n.ndim - 1)), n, o), new, old
    )


def _parts(shape: Shape, series: Scaled, length: int) -> Parts:
    cut, width = tuning_split(len(series)), shape.lookback + shape.horizon
    padded = np.zeros(length, np.float32)
    padded[: len(series)] = series
    return Parts(
        padded,
        np.int32(cut - width + 1),
        np.int32(cut - shape.lookback),
        np.int32(len(series) - width),
    )
