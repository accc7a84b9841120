"""Inputs on which a kernel and its reference can be compared: ordinary numbers, far from poles, indices in range.

As in AKG: Gaussian with sigma 0.1 around the smallest mean in 1..20 for which no denominator, root or logarithm of a dry
run on scalars comes near 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kernelgen.composite.bind_sizes import specialize
from kernelgen.composite.description import IN_PLACE_OPS, KernelDesc, OpDesc
from kernelgen.composite.scalar_rules import REDUCTIONS, scalar_rule
from kernelgen.composite.vocabulary import facts, names_of
from kernelgen.samples.index_inputs import index_inputs
from kernelgen.semantics.algebra import Array, ArrayAlgebra
from kernelgen.tensor.dims import product
from kernelgen.tensor.dtypes import BOOL, Category, DType
from kernelgen.tensor.operator import Domain
from kernelgen.tensor.operators import catalogue as basic

Numbers = Callable[[DType, tuple[int, ...], np.random.Generator], Array]

SIGMA = 0.1
MEANS = range(1, 21)
NEAR_ZERO = 0.01
SIZES = (7, 12, 5, 17, 3)
"""Sizes for symbols, in their order: odd ones, none a multiple of a vector."""

DOMAINS = facts(lambda op: op.traits.domain)
"""Operator -> an operand, and which numbers it must keep to."""

FACTORS = facts(lambda op: op.traits.factors)
"""Operator -> the operands whose elements are multiplied, for the dry run."""

PASSED = facts(lambda op: op.traits.values_of)
"""Operator -> the operand whose values its result has, where that is not the first."""

ATOMIC_OPS = names_of(basic.UNSORTED_SEGMENT_SUM, basic.CSR_REDUCE_SUM, basic.ELEM_ANY)


def draw(
    desc: KernelDesc, seed: int = 0, sizes: Mapping[str, int] | None = None, numbers: Numbers | None = None
) -> list[Array]:
    """One array per input; the same seed draws the same arrays.

    Symbols get ``sizes``, else those of :func:`bind_symbols`. ``numbers(data type, shape, random)`` draws the inputs that are
    neither indices nor cleared targets, else they are ordinary numbers.
    """
    desc = specialize(desc, bind_symbols(desc) if sizes is None else sizes)
    random = np.random.default_rng(seed)
    indices = index_inputs(desc, random)
    cleared = atomic_targets(desc)
    mean = safe_mean(desc) if numbers is None else 0.0
    drawn: list[Array] = []
    for tensor in desc.inputs:
        shape = tuple(int(dim) for dim in tensor.shape)  # pyright: ignore[reportArgumentType]  # specialised
        if tensor.name in indices:
            drawn.append(indices[tensor.name])
        elif tensor.name in cleared:
            drawn.append(np.zeros(shape, tensor.dtype.numpy))
        else:
            drawn.append(
                numbers(tensor.dtype, shape, random) if numbers else _numbers(tensor.dtype, shape, random, mean)
            )
    return drawn


def bind_symbols(desc: KernelDesc) -> dict[str, int]:
    """A size for every symbol."""
    return {name: SIZES[i % len(SIZES)] for i, name in enumerate(desc.symbols)}


def safe_mean(desc: KernelDesc) -> int:
    """The smallest mean that keeps the kernel away from poles and out of infinity; 1 when none does."""
    with np.errstate(all="ignore"):
        return next((mean for mean in MEANS if _is_safe(desc, mean)), MEANS[0])


# ---------------------------------------------------------------- the dry run on scalars


def _is_safe(desc: KernelDesc, mean: float) -> bool:
    """Runs the operators on one number per tensor; operators that only move elements keep it."""
    algebra = ArrayAlgebra()
    values = {t.name: algebra.literal(mean, t.dtype) for t in desc.inputs}
    for op in desc.ops:
        operands = [values[t.name] if t.value is None else algebra.literal(t.value, t.dtype) for t in op.inputs]
        if not _operands_are_safe(op, operands):
            return False
        found = _scalar_result(op, operands)
        for tensor in op.outputs:
            values[tensor.name] = algebra.cast(found, tensor.dtype)
            if tensor.dtype.is_float and not np.isfinite(values[tensor.name].astype(np.float64)):
                return False
        if op.name in IN_PLACE_OPS:
            values[op.inputs[0].name] = algebra.cast(operands[1], op.inputs[0].dtype)
    return True


def _operands_are_safe(op: OpDesc, operands: Sequence[Array]) -> bool:
    if op.name not in DOMAINS:
        return True
    place, numbers = DOMAINS[op.name]
    value = float(operands[place])
    if numbers is Domain.BELOW_ONE:
        return abs(value) < 1 - NEAR_ZERO
    return not op.inputs[0].dtype.is_float or (value if numbers is Domain.POSITIVE else abs(value)) > NEAR_ZERO


def _scalar_result(op: OpDesc, operands: Sequence[Array]) -> Array:
    rule = scalar_rule(op)
    if rule is not None:
        return rule(ArrayAlgebra(), operands, op)
    if REDUCTIONS.get(op.name) == "add" and op.inputs[0].dtype.is_float:
        shares = int(product(op.inputs[0].shape)) / max(int(product(op.output.shape)), 1)  # pyright: ignore[reportArgumentType]
        return operands[0].astype(np.float64) * shares
    if op.name in FACTORS:
        left, right = (operands[place].astype(np.float64) for place in FACTORS[op.name])
        return left * right * _terms(op)
    if op.name in PASSED:
        return operands[PASSED[op.name]]
    if not operands:
        return np.asarray(0.0)
    return operands[-1] if op.name in IN_PLACE_OPS else operands[0]


def _terms(op: OpDesc) -> float:
    """How many products an element of a matrix product or convolution sums."""
    if op.name in names_of(basic.MATMUL, basic.BATCH_MATMUL):
        return float(op.inputs[0].shape[-2 if op.attrs.bool("transpose_a", False) else -1])  # pyright: ignore[reportArgumentType]
    if op.name == basic.CONV2D.name:
        weights = op.inputs[1].shape
        return float(product(weights)) / max(float(weights[0]), 1.0)  # pyright: ignore[reportArgumentType]
    return 1.0


# ---------------------------------------------------------------- arrays


def _numbers(kind: DType, shape: tuple[int, ...], random: np.random.Generator, mean: float) -> Array:
    if kind == BOOL:
        return random.integers(0, 2, shape).astype(bool)
    if kind.is_integer:
        return random.integers(0, 5, shape).astype(kind.numpy)
    drawn = random.standard_normal(shape, np.float32) * np.float32(SIGMA) + np.float32(mean)
    if kind.category is Category.COMPLEX:
        drawn = drawn + 1j * (random.standard_normal(shape, np.float32) * np.float32(SIGMA) + np.float32(mean))
    return np.asarray(drawn).astype(kind.numpy)


def atomic_targets(desc: KernelDesc) -> set[str]:
    """Inputs that a kernel adds to atomically: an earlier kernel has cleared them."""
    atomic = {
        t.name for op in desc.ops if op.name in ATOMIC_OPS or op.attrs.get("enable_atomic_add") for t in op.outputs
    }
    return {op.inputs[0].name for op in desc.ops if op.name in IN_PLACE_OPS and op.inputs[1].name in atomic}
