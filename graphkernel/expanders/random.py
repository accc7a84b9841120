"""Random operators: what they draw is UniformReal, which stays one operator; what they compute from it is not random."""

from __future__ import annotations

from math import pi

from graphkernel import ops
from graphkernel.expanders.base import expander
from graphkernel.ops import Tensor
from graphkernel.ops.library import random
from graphkernel.ops.library.random import LEAST, UNIFORM_REAL
from kernelgen.tensor.graph import Builder
from kernelgen.tensor.types import Attrs, Dim


@expander(random.STANDARD_NORMAL, with_builder=True)
def standard_normal(*steps: Tensor, attrs: Attrs, builder: Builder) -> Tensor:
    """sqrt(-2 * log(u + 2^-24)) * cos(2 * pi * v), u and v two words of UniformReal"""
    shape, seeds = attrs.dims("shape"), (attrs.int("seed", 0), attrs.int("seed2", 0))
    u, v = (_uniform(shape, seeds, steps, builder, word) for word in (0, 1))
    return ops.sqrt(-2.0 * ops.log(u + LEAST)) * ops.cos(2 * pi * v)


@expander(random.DROPOUT)
def dropout(x: Tensor, *steps: Tensor, attrs: Attrs) -> tuple[Tensor, Tensor]:
    """(x * (1 / keep_prob) * mask, mask) with mask = cast(u < keep_prob), u of UniformReal"""
    keep = attrs.float("keep_prob", 0.5)
    drawn = _uniform(x.shape, (attrs.int("Seed0", 0), attrs.int("Seed1", 0)), steps, x.builder)
    mask = ops.cast(drawn < keep, x.dtype)
    return x * (1 / keep) * mask, mask


@expander(random.DROPOUT_GRAD)
def dropout_grad(dy: Tensor, mask: Tensor, *, attrs: Attrs) -> Tensor:
    """dy * (1 / keep_prob) * mask"""
    return dy * (1 / attrs.float("keep_prob", 0.5)) * mask


def _uniform(
    shape: tuple[Dim, ...], seeds: tuple[int, int], steps: tuple[Tensor, ...], builder: Builder, word: int = 0
) -> Tensor:
    values = tuple(step.value for step in steps)
    drawn = builder.emit(UNIFORM_REAL, *values, shape=shape, seed=seeds[0], seed2=seeds[1], word=word)
    return Tensor(drawn, builder)
