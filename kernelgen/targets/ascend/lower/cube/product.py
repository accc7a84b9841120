"""Recognises a matrix product in a part of a nest that is dealt to the cores.

    block c0 in 0..M {                                   rows c0       what the left factor alone moves along
      vector c2 in 0..N { y[c0, c2] = 0 }                columns c2    the right factor alone; y is contiguous along them
      for c1 in 0..K {                                   depth c1      the innermost loop that y does not move along
        vector c2 in 0..N {
          y[c0, c2] += cast(a[c0, c1]) * cast(b[c1, c2])
        } } }

Loops may stand in any order and be cut into chunks (``for c in c0..min(N, c0 + 64)`` inside of ``c0 in 0..N step 64``).
More loops that y moves along are batch, more that it does not are further sums. Each matrix is row major, or NZ as the
cube unit holds it: ``a[k / 16, m / 16, m % 16, k % 16]``.

Legality of any other order: the part stores nothing but y, so no factor changes; every element of y starts at 0 and is a
sum over the whole box, whose terms may be taken in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelgen.nest import nodes as n
from kernelgen.nest.index import from_dim, is_by_data, multiply, references, variables
from kernelgen.nest.walk import map_expression
from kernelgen.targets.ascend.lower.program.indices import element_step
from kernelgen.tensor.dims import Dim
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16, FLOAT32, DType
from kernelgen.transforms.common.iteration_box import boxes, placed, whole_axes

HALVES = (FLOAT16, BFLOAT16)
SIDE = 16
"""Rows and columns of a fractal of halves."""
MOST_STRIDE = 65535
"""Elements between two rows that a copy into fractals can step over."""


@dataclass(frozen=True)
class Axis:
    """A loop from 0 to ``extent``, by 1."""

    name: str
    extent: n.Index


@dataclass(frozen=True)
class Matrix:
    """A factor: the element of ``buffer`` at ``index``, rows of its memory ``stride`` elements apart.

    ``along_depth`` says that the depth is contiguous: a left factor as it is, a right factor transposed. ``fractal`` says
    that the memory is NZ; ``stride`` then is the number of its rows.
    """

    buffer: n.Buffer
    index: tuple[n.Index, ...]
    stride: n.Index
    along_depth: bool
    fractal: bool = False


@dataclass(frozen=True)
class Product:
    """``result[index] = sum over sums and depth of left * right``, with ReLU where asked, rounded to the result's type.

    ``fractal`` says that the result is NZ; ``stride`` then is the number of its rows.
    """

    result: n.Buffer
    index: tuple[n.Index, ...]
    stride: n.Index
    left: Matrix
    right: Matrix
    batch: tuple[Axis, ...]
    row: Axis
    column: Axis
    sums: tuple[Axis, ...]
    depth: Axis
    fractal: bool = False
    relu: bool = False

    @property
    def dtype(self) -> DType:
        """The factors' type."""
        return self.left.buffer.dtype


def product_of(part: n.Block) -> Product | None:
    """The product that a part of a nest computes; None where it is none that the cube unit takes."""
    found = list(placed(part))
    bound = {one.statement.name: one.statement.value for one in found if isinstance(one.statement, n.Let)}
    rest = [one for one in found if not isinstance(one.statement, n.Let)]
    if len(rest) != 2:
        return None
    start, last = rest
    if not isinstance(start.statement, n.Store) or not isinstance(last.statement, n.Accumulate):
        return None
    axes, begun = boxes(last.loops), boxes(start.loops)
    if axes is None or begun is None or not _starts(start.statement, begun, last.statement, axes):
        return None
    factors = _factors(last.statement, bound)
    return None if factors is None else _sides(last.statement, factors, axes)


def _starts(start: n.Store, begun: Mapping[str, n.Index], last: n.Accumulate, axes: Mapping[str, n.Index]) -> bool:
    """Whether the store makes every element 0 that the sum adds to, each once, and before it."""
    if start.buffer != last.buffer or not isinstance(start.value, n.Literal) or start.value.value != 0:
        return False
    ours, theirs = places_of(last.index, axes), places_of(start.index, begun)
    if ours is None or theirs is None or len(theirs.names) != len(begun):
        return False
    same = [axes[name] for name in ours.names] == [begun[name] for name in theirs.names]
    return same and ours.fractal == theirs.fractal


@dataclass(frozen=True)
class Places:
    """The variables of an index, each once; where it is ``fractal``, row and column of NZ come last."""

    names: tuple[str, ...]
    fractal: bool = False


def places_of(index: tuple[n.Index, ...], axes: Mapping[str, n.Index]) -> Places | None:
    """The variables of an index that is nothing but variables, perhaps in NZ; None for any other."""
    inner = nz_of(index)
    if inner is None:
        names = whole_axes(index, axes)
        return None if names is None else Places(tuple(names))
    outer = whole_axes(index[:-4], axes)
    if outer is None or set(outer) & set(inner) or not set(inner) <= set(axes):
        return None
    return Places((*outer, *inner), True)


def nz_of(index: tuple[n.Index, ...]) -> tuple[str, str] | None:
    """Row and column of an index that ends in ``column / 16, row / 16, row % 16, column % 16``."""
    parts = [_split(at) for at in index[-4:]]
    names = [part[1] for part in parts if part is not None]
    kinds = [part[0] for part in parts if part is not None]
    if kinds != [n.IndexOp.DIV, n.IndexOp.DIV, n.IndexOp.MOD, n.IndexOp.MOD] or names[0] == names[1]:
        return None
    return (names[1], names[0]) if (names[2], names[3]) == (names[1], names[0]) else None


def _split(at: n.Index) -> tuple[n.IndexOp, str] | None:
    match at:
        case n.IndexBinary(op, n.Var(name), n.Num(value)) if value == SIDE:
            return op, name
        case _:
            return None


def _factors(last: n.Accumulate, bound: Mapping[str, n.Expr]) -> tuple[n.Load, n.Load] | None:
    """The loads whose product is added, in float32."""
    value = last.value
    if last.function != "add" or last.buffer.dtype != FLOAT32 or last.buffer.space is n.Space.LOCAL:
        return None
    if not isinstance(value, n.Call) or value.function != "mul" or value.dtype != FLOAT32:
        return None
    first, second = (_half_of(arg, bound) for arg in value.args)
    if first is None or second is None or first.dtype != second.dtype:
        return None
    return first, second


def _half_of(expr: n.Expr, bound: Mapping[str, n.Expr]) -> n.Load | None:
    """The load of half precision behind a cast to float32."""
    expr = map_expression(expr, lambda e: bound.get(e.name, e) if isinstance(e, n.Ref) else e)
    if not isinstance(expr, n.Call) or expr.function != "cast" or len(expr.args) != 1:
        return None
    load = expr.args[0]
    if not isinstance(load, n.Load) or load.dtype not in HALVES:
        return None
    data = any(references(at) or is_by_data(at) for at in load.index)
    return None if data else load


def _sides(last: n.Accumulate, factors: tuple[n.Load, n.Load], axes: Mapping[str, n.Index]) -> Product | None:
    """The product with its loops told apart."""
    places = places_of(last.index, axes) or Places(())
    placed = places.names
    along = [{name for at in load.index for name in variables(at)} & set(axes) for load in factors]
    shape = last.buffer.shape
    columns = [name for name in placed if element_step(last.index, shape, name) == n.Num(1)]
    columns = [placed[-1]] if places.fractal else columns
    if len(columns) != 1 or (columns[0] in along[0]) == (columns[0] in along[1]):
        return None
    if columns[0] in along[0]:
        factors, along = (factors[1], factors[0]), along[::-1]
    rows = [name for name in placed if name in along[0] and name not in along[1]]
    rows = [name for name in rows if not places.fractal or name == placed[-2]]
    summed = [name for name in axes if name not in placed]
    if not rows or not summed or any(name not in along[0] or name not in along[1] for name in summed):
        return None
    for row in reversed(rows):
        for depth in reversed(summed):
            found = _matrices(last, factors, axes, (row, columns[0], depth))
            if found is not None:
                return found
    return None


def _matrices(
    last: n.Accumulate, factors: tuple[n.Load, n.Load], axes: Mapping[str, n.Index], chosen: tuple[str, str, str]
) -> Product | None:
    row, column, depth = chosen
    left, right = (_matrix(load, name, depth, axes) for load, name in zip(factors, (row, column), strict=True))
    places = places_of(last.index, axes)
    fractal = places is not None and places.fractal
    shape = last.buffer.shape
    stride = _lines(shape, axes[row], axes[column]) if fractal else element_step(last.index, shape, row)
    if left is None or right is None or stride is None or any(_is_one(axes[name]) for name in (row, column)):
        return None
    placed = () if places is None else places.names
    others = [Axis(name, extent) for name, extent in axes.items() if name not in chosen]
    return Product(
        result=last.buffer,
        index=last.index,
        stride=stride,
        left=left,
        right=right,
        batch=tuple(axis for axis in others if axis.name in placed),
        row=Axis(row, axes[row]),
        column=Axis(column, axes[column]),
        sums=tuple(axis for axis in others if axis.name not in placed),
        depth=Axis(depth, axes[depth]),
        fractal=fractal,
    )


def _is_one(extent: n.Index) -> bool:
    """A vector times a matrix is no work for the cube unit: it reads every element once."""
    return isinstance(extent, n.Num) and extent.value < 2


def _lines(shape: Sequence[Dim], row: n.Index, column: n.Index) -> n.Index | None:
    """The rows of a buffer in NZ, where row and column go through all of it."""
    across, down, *_ = (from_dim(dim) for dim in shape[-4:])
    whole = (multiply(down, n.Num(SIDE)), multiply(across, n.Num(SIDE))) == (row, column)
    inner = tuple(shape[-2:]) == (SIDE, SIDE)
    return row if whole and inner and isinstance(row, n.Num) and row.value <= MOST_STRIDE else None


def _matrix(load: n.Load, outer: str, depth: str, axes: Mapping[str, n.Index]) -> Matrix | None:
    """The factor as a matrix of its row or column and the depth, one of them contiguous."""
    shape = load.buffer.shape
    nz = nz_of(load.index)
    if nz is not None:
        lines = _lines(shape, axes[nz[0]], axes[nz[1]]) if set(nz) == {outer, depth} else None
        return None if lines is None else Matrix(load.buffer, load.index, lines, nz[1] == depth, fractal=True)
    steps = {name: element_step(load.index, shape, name) for name in (outer, depth)}
    for contiguous, other in ((depth, outer), (outer, depth)):
        stride = steps[other]
        if steps[contiguous] != n.Num(1) or stride is None:
            continue
        if isinstance(stride, n.Num) and not 0 < stride.value <= MOST_STRIDE:
            continue
        return Matrix(load.buffer, load.index, stride, contiguous == depth)
    return None


def extent_of(buffer: n.Buffer) -> tuple[n.Index, ...]:
    """The extents of a buffer as indices."""
    return tuple(from_dim(dim) for dim in buffer.shape)
