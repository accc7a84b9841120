"""Inputs on which a kernel and its reference can be compared: ordinary numbers, far from poles, indices in range.

As in AKG: Gaussian with sigma 0.1 around the smallest mean in 1..20 for which no denominator, root or logarithm of a dry
run on scalars comes near 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.scalar_rules import REDUCTIONS, scalar_rule
from kernelgen.composite.specialize import specialize
from kernelgen.composite.vocabulary import facts
from kernelgen.composite.window_shapes import is_channels_last
from kernelgen.samples.index_inputs import index_inputs
from kernelgen.semantics.algebra import Array, ArrayAlgebra
from kernelgen.tensor.dims import product
from kernelgen.tensor.dtypes import BOOL, Category, DType
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operator import Domain
from kernelgen.tensor.operators import catalogue as basic

Numbers = Callable[[DType, tuple[int, ...], np.random.Generator], Array]

SIGMA = 0.1
MEANS = range(1, 21)
NEAR_ZERO = 0.01
SIZES = (7, 12, 5, 17, 3)
"""Sizes for symbols, in their order: odd ones, none a multiple of a vector."""

DOMAINS = facts(lambda word: word.traits.domain)
"""Operator -> an operand, and which numbers it must keep to."""

FACTORS = facts(lambda word: word.traits.factors)
"""Operator -> the operands whose elements are multiplied, for the dry run."""

PASSED = facts(lambda word: word.traits.values_of)
"""Operator -> the operand whose values its result has, where that is not the first."""

ATOMIC_OPS = frozenset({basic.UNSORTED_SEGMENT_SUM, basic.CSR_REDUCE_SUM, basic.ELEM_ANY})


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
    for value in desc.graph.inputs:
        shape = tuple(int(dim) for dim in value.shape)  # pyright: ignore[reportArgumentType]  # specialised
        if value in indices:
            drawn.append(indices[value])
        elif value in cleared:
            drawn.append(np.zeros(shape, value.dtype.numpy))
        else:
            drawn.append(numbers(value.dtype, shape, random) if numbers else _numbers(value.dtype, shape, random, mean))
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
    values = {value: algebra.literal(mean, value.dtype) for value in desc.graph.inputs}
    for node in desc.operators:
        operands = [values[v] if v.constant is None else v.constant.reshape(()) for v in node.args]
        if not _operands_are_safe(node, operands):
            return False
        found = _scalar_result(node, operands)
        for value in node.outs:
            values[value] = algebra.cast(found, value.dtype)
            if value.dtype.is_float and not np.isfinite(values[value].astype(np.float64)):
                return False
    return True


def _operands_are_safe(node: Node, operands: Sequence[Array]) -> bool:
    if node.op not in DOMAINS:
        return True
    place, numbers = DOMAINS[node.op]
    value = float(operands[place])
    if numbers is Domain.BELOW_ONE:
        return abs(value) < 1 - NEAR_ZERO
    return not node.args[0].dtype.is_float or (value if numbers is Domain.POSITIVE else abs(value)) > NEAR_ZERO


def _scalar_result(node: Node, operands: Sequence[Array]) -> Array:
    rule = scalar_rule(node)
    if rule is not None:
        return rule(ArrayAlgebra(), operands, node)
    if REDUCTIONS.get(node.op) == "add" and node.args[0].dtype.is_float:
        shares = int(product(node.args[0].shape)) / max(int(product(node.out.shape)), 1)  # pyright: ignore[reportArgumentType]
        return operands[0].astype(np.float64) * shares
    if node.op in FACTORS:
        left, right = (operands[place].astype(np.float64) for place in FACTORS[node.op])
        return left * right * _terms(node)
    if node.op in PASSED:
        return operands[PASSED[node.op]]
    if not operands:
        return np.asarray(0.0)
    return operands[-1] if node.op is basic.ASSIGN else operands[0]


def _terms(node: Node) -> float:
    """How many products an element of a matrix product or convolution sums."""
    if node.op in (basic.MATMUL, basic.BATCH_MATMUL, basic.MATMUL_INTEGER):
        return float(node.args[0].shape[-2 if node.attrs.bool("transpose_a", False) else -1])  # pyright: ignore[reportArgumentType]
    if node.op is basic.CONV2D:
        weights = node.args[1].shape
        results = weights[-1 if is_channels_last(node) else 0]
        return float(product(weights)) / max(float(results), 1.0)  # pyright: ignore[reportArgumentType]
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


def atomic_targets(desc: KernelDesc) -> set[Value]:
    """Inputs that a kernel adds to atomically: an earlier kernel has cleared them."""
    atomic = [node for node in desc.operators if node.op in ATOMIC_OPS or node.attrs.get("enable_atomic_add")]
    return {node.args[0] for node in desc.operators if node.op is basic.ASSIGN and node.args[1].node in atomic}
