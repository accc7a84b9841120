"""Steps that append operators which move elements: reshapes, transposes, broadcasts, tiles, concatenations, splits."""

from __future__ import annotations

from typing import Any

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.dims import Dim, Shape, Sym, divide_exactly, product, sym
from kernelgen.tensor.operators.type_rules import broadcast_shapes
from tests.random_kernels.values import DTYPES, Value
from tests.random_kernels.writer import Writer


def reshape(w: Writer) -> None:
    """Reshape, EquivFormat."""
    x = w.pick()
    if x is None:
        return
    if w.chance(8):
        w.op("EquivFormat", (x,), (x.shape, x.dtype), x.bound, x.error)
        return
    if w.chance(8) and x.shape:
        _named_reshape(w, x)
        return
    shape = _reshaped(w, x.shape)
    w.op("Reshape", (x,), (shape, x.dtype), x.bound, x.error, shape=shape)


def _named_reshape(w: Writer, x: Value) -> None:
    """Squeeze all extents of 1; Flatten all dims but the first."""
    if w.chance():
        w.op("Squeeze", (x,), (tuple(dim for dim in x.shape if dim != 1), x.dtype), x.bound, x.error)
    else:
        w.op("Flatten", (x,), ((x.shape[0], product(x.shape[1:])), x.dtype), x.bound, x.error)


def _reshaped(w: Writer, shape: Shape) -> Shape:
    """Merged or split dims, ones in other places, the dims of another value, or any factors (which do not line up)."""
    count = product(shape)
    way = w.one(("merge", "split", "ones", "other", "factors"))
    if way == "other":
        return w.one([v.shape for v in w.values if product(v.shape) == count])
    if way == "merge" and len(shape) > 1:
        at = w.number(0, len(shape) - 2)
        return (*shape[:at], product(shape[at : at + 2]), *shape[at + 2 :])
    if way == "split" and shape and len(shape) < 6:
        at = w.number(0, len(shape) - 1)
        return (*shape[:at], *_factors(w, shape[at]), *shape[at + 1 :])
    if way == "factors" and isinstance(count, int) and count:
        found = [f for part in _factors(w, count) for f in _factors(w, part)]
        return tuple(w.random.sample(found, len(found)))
    core = tuple(d for d in shape if d != 1)
    if (way == "ones" and w.chance()) or len(shape) > 5:
        return core
    at = w.number(0, len(shape))
    return (*shape[:at], 1, *shape[at:])


def _factors(w: Writer, dim: Dim) -> tuple[Dim, ...]:
    if isinstance(dim, Sym):
        return (dim, 1) if len(dim.terms) != 1 else _symbolic_factors(w, dim)
    if dim == 0:
        return (dim, 1)
    inner = w.one([d for d in range(1, dim + 1) if dim % d == 0])
    return (dim // inner, inner)


def _symbolic_factors(w: Writer, dim: Sym) -> tuple[Dim, ...]:
    """A monomial as its coefficient and its symbols."""
    ((symbols, coefficient),) = dim.terms
    parts: list[Dim] = [*([coefficient] if coefficient != 1 else []), *map(sym, symbols)]
    return tuple(w.random.sample(parts, len(parts)))


def transpose(w: Writer) -> None:
    """Any permutation."""
    x = w.pick(lambda v: len(v.shape) > 1) or w.pick()
    if x is not None:
        perm = tuple(w.random.sample(range(len(x.shape)), len(x.shape)))
        written = tuple(p - len(perm) if w.chance(6) else p for p in perm)
        w.op("Transpose", (x,), (tuple(x.shape[p] for p in perm), x.dtype), x.bound, x.error, perm=written)


def broadcast_to(w: Writer) -> None:
    """BroadcastTo the shape of another value; constants too."""
    x = w.pick() if w.number(0, 5) else w.constant(w.one(DTYPES))
    other = w.pick()
    if x is None or other is None:
        return
    try:
        shape = broadcast_shapes((x.shape, other.shape))
    except TypeRuleError:
        return
    if w.fits(shape):
        w.op("BroadcastTo", (x,), (shape, x.dtype), x.bound, x.error, shape=shape)


def expand(w: Writer) -> None:
    """ExpandDims."""
    x = w.pick(lambda v: len(v.shape) < 6)
    if x is not None:
        at = w.number(0, len(x.shape))
        axis = at - len(x.shape) - 1 if w.chance(4) else at
        w.op("ExpandDims", (x,), ((*x.shape[:at], 1, *x.shape[at:]), x.dtype), x.bound, x.error, axis=axis)


def tile(w: Writer) -> None:
    """Tile, with more multiples than dims at times."""
    x = w.pick(lambda v: len(v.shape) < 5)
    if x is None:
        return
    multiples = tuple(
        w.dim((1, 1, 2, 3)) if w.chance(3) else w.one((1, 1, 2, 3)) for _ in range(len(x.shape) + w.number(0, 1))
    )
    shape = w.shape_of("Tile", (x,), multiples=multiples)
    if shape is not None and w.fits(shape):
        w.op("Tile", (x,), (shape, x.dtype), x.bound, x.error, multiples=multiples)


def concat(w: Writer) -> None:
    """Concat of a value with itself and others that differ in one dim."""
    x = w.pick(lambda v: len(v.shape) > 0)
    if x is None:
        return
    axis = w.number(0, len(x.shape) - 1)

    def suits(v: Value) -> bool:
        same = v.dtype == x.dtype and len(v.shape) == len(x.shape)
        return same and all(a == b for d, (a, b) in enumerate(zip(v.shape, x.shape, strict=True)) if d != axis)

    operands = [x, *(v for v in (w.pick(suits) for _ in range(w.number(1, 3))) if v is not None)]
    w.random.shuffle(operands)
    attrs: dict[str, Any] = {"axis": axis - len(x.shape) if w.chance(3) else axis}
    shape = w.shape_of("Concat", operands, **attrs)
    if shape is not None and w.fits(shape):
        bound, error = max(v.bound for v in operands), max(v.error for v in operands)
        w.op("Concat", operands, (shape, x.dtype), bound, error, **attrs)


def split(w: Writer) -> None:
    """Split into equal or odd parts; a multiple of a symbol into its parts."""
    several = [v for v in w.values if any(_multiple(dim) > 1 for dim in v.shape)]
    if several and w.chance(3):
        _split_symbolic(w, w.one(several))
        return
    x = w.pick(lambda v: any(isinstance(dim, int) and dim > 1 for dim in v.shape))
    if x is None:
        return
    axis = w.one([d for d, dim in enumerate(x.shape) if isinstance(dim, int) and dim > 1])
    extent = w.extent(x.shape[axis])
    count = w.number(2, min(extent, 4))
    marks = sorted(w.random.sample(range(1, extent), count - 1))
    sizes = [b - a for a, b in zip([0, *marks], [*marks, extent], strict=True)]
    results = [((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype) for size in sizes]
    w.several("Split", (x,), results, x.bound, x.error, axis=axis, size_splits=tuple(sizes), output_num=count)


def _multiple(dim: Dim) -> int:
    """k for ``k s``, else 0."""
    return dim.terms[0][1] if isinstance(dim, Sym) and len(dim.terms) == 1 else 0


def _split_symbolic(w: Writer, x: Value) -> None:
    axis = w.one([d for d, dim in enumerate(x.shape) if _multiple(dim) > 1])
    count = _multiple(x.shape[axis])
    part = divide_exactly(x.shape[axis], count)
    if part is not None:
        results = [((*x.shape[:axis], part, *x.shape[axis + 1 :]), x.dtype)] * count
        w.several("Split", (x,), results, x.bound, x.error, axis=axis, num_split=count, output_num=count)
