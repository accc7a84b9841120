"""Random tensors and dropout. Results are a function of the seeds, the shape and the optional operand ``step``.

Without ``step`` every run draws the same numbers, as a pure graph must; training gives the number of the step. MindSpore
draws from the clock when both seeds are 0; here 0 is a seed like any other.
"""

from __future__ import annotations

from math import pi

import numpy as np

from graphkernel.errors import TypeRuleError
from graphkernel.ir.opdef import Kind
from graphkernel.ir.types import Attrs, TensorType, dtype
from graphkernel.ops.counter_random import uniform
from graphkernel.ops.families import Array, declare, rounded
from graphkernel.ops.type_rules import expect_dtype, floating, integer, surely_nonnegative

Types = tuple[TensorType, ...]

FLOAT32 = dtype("float32")
LEAST = 2.0**-24  # what uniform numbers are multiples of


def _checked_step(steps: Types) -> None:
    if len(steps) > 1:
        raise TypeRuleError(f"takes one step at most, got {len(steps)}")
    for step in steps:
        expect_dtype(integer, step)
        if step.size != 1:
            raise TypeRuleError(f"the step must be one integer, got {step}")


def _drawn_type(types: Types, attrs: Attrs) -> Types:
    _checked_step(types)
    shape = attrs.dims("shape")
    if not all(map(surely_nonnegative, shape)):
        raise TypeRuleError("extents must not be negative")
    return (TensorType(shape, FLOAT32),)


def _drawn(shape: tuple[int, ...], seeds: tuple[int, int], steps: tuple[Array, ...], word: int = 0) -> Array:
    step = int(steps[0].reshape(())) if steps else 0
    return uniform(int(np.prod(shape)), seeds, step, word).reshape(shape)


def _uniform(*steps: Array, attrs: Attrs) -> Array:
    word = attrs.int("word", 0)
    return _drawn(attrs.ints("shape"), (attrs.int("seed", 0), attrs.int("seed2", 0)), steps, word)


UNIFORM_REAL = declare(
    "UniformReal",
    Kind.OPAQUE,
    None,
    _drawn_type,
    _uniform,
    attributes=("shape", "seed", "seed2", "word"),
    doc="([step]): float32 numbers in [0, 1), multiples of 2^-24, from one word (0 to 3) of Philox4x32-10.",
)


def _normal(*steps: Array, attrs: Attrs) -> Array:
    shape, seeds = attrs.ints("shape"), (attrs.int("seed", 0), attrs.int("seed2", 0))
    u, v = (_drawn(shape, seeds, steps, word).astype(np.float64) for word in (0, 1))
    return (np.sqrt(-2 * np.log(u + LEAST)) * np.cos(2 * pi * v)).astype(np.float32)


STANDARD_NORMAL = declare(
    "StandardNormal",
    Kind.OPAQUE,
    None,
    _drawn_type,
    _normal,
    attributes=("shape", "seed", "seed2"),
    composite=True,
    doc="([step]): normal float32 numbers, mean 0 and variance 1, by Box and Muller's transform of two words.",
)


def _keep_prob(attrs: Attrs) -> float:
    keep = attrs.float("keep_prob", 0.5)
    if not 0 < keep <= 1:
        raise TypeRuleError(f"keep_prob must be in (0, 1], got {keep}")
    return keep


def _dropout_type(types: Types, attrs: Attrs) -> Types:
    if not types:
        raise TypeRuleError("takes x and perhaps a step, got no operand")
    x, *steps = types
    expect_dtype(floating, x)
    _checked_step(tuple(steps))
    _keep_prob(attrs)
    return (x, x)


def _dropout(x: Array, *steps: Array, attrs: Attrs) -> tuple[Array, Array]:
    keep = _keep_prob(attrs)
    seeds = (attrs.int("Seed0", 0), attrs.int("Seed1", 0))
    mask = (_drawn(x.shape, seeds, steps) < np.float32(keep)).astype(x.dtype)
    return rounded(lambda wide, kept: wide * (1 / keep) * kept)(x, mask), mask


DROPOUT = declare(
    "Dropout",
    Kind.OPAQUE,
    None,
    _dropout_type,
    _dropout,
    attributes=("keep_prob", "Seed0", "Seed1"),
    composite=True,
    doc="(x, [step]) -> (x / keep_prob * mask, mask); the mask is 1 with probability keep_prob, else 0.",
)


def _dropout_grad_type(types: Types, attrs: Attrs) -> Types:
    dy, mask = types
    expect_dtype(floating, dy, mask)
    if dy.shape != mask.shape:
        raise TypeRuleError("dy and mask must have one shape")
    _keep_prob(attrs)
    return (dy,)


def _dropout_grad(dy: Array, mask: Array, *, attrs: Attrs) -> Array:
    return rounded(lambda wide, kept: wide * (1 / _keep_prob(attrs)) * kept)(dy, mask)


DROPOUT_GRAD = declare(
    "DropoutGrad",
    Kind.ELEMWISE,
    2,
    _dropout_grad_type,
    _dropout_grad,
    attributes=("keep_prob",),
    composite=True,
    doc="(dy, mask) -> dy / keep_prob * mask.",
)
