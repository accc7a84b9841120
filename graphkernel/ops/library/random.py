"""Random tensors and dropout. With seeds, results are a function of them, the shape and the optional operand ``step``.

Where both seeds are 0, as they are unless they are given, every operator draws anew in every run, as in MindSpore: from
the entropy of the machine, so that threads, forks and machines draw apart. No two such operators are ever one
(:func:`is_random`). With seeds each run draws the same numbers; training gives the number of the step.
"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import count
from math import pi

import numpy as np

from graphkernel.errors import TypeRuleError
from graphkernel.ops.library.counter_random import uniform
from graphkernel.ops.library.host import is_random_onnx
from kernelgen.tensor.graph import Graph, Node, Value, keep
from kernelgen.tensor.operator import Kind, Traits
from kernelgen.tensor.operators.attributes import dims, real_number, whole
from kernelgen.tensor.operators.families import Array, declare, rounded
from kernelgen.tensor.operators.type_rules import expect_dtype, floating, integer, surely_nonnegative
from kernelgen.tensor.types import Attrs, TensorType, dtype

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


SEEDS, DROPOUT_SEEDS = ("seed", "seed2"), ("Seed0", "Seed1")


def is_random(node: Node) -> bool:
    """Whether each run gives other numbers: two such nodes are never one, and none is computed before the run."""
    if node.body is not None:
        return any(map(is_random, node.body.operators))
    names = node.op.traits.seeds
    return not any(node.attrs.int(name, 0) for name in names) if names else is_random_onnx(node)


def seeded(graph: Graph, seed: int = 0) -> Graph:
    """The graph whose operators draw the same numbers in every run: those without seeds get ``seed`` and a number each.

    For comparisons: of what draws anew no two runs agree. Generic operators of ONNX stay as they are.
    """
    numbers = count(1)

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        made = keep(node, args)
        if node.op.traits.seeds and is_random(node):
            first, second = node.op.traits.seeds
            made = replace(made, attrs=made.attrs.with_(**{first: seed, second: next(numbers)}))
        return made.outs

    return graph.rebuild(rewrite)


def _seeds(attrs: Attrs, names: tuple[str, str] = SEEDS) -> tuple[int, int]:
    first, second = (attrs.int(name, 0) for name in names)
    return first, second


def _drawn(shape: tuple[int, ...], seeds: tuple[int, int], steps: tuple[Array, ...], word: int = 0) -> Array:
    step = int(steps[0].reshape(())) if steps else 0
    if seeds == (0, 0):
        drawn = np.frombuffer(os.urandom(16), np.uint32)
        seeds, step = (int(drawn[0]), int(drawn[1])), int(drawn[2:].view(np.uint64)[0])
    return uniform(int(np.prod(shape)), seeds, step, word).reshape(shape)


def _uniform(*step: Array, attrs: Attrs) -> Array:
    """([step]): float32 numbers in [0, 1), multiples of 2^-24, from one word (0 to 3) of Philox4x32-10; anew each time
    where both seeds are 0."""
    return _drawn(attrs.ints("shape"), _seeds(attrs), step, attrs.int("word", 0))


DRAWN_TRAITS = Traits(call=("shape",), seeds=SEEDS)
DRAWN, KEEP = (dims(), whole("seed", 0), whole("seed2", 0)), real_number("keep_prob", 0.5)
UNIFORM_REAL = declare(
    "UniformReal", Kind.OPAQUE, None, _drawn_type, _uniform, attributes=(*DRAWN, "word"), traits=DRAWN_TRAITS
)


def _normal(*step: Array, attrs: Attrs) -> Array:
    """([step]): normal float32 numbers, mean 0 and variance 1, by Box and Muller's transform of two words; anew each
    time where both seeds are 0."""
    shape, seeds = attrs.ints("shape"), _seeds(attrs)
    u, v = (_drawn(shape, seeds, step, word).astype(np.float64) for word in (0, 1))
    return (np.sqrt(-2 * np.log(u + LEAST)) * np.cos(2 * pi * v)).astype(np.float32)


STANDARD_NORMAL = declare(
    "StandardNormal",
    Kind.OPAQUE,
    None,
    _drawn_type,
    _normal,
    attributes=DRAWN,
    traits=DRAWN_TRAITS,
    composite=True,
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


def _dropout(x: Array, *step: Array, attrs: Attrs) -> tuple[Array, Array]:
    """(x, [step]) -> (x / keep_prob * mask, mask); the mask is 1 with probability keep_prob, else 0; drawn anew each
    time where both seeds are 0."""
    keep = _keep_prob(attrs)
    mask = (_drawn(x.shape, _seeds(attrs, DROPOUT_SEEDS), step) < np.float32(keep)).astype(x.dtype)
    return rounded(lambda wide, kept: wide * (1 / keep) * kept)(x, mask), mask


DROPOUT = declare(
    "Dropout",
    Kind.OPAQUE,
    None,
    _dropout_type,
    _dropout,
    attributes=(KEEP, whole("Seed0", 0)._replace(parameter="seed0"), whole("Seed1", 0)._replace(parameter="seed1")),
    composite=True,
    traits=Traits(seeds=DROPOUT_SEEDS),
)


def _dropout_grad_type(types: Types, attrs: Attrs) -> Types:
    dy, mask = types
    expect_dtype(floating, dy, mask)
    if dy.shape != mask.shape:
        raise TypeRuleError("dy and mask must have one shape")
    _keep_prob(attrs)
    return (dy,)


def _dropout_grad(dy: Array, mask: Array, *, attrs: Attrs) -> Array:
    """(dy, mask) -> dy / keep_prob * mask."""
    return rounded(lambda wide, kept: wide * (1 / _keep_prob(attrs)) * kept)(dy, mask)


DROPOUT_GRAD = declare(
    "DropoutGrad", Kind.ELEMWISE, 2, _dropout_grad_type, _dropout_grad, attributes=(KEEP,), composite=True
)
