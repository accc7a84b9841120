"""Programs for any number of ranks: a Llama block that is cut over ranks, a training step whose batch is, and a product with
constant weights whose rows are sent as they are done.

Each is a function of the number of ranks, made as users make them; on one rank it is the whole thing, and the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

import graphkernel as gk
from graphkernel import ops

Arrays = Mapping[str, np.ndarray]

TOKENS, WIDTH, HEADS, INNER, BATCH = 6, 16, 4, 24, 8
TALL = 800
ROWS_WEIGHT = np.random.default_rng(2).standard_normal((16, 512)).astype(np.float32) / 8


@dataclass(frozen=True)
class Program:
    """``graph(ranks)`` is what each rank runs, ``arrays`` all inputs, ``part`` those of one rank, ``whole`` all results of
    all ranks as one rank alone would have them."""

    graph: Callable[[int], gk.Graph]
    arrays: Arrays
    part: Callable[[Arrays, int, int], Arrays]


def _rms_norm(x, gain):
    return x * ops.rsqrt(ops.reduce_mean(x * x, axis=-1, keep_dims=True) + 1e-5) * gain


def _turned(x, cosines, sines):
    """Rotary positions on the halves of the last axis."""
    half = x.shape[-1] // 2
    first, second = x[:, :, :half], x[:, :, half:]
    return x * cosines + ops.concat([-second, first], axis=-1) * sines


def _heads(x, count):
    return x.reshape(TOKENS, count, WIDTH // HEADS).transpose(1, 0, 2)


def _llama(ranks: int) -> gk.Graph:
    """Attention over this rank's heads and the feed-forward over its columns, each added up over ranks."""
    heads, inner = HEADS // ranks, INNER // ranks
    own = heads * (WIDTH // HEADS)

    def block(x, norms, query, key, value, output, gate, up, down, cosines, sines):
        h = _rms_norm(x, norms[0])
        q, k = (_turned(_heads(h @ weight, heads), cosines, sines) for weight in (query, key))
        scores = ops.softmax(q @ k.transpose(0, 2, 1) * (WIDTH // HEADS) ** -0.5)
        mixed = (scores @ _heads(h @ value, heads)).transpose(1, 0, 2).reshape(TOKENS, own)
        x = x + ops.all_reduce(mixed @ output, rank_size=ranks)
        h = _rms_norm(x, norms[1])
        return x + ops.all_reduce((ops.silu(h @ gate) * (h @ up)) @ down, rank_size=ranks)

    head = WIDTH // HEADS
    shapes = [(TOKENS, WIDTH), (2, WIDTH), *[(WIDTH, own)] * 3, (own, WIDTH), *[(WIDTH, inner)] * 2, (inner, WIDTH)]
    return gk.trace(block, *map(gk.spec, [*shapes, (TOKENS, head), (TOKENS, head)]), name="llama")


def _llama_arrays() -> Arrays:
    draw = np.random.default_rng(0)
    head = WIDTH // HEADS
    angle = np.arange(TOKENS)[:, None] * 100.0 ** (-np.arange(0, head, 2) / head)
    angles = np.concatenate([angle, angle], axis=1)
    shapes = {
        "x": (TOKENS, WIDTH), "norms": (2, WIDTH), "query": (WIDTH, WIDTH), "key": (WIDTH, WIDTH), "value": (WIDTH, WIDTH),
        "output": (WIDTH, WIDTH), "gate": (WIDTH, INNER), "up": (WIDTH, INNER), "down": (INNER, WIDTH),
    }  # fmt: skip
    drawn = {name: draw.standard_normal(shape).astype(np.float32) / 2 for name, shape in shapes.items()}
    return drawn | {"cosines": np.cos(angles).astype(np.float32), "sines": np.sin(angles).astype(np.float32)}


def _llama_part(arrays: Arrays, rank: int, ranks: int) -> Arrays:
    def cut(name: str, array: np.ndarray) -> np.ndarray:
        axis = {"query": 1, "key": 1, "value": 1, "gate": 1, "up": 1, "output": 0, "down": 0}.get(name)
        return array if axis is None else np.ascontiguousarray(np.array_split(array, ranks, axis)[rank])

    return {name: cut(name, array) for name, array in arrays.items()}


def _training(ranks: int) -> gk.Graph:
    """A step of stochastic gradient descent: gradients of this rank's part of the batch, averaged over ranks."""

    def loss(weights, x, y):
        first, second = weights
        return ops.reduce_mean((ops.tanh(x @ first) @ second - y) ** 2)

    def step(x, y, first, second):
        value, gradients = gk.value_and_grad(loss)((first, second), x, y)
        for weight, gradient in zip((first, second), gradients, strict=True):
            ops.assign(weight, weight - ops.all_reduce(gradient, rank_size=ranks) * (0.1 / ranks))
        return ops.all_reduce(value, rank_size=ranks) / float(ranks)

    shapes = ((BATCH // ranks, WIDTH), (BATCH // ranks, 4), (WIDTH, INNER), (INNER, 4))
    return gk.trace(step, *map(gk.spec, shapes), name="training")


def _training_arrays() -> Arrays:
    draw = np.random.default_rng(1)
    shapes = {"x": (BATCH, WIDTH), "y": (BATCH, 4), "first": (WIDTH, INNER), "second": (INNER, 4)}
    return {name: draw.standard_normal(shape).astype(np.float32) / 2 for name, shape in shapes.items()}


def _training_part(arrays: Arrays, rank: int, ranks: int) -> Arrays:
    return {
        name: array.copy() if name in ("first", "second") else np.array_split(array, ranks)[rank].copy()
        for name, array in arrays.items()
    }


def _rows(ranks: int) -> gk.Graph:
    """A product with this rank's rows of constant weights, which repeat so that ranks have equal ones."""
    weight, bias = np.tile(ROWS_WEIGHT, (4 // ranks, 1)), np.linspace(-1, 1, ROWS_WEIGHT.shape[1], dtype=np.float32)

    def layer(x):
        return ops.relu(ops.all_reduce(ops.tanh(x) @ weight, rank_size=ranks) + bias)

    return gk.trace(layer, gk.spec((TALL, len(weight))), name="rows")


def _rows_part(arrays: Arrays, rank: int, ranks: int) -> Arrays:
    return {"x": np.ascontiguousarray(np.array_split(arrays["x"], ranks, 1)[rank])}


PROGRAMS: Mapping[str, Program] = {
    "llama": Program(_llama, _llama_arrays(), _llama_part),
    "rows": Program(_rows, {"x": np.random.default_rng(3).standard_normal((TALL, 64)).astype(np.float32)}, _rows_part),
    "training": Program(_training, _training_arrays(), _training_part),
}


def alone(name: str) -> tuple[np.ndarray, ...]:
    """The results of one process without optimizer and compiler."""
    program = PROGRAMS[name]
    return gk.evaluate(program.graph(1), program.part(program.arrays, 0, 1))


def on_rank(name: str, opt_level: int, communicator) -> tuple[np.ndarray, ...]:
    """The results of one rank."""
    program, ranks = PROGRAMS[name], communicator.size
    run = gk.compile(program.graph(ranks), opt_level, communicator=communicator)
    return run(program.part(program.arrays, communicator.rank, ranks))
