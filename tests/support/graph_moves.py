"""What a random graph may do next: a table of moves over a pool of values.

Every value of the pool broadcasts with every other: its dims are the graph's extents or 1. Moves keep magnitudes small
and are well conditioned, so that a difference in the numbers is a fault and not a rounding. What jumps (comparisons,
the gradient of ReLU) looks at exact values only: inputs, and what was only moved, negated or compared from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from graphkernel import ops
from graphkernel.ops import Tensor
from kernelgen.tensor.types import Shape, Sym

EPSILON = 0.1  # in norms: a variance near 0 makes small errors large
LARGEST = 8.0


@dataclass(frozen=True)
class Entry:
    """A value of the pool, and whether every way of computing it gives the same bits."""

    tensor: Tensor
    exact: bool = False


@dataclass
class Pool:
    """The values so far, the inputs that may be written into, and the shape that all broadcast to."""

    random: Random
    full: Shape
    empty: bool  # an extent is 0
    values: list[Entry] = field(default_factory=list[Entry])
    targets: list[Tensor] = field(default_factory=list[Tensor])
    moments: tuple[Tensor, ...] = ()

    def any(self) -> Tensor:
        """A value, the last ones more often."""
        recent = self.values[-3:] if self.random.random() < 0.5 else self.values
        return self.random.choice(recent).tensor

    def exact(self) -> Tensor:
        """A value that is computed alike everywhere."""
        return self.random.choice([entry for entry in self.values if entry.exact]).tensor

    def ranked(self) -> Tensor:
        """A value of the full shape."""
        found = [entry.tensor for entry in self.values if entry.tensor.shape == self.full]
        return self.random.choice(found)

    def exact_ranked(self) -> Tensor:
        """An exact value of the full shape."""
        return self.random.choice([e.tensor for e in self.values if e.exact and e.tensor.shape == self.full])

    def like(self, x: Tensor) -> Tensor:
        """Another value of the same shape."""
        return self.random.choice([entry.tensor for entry in self.values if entry.tensor.shape == x.shape])

    def axis(self, x: Tensor) -> int:
        """An axis of a value that has one."""
        return self.random.randrange(x.ndim)


Made = Tensor | Sequence[Tensor]
Move = Callable[[Pool], Made]


def channel(pool: Pool, x: Tensor, axis: int, around: float = 0.0) -> Tensor:
    """A vector along an axis of x, made from a value of the full shape."""
    others = [index for index in range(x.ndim) if index != axis]
    return ops.tanh(ops.reduce_max(pool.ranked(), axis=others)) * 0.5 + around if others else ops.tanh(pool.ranked())


def _unary(function: Callable[[Any], Any]) -> Move:
    return lambda pool: function(pool.any())


def _binary(function: Callable[[Any, Any], Any]) -> Move:
    return lambda pool: function(pool.any(), pool.any())


def _rows(function: Callable[[Any], Any]) -> Move:
    """On a value of the full shape."""
    return lambda pool: function(pool.ranked())


def _pair(function: Callable[[Any, Any], Any]) -> Move:
    """On two values of one shape."""

    def move(pool: Pool) -> Made:
        x = pool.any()
        return function(x, pool.like(x))

    return move


def _layer_norm(pool: Pool) -> Made:
    x = pool.ranked()
    gamma, beta = (channel(pool, x, x.ndim - 1, around) for around in (1.0, 0.0))
    return ops.layer_norm(x, gamma, beta, epsilon=EPSILON)


def _layer_norm_grad(pool: Pool) -> Made:
    x, gamma = pool.ranked(), channel(pool, pool.ranked(), len(pool.full) - 1, 1.0)
    _, mean, variance = ops.layer_norm(x, gamma, gamma, epsilon=EPSILON)
    return ops.layer_norm_grad(x, pool.ranked(), variance, mean, gamma, epsilon=EPSILON)


def _rms_norm(pool: Pool) -> Made:
    x = pool.ranked()
    gamma = channel(pool, x, x.ndim - 1, 1.0)
    y, rstd = ops.rms_norm(x, gamma, epsilon=EPSILON)
    return (y, *ops.rms_norm_grad(pool.ranked(), x, rstd, gamma)) if pool.random.random() < 0.5 else y


def _batch_norm(pool: Pool) -> Made:
    x = pool.ranked()
    scale, bias, mean = (channel(pool, x, 1, around) for around in (1.0, 0.0, 0.0))
    variance = ops.square(channel(pool, x, 1)) + 0.5
    if pool.random.random() < 0.5:
        return ops.batch_norm(x, scale, bias, mean, variance, epsilon=EPSILON)
    y, *running, saved, spread = ops.batch_norm(x, scale, bias, mean, variance, epsilon=EPSILON, is_training=True)
    return (y, *running, *ops.batch_norm_grad(pool.ranked(), x, scale, saved, spread, EPSILON, is_training=True))


def _bias(pool: Pool) -> Made:
    x = pool.ranked()
    return ops.bias_add(x, channel(pool, x, 1))


def _matmul(pool: Pool) -> Made:
    """A square product in the middle, so that the shape stays."""
    x, y = pool.ranked(), pool.ranked()
    return ops.matmul(ops.softmax(ops.matmul(x, y, transpose_b=True)), pool.ranked())


def _transposed(pool: Pool) -> Made:
    x = pool.ranked()
    order = list(range(x.ndim))
    pool.random.shuffle(order)
    inverse = tuple(int(axis) for axis in np.argsort(order))
    return ops.transpose(ops.tanh(ops.transpose(x, order)), inverse)


def _reshaped(pool: Pool) -> Made:
    x = pool.ranked()
    flat = ops.reshape(x, (x.size,))
    return ops.reshape(flat * 0.5 if pool.random.random() < 0.5 else flat, x.shape)


def _reduced(function: Callable[..., Any], bounded: bool = True) -> Move:
    def move(pool: Pool) -> Made:
        x = pool.ranked()
        axes = [axis for axis in range(x.ndim) if pool.random.random() < 0.5]
        found = function(x, axis=axes or [pool.axis(x)], keep_dims=True)
        return found if bounded else ops.tanh(found)

    return move


def _sliced(pool: Pool) -> Made:
    """Cut in two along an axis and joined the other way round."""
    x = pool.ranked()
    axis = pool.axis(x)
    extent = x.shape[axis]
    if isinstance(extent, Sym) or extent < 2:
        return ops.neg(x)
    at = pool.random.randrange(1, extent)
    key = [slice(None)] * axis
    return ops.concat((x[(*key, slice(at, None))], x[(*key, slice(None, at))]), axis=axis)


def _split(pool: Pool) -> Made:
    x = pool.ranked()
    extent = x.shape[-1]
    if isinstance(extent, Sym) or extent < 2:
        return ops.abs(x)
    parts = ops.split(x, extent, axis=-1)
    return ops.add_n(*parts) * (1.0 / extent)


def _gathered(pool: Pool) -> Made:
    x = pool.ranked()
    extent = x.shape[-1]
    if isinstance(extent, Sym) or extent == 0:
        return ops.tanh(x)
    indices = np.asarray([pool.random.randrange(extent) for _ in range(extent)], np.int32)
    return ops.gather(x, indices, axis=-1)


def _one_hot(pool: Pool) -> Made:
    extent = pool.full[-1]
    if isinstance(extent, Sym) or extent == 0:
        return ops.tanh(pool.ranked())
    x = pool.ranked()
    best = ops.cast(ops.reduce_sum(ops.cast(pool.exact() > 0.0, "int32")), "int32")
    return ops.one_hot(best % extent, extent, np.asarray(1, x.dtype.numpy), np.asarray(0, x.dtype.numpy)) * x


def _select(pool: Pool) -> Made:
    a, b = pool.exact(), pool.exact()
    test = pool.random.choice((ops.less, ops.less_equal, ops.greater, ops.greater_equal, ops.equal, ops.not_equal))
    condition = test(a, b)
    if pool.random.random() < 0.3:
        condition = ops.logical_not(ops.logical_and(condition, a > 0.0))
    return ops.select(condition, pool.any(), pool.any())


def _cross_entropy(pool: Pool) -> Made:
    x = pool.ranked()
    loss, gradient = ops.softmax_cross_entropy_with_logits(x, ops.softmax(pool.ranked()))
    return ops.expand_dims(loss, -1), gradient


def _extremes(function: Callable[..., Any]) -> Move:
    return lambda pool: function(pool.exact_ranked(), pool.exact_ranked(), pool.ranked())


def _relu_grad(pool: Pool) -> Made:
    return ops.relu_grad(pool.ranked(), pool.exact_ranked())


def _assign(pool: Pool) -> Made:
    target = pool.random.choice(pool.targets)
    return ops.assign(target, ops.broadcast_to(pool.any(), target.shape))


def _assign_add(pool: Pool) -> Made:
    return ops.assign_add(pool.random.choice(pool.targets), pool.any())


def _adam(pool: Pool) -> Made:
    gradient = ops.broadcast_to(pool.any(), pool.full)
    var, m, v = pool.moments
    return ops.adam_weight_decay(var, m, v, 1e-3, 0.9, 0.99, 0.1, 0.01, gradient)


def _momentum(pool: Pool) -> Made:
    var, m, _ = pool.moments
    return ops.apply_momentum(var, m, 0.1, ops.broadcast_to(pool.any(), pool.full), 0.9)


def _constant(pool: Pool) -> Made:
    """A constant of one element, one row, or of random shape."""
    x = pool.any()
    shape = tuple(1 if isinstance(dim, Sym) or pool.random.random() < 0.3 else dim for dim in pool.full)
    values = np.random.default_rng(pool.random.randrange(99)).uniform(
        -1, 1, shape if pool.random.random() < 0.5 else ()
    )
    return x * values.astype(x.dtype.numpy)


# Exact moves give the same bits however they are computed, on exact operands.
EXACT: tuple[Move, ...] = (
    *map(_unary, (ops.neg, ops.abs, ops.relu, lambda x: x * 1.0, lambda x: x + 0.0, lambda x: x * 0.5, lambda x: 0.0 - x)),
    *map(_binary, (ops.maximum, ops.minimum)),
)  # fmt: skip
ALWAYS: tuple[Move, ...] = (
    *map(
        _unary,
        (
            ops.tanh, ops.sigmoid, ops.square, ops.gelu, ops.silu, ops.erf, ops.softplus, ops.sin, ops.cos, ops.exp,
            lambda x: ops.gelu(x, approximate="tanh"), lambda x: ops.exp(-ops.abs(x)), lambda x: ops.sqrt(ops.abs(x) + 1.0),
            lambda x: ops.rsqrt(ops.square(x) + 1.0), lambda x: ops.log(ops.abs(x) + 1.0), lambda x: 1.0 / (ops.abs(x) + 1.0),
            lambda x: ops.pow(x, 2.0), lambda x: ops.pow(x, 3.0), lambda x: x / 4.0, lambda x: 1.5 - x, ops.leaky_relu,
            lambda x: ops.cast(ops.cast(x, "float64"), x.dtype), ops.ones_like, ops.zeros_like, ops.elu,
            lambda x: ops.squeeze(ops.expand_dims(x, 0), 0), lambda x: ops.reduce_sum(ops.expand_dims(x, 0), 0),
        ),
    ),
    *map(
        _binary,
        (
            lambda x, y: x + y, lambda x, y: x - y, lambda x, y: ops.tanh(x) * y, lambda x, y: x / (ops.abs(y) + 1.0),
            ops.squared_difference, lambda x, y: x * y + x, lambda x, y: ops.add_n(x, x, x) - y,
        ),
    ),
    *map(
        _pair,
        (
            lambda x, y: ops.gelu_grad(x, y), lambda x, y: ops.tanh_grad(ops.tanh(x), y), ops.silu_grad,
            lambda x, y: ops.sigmoid_grad(ops.sigmoid(x), y), ops.sigmoid_cross_entropy_with_logits,
            lambda x, y: ops.sqrt_grad(ops.sqrt(ops.abs(x) + 1.0), y), lambda x, y: ops.add_n(x, y, x),
            lambda x, y: ops.fused_mul_add(x, ops.tanh(y), x), lambda x, y: ops.softplus_grad(y, x),
        ),
    ),
    _select, _reduced(ops.reduce_sum, bounded=False), _reshaped, _transposed, _sliced, _split, _gathered, _relu_grad,
    _extremes(ops.maximum_grad), _extremes(ops.minimum_grad), _assign, _assign_add, _adam, _momentum, _constant,
    _rows(lambda x: ops.tanh(ops.reduce_sum(ops.square(x), keep_dims=False))),
)  # fmt: skip
NOT_EMPTY: tuple[Move, ...] = (
    *map(
        _rows,
        (
            ops.softmax, ops.log_softmax, lambda x: ops.softmax(x, axis=0), lambda x: ops.reduce_max(x) - x,
            lambda x: ops.reduce_mean(x, axis=-1, keep_dims=True) - x,
        ),
    ),
    *map(_reduced, (ops.reduce_max, ops.reduce_min, ops.reduce_mean)),
    _pair(lambda x, y: ops.log_softmax_grad(ops.log_softmax(x), y) if x.ndim else x + y),
    _pair(lambda x, y: ops.softmax_grad(ops.softmax(x), y) if x.ndim else x - y),
    _layer_norm, _layer_norm_grad, _rms_norm, _batch_norm, _bias, _matmul, _one_hot, _cross_entropy,
)  # fmt: skip
