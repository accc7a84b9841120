"""Inputs on which a kernel and its reference can be compared: ordinary numbers, far from poles, indices in range.

As in AKG: Gaussian with sigma 0.1 around the smallest mean in 1..20 for which no denominator, root or logarithm of a dry
run on scalars comes near 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kernelgen.desc import IN_PLACE_OPS, KernelDesc, OpDesc, TensorDesc
from kernelgen.desc_bind import specialize
from kernelgen.dims import product
from kernelgen.dtypes import BOOL, Category, DType
from kernelgen.meaning.algebra import Array, ArrayAlgebra
from kernelgen.vocabulary import ELEMENTWISE, REDUCTIONS

SIGMA = 0.1
MEANS = range(1, 21)
NEAR_ZERO = 0.01
SIZES = (7, 12, 5, 17, 3)
"""Sizes for symbols, in their order: odd ones, none a multiple of a vector."""

DENOMINATORS: Mapping[str, int] = {
    "RealDiv": 1, "Div": 1, "FloorDiv": 1, "Mod": 1, "FloorMod": 1, "Reciprocal": 0, "Rsqrt": 0, "Sqrt": 0, "Log": 0, "Pow": 0,
}  # fmt: skip
"""Operator -> the operand that must stay away from 0."""

INVERSES = frozenset({"ACos", "Acos", "Asin", "Atanh"})
"""Operators whose operand must stay inside (-1, 1)."""

INDEX_OPERANDS: Mapping[str, int] = {
    "Gather": 1, "GatherNd": 1, "TensorScatterAdd": 1, "UnsortedSegmentSum": 1, "OneHot": 0,
}  # fmt: skip
"""Operator -> the operand that holds indices."""

PRUDENT = frozenset({"GatherNd", "TensorScatterAdd", "UnsortedSegmentSum"})
"""Operators that are also given indices out of range, a tenth of them."""

ATOMIC_OPS = frozenset({"UnsortedSegmentSum", "CSRReduceSum", "ElemAny"})


def draw(desc: KernelDesc, seed: int = 0) -> list[Array]:
    """One array per input; symbols get the sizes of :func:`bind_symbols`. The same seed draws the same arrays."""
    desc = specialize(desc, bind_symbols(desc))
    random = np.random.default_rng(seed)
    mean = safe_mean(desc)
    limits = _index_limits(desc)
    cleared = _atomic_targets(desc)
    return [_array(t, random, mean, limits.get(t.name), t.name in cleared) for t in desc.inputs]


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
    if op.name in INVERSES:
        return abs(float(operands[0])) < 1 - NEAR_ZERO
    if op.name not in DENOMINATORS or not op.inputs[0].dtype.is_float:
        return True
    value = float(operands[DENOMINATORS[op.name]])
    return value > NEAR_ZERO if op.name in ("Rsqrt", "Sqrt", "Log", "Pow") else abs(value) > NEAR_ZERO


def _scalar_result(op: OpDesc, operands: Sequence[Array]) -> Array:
    if op.name in ELEMENTWISE:
        return ELEMENTWISE[op.name](ArrayAlgebra(), operands, op)
    if REDUCTIONS.get(op.name) == "add" and op.inputs[0].dtype.is_float:
        shares = int(product(op.inputs[0].shape)) / max(int(product(op.output.shape)), 1)  # pyright: ignore[reportArgumentType]
        return operands[0].astype(np.float64) * shares
    if not operands:
        return np.asarray(0.0)
    return operands[-1] if op.name in IN_PLACE_OPS else operands[0]


# ---------------------------------------------------------------- arrays


def _array(tensor: TensorDesc, random: np.random.Generator, mean: float, limit: int | None, cleared: bool) -> Array:
    shape = tuple(int(dim) for dim in tensor.shape)  # pyright: ignore[reportArgumentType]  # specialised
    if cleared:
        return np.zeros(shape, tensor.dtype.numpy)
    if limit is not None:
        return random.integers(0, max(limit, 1), shape).astype(tensor.dtype.numpy)
    return _numbers(tensor.dtype, shape, random, mean)


def _numbers(kind: DType, shape: tuple[int, ...], random: np.random.Generator, mean: float) -> Array:
    if kind == BOOL:
        return random.integers(0, 2, shape).astype(bool)
    if kind.is_integer:
        return random.integers(0, 5, shape).astype(kind.numpy)
    drawn = random.standard_normal(shape, np.float32) * np.float32(SIGMA) + np.float32(mean)
    if kind.category is Category.COMPLEX:
        drawn = drawn + 1j * (random.standard_normal(shape, np.float32) * np.float32(SIGMA) + np.float32(mean))
    return np.asarray(drawn).astype(kind.numpy)


def _index_limits(desc: KernelDesc) -> dict[str, int]:
    """Input -> the number of values that its indices may take; for scatters a tenth more than there are places."""
    producers = {t.name: op for op in desc.ops for t in op.outputs}
    limits: dict[str, int] = {}
    for op in desc.ops:
        if op.name not in INDEX_OPERANDS:
            continue
        limit = _places(op)
        if op.name in PRUDENT:
            limit += max(1, limit // 10)
        for name in _sources(op.inputs[INDEX_OPERANDS[op.name]].name, producers):
            limits[name] = min(limit, limits.get(name, limit))
    return limits


def _places(op: OpDesc) -> int:
    """How many places the indices of an operator can name."""
    if op.name == "OneHot":
        return op.attrs.int("depth", 2)
    if op.name == "UnsortedSegmentSum":
        return int(op.output.shape[0])  # pyright: ignore[reportArgumentType]
    axis = op.attrs.int("axis", 0) if op.name == "Gather" else 0
    return int(op.inputs[0].shape[axis])  # pyright: ignore[reportArgumentType]


def _sources(name: str, producers: Mapping[str, OpDesc]) -> Iterator[str]:
    """The kernel inputs that a tensor is computed from, through operators that keep values."""
    op = producers.get(name)
    if op is None:
        yield name
    elif op.name in ("Cast", "Reshape", "ExpandDims", "Transpose", "BroadcastTo"):
        yield from _sources(op.inputs[0].name, producers)


def _atomic_targets(desc: KernelDesc) -> set[str]:
    """Inputs that a kernel adds to atomically: an earlier kernel has cleared them."""
    atomic = {
        t.name for op in desc.ops if op.name in ATOMIC_OPS or op.attrs.get("enable_atomic_add") for t in op.outputs
    }
    return {op.inputs[0].name for op in desc.ops if op.name in IN_PLACE_OPS and op.inputs[1].name in atomic}
