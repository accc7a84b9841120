"""The factors of a product on their way: from GM to L1 as fractals, and from L1 to L0A and L0B.

Fractals are 16 x 16 halves. A copy makes NZ of a matrix: groups of 16 columns, each with all rows; L0A wants rows of
fractals (ZZ), L0B rows of fractals along the depth, each column major (ZN). Fractals that lie in L1 in the order of L0
come by one LoadData, transposed where the depth is not contiguous in GM. All others are a window of an image whose points
are the rows in L1, and come by one LoadData of windows (Load3Dv2), but for columns of a B that is transposed in GM: where
the last tile has fewer of them than others, its fractals come by one LoadData for each 16 of the depth.

Depth beyond the matrix must be zeros: a copy fills up the columns of its last group; rows of the depth that are missing are
filled by InitConstValue.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from kernelgen.ascendc.builder import Tensor
from kernelgen.ascendc.expressions import (
    Expression,
    Number,
    ceil_div,
    smaller,
)
from kernelgen.ascendc.instructions import GlobalTensor, TensorRef
from kernelgen.ascendc.types import L0A, L0B, L1
from kernelgen.machines.ascend.description import Machine
from kernelgen.nest.nodes import Buffer, Index, Num
from kernelgen.nest.ranges import Range
from kernelgen.targets.ascend.lower.cube.product import SIDE, Axis, Matrix, Product
from kernelgen.targets.ascend.lower.cube.tile_sizes import LEFT, RIGHT, Sizes
from kernelgen.targets.ascend.lower.program.indices import linear, to_expression
from kernelgen.targets.ascend.lower.program.writer import Writer
from kernelgen.tensor.dtypes import INT32

FRACTAL = SIDE * SIDE
"""Elements of a fractal."""
MOST_REPEATS = 255
ZERO = Number(0)
ITEM, TILE, DEEP, STEP = "item", "tile", "deep", "step"
"""The loops of a program, outermost first."""


@dataclass(frozen=True)
class Stretch:
    """A part of an axis: where it begins, how many elements it has, and how many it has at most."""

    start: Expression
    size: Expression
    most: int

    @property
    def fractals(self) -> Expression:
        """Fractals, the last of them perhaps not full."""
        return ceil_div(self.size, SIDE)


@dataclass(frozen=True)
class Side:
    """A factor on its way: ``far`` in L1, ``near`` in L0A or L0B.

    ``lines`` are the rows of a column group in L1: of the tile where the depth is contiguous, else of the depth.
    ``kept`` says that L1 has all of the depth, fetched with the first tile. ``elements`` are those of one copy in L1.
    """

    matrix: Matrix
    axis: Axis
    far: Tensor
    near: Tensor
    lines: int
    elements: int
    kept: bool
    left: bool


@dataclass
class FactorMoves:
    """What moves the factors of one product; ``names`` are the values of size symbols and loop variables.

    ``halves`` has the parity of each loop whose turns use two copies in turn, ``pads`` the borders of windows: none.
    """

    product: Product
    sizes: Sizes
    machine: Machine
    writer: Writer
    tensors: Mapping[str, GlobalTensor]
    names: dict[str, Expression]
    ranges: dict[str, Range]
    halves: dict[str, Expression] = field(default_factory=dict[str, Expression])
    pads: Expression = ZERO

    def _side(self, left: bool) -> Side:
        """A factor with its memory: two copies of what its loop brings."""
        product, sizes = self.product, self.sizes
        matrix, axis = (product.left, product.row) if left else (product.right, product.column)
        width = sizes.rows if left else sizes.columns
        kept = sizes.kept == (LEFT if left else RIGHT)
        prefix, near_memory = ("a", L0A) if left else ("b", L0B)
        depth = product.depth.extent
        copies = -(-depth.value // sizes.deep) if kept and isinstance(depth, Num) else 2
        elements = width * sizes.deep
        far = self.writer.tile(f"{prefix}_l1", product.dtype, elements, memory=L1, copies=copies)
        near = self.writer.tile(f"{prefix}_l0", product.dtype, width * sizes.step, memory=near_memory, copies=2)
        return Side(matrix, axis, far, near, width if matrix.along_depth else sizes.deep, elements, kept, left)

    def _base(self, side: Side, turn: Expression) -> Expression:
        """The first element of the copy in L1 that a turn along the depth uses."""
        return (turn if side.kept else self.halves.get(self._far_home, ZERO)) * side.elements

    def _fetch(self, side: Side, across: Stretch, deep: Stretch, turn: Expression) -> None:
        """A part of a factor from GM to L1, as fractals."""
        along = side.matrix.along_depth
        rows, columns = (across, deep) if along else (deep, across)
        self.names[side.axis.name], self.names[self.product.depth.name] = across.start, deep.start
        stride = to_expression(side.matrix.stride, self.names, self.ranges)
        source = self._global(side.matrix.buffer, side.matrix.index)
        base = self._base(side, turn)
        if side.matrix.fractal:
            gaps = stride - rows.size, side.lines - rows.size
            self.writer.emit("DataCopy", dst=side.far[base], src=source, params=(columns.fractals, rows.size, *gaps))
            return
        self._to_fractals(side.far[base], source, rows.size, columns.size, (stride, side.lines))
        if along and side.left and self._may_be_one:
            with self.writer.when(rows.size.equals(1)):  # Mmad takes two rows at least
                self._to_fractals(side.far[base + SIDE], source, Number(1), columns.size, (stride, side.lines))
        if not along:
            self._fill(side, base, across, deep)

    def _to_fractals(
        self, target: TensorRef, source: TensorRef, rows: Expression, columns: Expression, steps: tuple[Expression, int]
    ) -> None:
        stride, lines = steps
        self.writer.emit("DataCopy", dst=target, src=source, params=(1, rows, columns, 0, stride, lines, 1, 0))

    def _fill(self, side: Side, base: Expression, across: Stretch, deep: Stretch) -> None:
        """Zeros in the rows of the depth that the last fractals lack."""
        total = self.product.depth.extent
        if isinstance(total, Num) and total.value % SIDE == 0:
            return
        missing = self.writer.let("missing", INT32, deep.fractals * SIDE - deep.size)
        with self.writer.when(missing > 0):
            self.writer.emit(
                "InitConstValue",
                dst=side.far[base + deep.size * SIDE],
                params=(across.fractals, missing, side.lines - missing, 0),
            )

    def _load(self, side: Side, across: Stretch, place: tuple[Expression, Expression], count: Expression) -> None:
        """``count`` fractals of the depth, and all of them across, from L1 to L0.

        Fractal (k, x) of depth and width lies at ``k * far_k + x * far_x`` in L1 and at ``k * near_k + x * near_x`` in
        L0. One LoadData takes all where both places count on from row to row; else a window of them is one.
        """
        turn, first = place
        group, width, along = Number(side.lines // SIDE), across.fractals, side.matrix.along_depth
        far_k, far_x = (group, Number(1)) if along else (Number(1), group)
        near_k, near_x = (Number(1), count) if side.left else (width, Number(1))
        base = self._base(side, turn)
        source = base + first * far_k * FRACTAL
        target = self.halves.get(self._near_home, ZERO) * (across.most * self.sizes.step)
        most = self.sizes.step // SIDE * (across.most // SIDE)
        if most <= MOST_REPEATS and (far_k, near_k) == (width * far_x, width * near_x):
            self._load_row(side, target, source, (count * width, far_x, near_x))
        elif most <= MOST_REPEATS and (far_x, near_x) == (count * far_k, count * near_k):
            self._load_row(side, target, source, (count * width, far_k, near_k))
        elif side.left or not along:
            self._load_window(side, across, (target, base), (first, count))
        else:
            with self._each(count) as k:
                self._load_row(
                    side, target + k * near_k * FRACTAL, source + k * far_k * FRACTAL, (width, far_x, near_x)
                )

    def _load_window(
        self, side: Side, across: Stretch, places: tuple[Expression, Expression], stretch: tuple[Expression, Expression]
    ) -> None:
        """One LoadData of the part of a copy in L1 that a step takes: so many fractals of the depth from the first on."""
        if self.pads == ZERO:
            with self.writer.before(1):
                self.pads = self.writer.pads()
        first, count = stretch
        depth, wide, start = count * SIDE, across.fractals * SIDE, first * SIDE
        along = side.matrix.along_depth
        window = (self.sizes.deep, depth, wide, start, 0) if along else (across.most, wide, depth, 0, start)
        transpose = "true" if side.left and not along else "false"
        params = (self.pads, side.lines, 1, *window, *[1] * 6, transpose, "false", 0)
        target, source = places
        self.writer.emit("LoadData", dst=side.near[target], src=side.far[source], params=params)

    def _load_row(
        self, side: Side, target: Expression, source: Expression, row: tuple[Expression, Expression, Expression]
    ) -> None:
        """One LoadData: so many fractals, their distance in L1, and that in L0."""
        repeats, stride, apart = row
        transpose = "false" if side.matrix.along_depth else "true"
        params = (0, repeats, stride, 0, apart - 1, transpose, 0)
        self.writer.emit("LoadData", dst=side.near[target], src=side.far[source], params=params)

    @contextmanager
    def _each(self, count: Expression) -> Generator[Expression]:
        """Numbers below the count; no loop where it is 1."""
        if count == Number(1):
            yield ZERO
            return
        with self.writer.loop("i", 0, count) as number:
            yield number

    @property
    def _may_be_one(self) -> bool:
        """Whether a tile may have a single row: tiles of known sizes are cut so that none has."""
        return not isinstance(self.product.row.extent, Num)

    @property
    def _far_home(self) -> str:
        """The innermost loop that has turns and copies to L1."""
        depth = self.product.depth.extent
        if not isinstance(depth, Num) or depth.value > self.sizes.deep:
            return DEEP
        return TILE if self.sizes.reach > 1 else ITEM

    @property
    def _near_home(self) -> str:
        """The same of loads to L0A and L0B."""
        return STEP if self.sizes.deep > self.sizes.step else self._far_home

    # ------------------------------------------------------------ places

    def _extent(self, axis: Axis) -> Expression:
        return to_expression(axis.extent, self.names, self.ranges)

    def _tiles(self, axis: Axis, size: int) -> Expression:
        """Tiles that cover an axis."""
        return self.writer.let("tiles", INT32, ceil_div(self._extent(axis), size))

    def _part(self, axis: Axis, size: int, number: Expression) -> Stretch:
        """The tile of that number of an axis."""
        total = self._extent(axis)
        start = self.writer.let("at", INT32, number * size)
        if isinstance(total, Number) and int(total.value) <= size:
            return Stretch(start, total, size)
        return Stretch(start, self._count(total, size, number), size)

    def _count(self, total: Expression, size: int, turn: Expression) -> Expression:
        """What a turn has of a whole that is dealt out by ``size``."""
        if isinstance(total, Number) and int(total.value) % size == 0:
            return Number(size)
        if turn == ZERO:
            return total if size == self.sizes.step // SIDE == self.sizes.deep // SIDE else smaller(total, size)
        return self.writer.let("n", INT32, smaller(total - turn * size, size))

    def _global(self, buffer: Buffer, index: tuple[Index, ...]) -> TensorRef:
        """The element of a buffer where the loops stand."""
        tensor = self.tensors[buffer.name]
        offset = to_expression(linear(index, buffer.shape), self.names, self.ranges)
        return Tensor(tensor.name, tensor.dtype)[offset]
