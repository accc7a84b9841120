"""A product as a program of a cube core.

    for b in tiles of this core:
      for s in steps of deep:             DataCopy(l1_a, a[..], Nd2Nz); DataCopy(l1_b, b[..], Nd2Nz)       MTE2
        for t in steps of step:
          LoadData(l0_a, l1_a[..]); LoadData(l0_b, l1_b[..])                                              MTE1
          Mmad(l0_c, l0_a, l0_b, initial where s == 0 && t == 0)                                          M
      Fixpipe(y[..], l0_c)                                                                                FIX

Fractals are 16 x 16 halves. A copy makes NZ of a matrix: groups of 16 columns, each with all rows; L0A wants rows of
fractals (ZZ), L0B rows of fractals along the depth, each column major (ZN). Fractals that lie in L1 in the order of L0
come by one LoadData, transposed where the depth is not contiguous in GM. All others are a window of an image whose points
are the rows in L1, and come by one LoadData of windows (Load3Dv2), but for columns of a B that is transposed in GM: where
the last tile has fewer of them than others, its fractals come by one LoadData for each 16 of the depth.

Rows and columns beyond the matrix are computed from what is there and never copied out. Depth beyond it must be zeros: a
copy fills up the columns of its last group; rows of the depth that are missing are filled by InitConstValue.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from kernelgen.ascendc.builder import Tensor
from kernelgen.ascendc.expressions import (
    BLOCK_COUNT,
    BLOCK_INDEX,
    Binary,
    Expression,
    Flag,
    Name,
    Number,
    ceil_div,
    larger,
    smaller,
)
from kernelgen.ascendc.instructions import GlobalTensor, Let, TensorRef
from kernelgen.ascendc.types import FIX, L0A, L0B, L0C, L1, SPELLINGS
from kernelgen.machines.ascend.description import Machine
from kernelgen.nest.nodes import Buffer, Index, Num
from kernelgen.nest.ranges import Range
from kernelgen.targets.ascend.lower.cube.product import SIDE, Axis, Matrix, Product
from kernelgen.targets.ascend.lower.cube.tile_sizes import LEFT, NONE, RIGHT, Sizes
from kernelgen.targets.ascend.lower.program.double_buffer import HALF
from kernelgen.targets.ascend.lower.program.indices import linear, to_expression
from kernelgen.targets.ascend.lower.program.writer import Writer
from kernelgen.tensor.dtypes import FLOAT32, INT32

FRACTAL = SIDE * SIDE
"""Elements of a fractal."""
QUANTISE = {"float32": "NoQuant", "float16": "F322F16", "bfloat16": "F322BF16"}
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
class CubeProgram:
    """The state of one product's program; ``names`` are the values of size symbols and loop variables.

    ``handshake`` is the id of a flag for the block's vector cores, set behind every tile.
    """

    product: Product
    sizes: Sizes
    machine: Machine
    writer: Writer
    tensors: Mapping[str, GlobalTensor]
    names: dict[str, Expression]
    ranges: dict[str, Range]
    begun: list[Expression] = field(default_factory=list[Expression])
    halves: dict[str, Expression] = field(default_factory=dict[str, Expression])
    first_tile: Expression = ZERO
    handshake: int | None = None
    pads: Expression = ZERO

    def write(self) -> None:
        """All tiles, dealt to the cores: block ``b`` of ``B`` takes items b, b + B, b + 2B, ..."""
        product, sizes = self.product, self.sizes
        down = self._tiles(product.row, sizes.rows * sizes.along_rows)
        right = self._tiles(product.column, sizes.columns * sizes.along_columns)
        extents = [*(self._extent(axis) for axis in product.batch), down, right]
        items: Expression = Number(1)
        for extent in extents:
            items = items * extent
        items = self.writer.let("items", INT32, items)
        self.left, self.right = self._side(True), self._side(False)
        self.sums = self.writer.tile("sums", FLOAT32, sizes.rows * sizes.columns, memory=L0C)
        if isinstance(items, Number) and int(items.value) <= self.machine.cube_cores:
            with self.writer.when(items > BLOCK_INDEX):
                self._item(BLOCK_INDEX, extents)
            return
        with self.writer.loop("b", BLOCK_INDEX, items, BLOCK_COUNT) as block:
            self._parity(ITEM, block, block // BLOCK_COUNT)
            self._item(block, extents)

    # ------------------------------------------------------------ loops

    def _item(self, number: Expression, extents: list[Expression]) -> None:
        """What a core takes at once: a tile, or several with one factor kept."""
        product, sizes = self.product, self.sizes
        *batch, i, j = self._digits(number, extents)
        for axis, value in zip(product.batch, batch, strict=True):
            self.names[axis.name] = self.writer.let("batch", INT32, value)
        if sizes.kept == NONE:
            self._tile(self._part(product.row, sizes.rows, i), self._part(product.column, sizes.columns, j))
        elif sizes.kept == RIGHT:
            columns = self._part(product.column, sizes.columns, j)
            with self._range(product.row, sizes.rows, i) as number:
                self._tile(self._part(product.row, sizes.rows, number), columns)
        else:
            rows = self._part(product.row, sizes.rows, i)
            with self._range(product.column, sizes.columns, j) as number:
                self._tile(rows, self._part(product.column, sizes.columns, number))

    def _digits(self, number: Expression, extents: list[Expression]) -> list[Expression]:
        """The number in a mixed base, the last digit the fastest."""
        found: list[Expression] = []
        for extent in reversed(extents[1:]):
            found.insert(0, self.writer.let("digit", INT32, number % extent))
            number = self.writer.let("rest", INT32, number // extent)
        return [number, *found]

    @contextmanager
    def _range(self, axis: Axis, size: int, item: Expression) -> Generator[Expression]:
        """The tiles of an item that keeps a factor."""
        reach = self.sizes.reach
        first = self.writer.let("first", INT32, item * reach)
        rest = self._tiles(axis, size) - first
        whole = isinstance(axis.extent, Num) and -(-axis.extent.value // size) % reach == 0
        with self.writer.loop("tile", 0, Number(reach) if whole else smaller(rest, reach)) as turn:
            self._parity(TILE, turn, turn)
            self.first_tile = turn.equals(0)
            yield first + turn

    @contextmanager
    def _steps(self, name: str, count: Expression) -> Generator[Expression]:
        """Turns along the depth, which know whether they are the first; no loop where there is one turn only."""
        if count == Number(1):
            yield ZERO
            return
        with self.writer.loop(name, 0, count) as turn:
            self._parity(name, turn, turn)
            self.begun.append(turn.equals(0))
            yield turn
            self.begun.pop()

    def _parity(self, name: str, variable: Expression, turn: Expression) -> None:
        """A loop whose turns use two copies of a tile in turn says which."""
        if name in (self._far_home, self._near_home) and isinstance(variable, Name):
            half = f"{HALF}{variable.name}"
            self.writer.add(Let(half, INT32, turn % 2, parity=True))
            self.halves[name] = Name(half)

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

    # ------------------------------------------------------------ a tile

    def _tile(self, rows: Stretch, columns: Stretch) -> None:
        """The sums of a tile, and their way out."""
        sizes = self.sizes
        with ExitStack() as loops:
            for axis in self.product.sums:
                variable = loops.enter_context(self.writer.loop("sum", 0, self._extent(axis)))
                self.names[axis.name] = variable
                self.begun.append(variable.equals(0))
            deep_turns = ceil_div(self._extent(self.product.depth), sizes.deep)
            turn = loops.enter_context(self._steps(DEEP, deep_turns))
            deep = self._part(self.product.depth, sizes.deep, turn)
            sides = sorted(((self.left, rows), (self.right, columns)), key=lambda one: one[0].kept)
            for side, across in sides:
                if side.kept:
                    with self.writer.when(self.first_tile):
                        self._fetch(side, across, deep, turn)
                else:
                    self._fetch(side, across, deep, turn)
            fractals = self.writer.let("deep", INT32, deep.fractals)
            step = sizes.step // SIDE
            turns = Number(1) if sizes.deep == sizes.step else ceil_div(fractals, step)
            with self._steps(STEP, turns) as turn_near:
                self._multiply(rows, columns, (turn, turn_near * step), self._count(fractals, step, turn_near))
        del self.begun[:]
        self._out(rows, columns)
        if self.handshake is not None:
            self.writer.emit("CrossCoreSetFlag", ("2", f"PIPE_{FIX}"), id=self.handshake)

    def _count(self, total: Expression, size: int, turn: Expression) -> Expression:
        """What a turn has of a whole that is dealt out by ``size``."""
        if isinstance(total, Number) and int(total.value) % size == 0:
            return Number(size)
        if turn == ZERO:
            return total if size == self.sizes.step // SIDE == self.sizes.deep // SIDE else smaller(total, size)
        return self.writer.let("n", INT32, smaller(total - turn * size, size))

    def _multiply(
        self, rows: Stretch, columns: Stretch, place: tuple[Expression, Expression], count: Expression
    ) -> None:
        """One Mmad, and the fractals that it takes: ``count`` along the depth, from a turn's fractal in L1 on."""
        self._load(self.left, rows, place, count)
        self._load(self.right, columns, place, count)
        m = larger(rows.size, 2) if self._may_be_one else rows.size
        initial: Expression = Flag("true")
        for at, begun in enumerate(self.begun):
            initial = begun if not at else Binary("&&", initial, begun)
        half = self.halves.get(self._near_home, ZERO)
        self.writer.emit(
            "Mmad",
            dst=self.sums,
            first=self.left.near[half * (self.sizes.rows * self.sizes.step)],
            second=self.right.near[half * (self.sizes.columns * self.sizes.step)],
            params=(m, columns.size, count * SIDE, 0, "false", initial),
        )

    def _out(self, rows: Stretch, columns: Stretch) -> None:
        """Fixpipe rounds the sums to the result's type."""
        product = self.product
        tensor = self.tensors[product.result.name]
        self.names[product.row.name], self.names[product.column.name] = rows.start, columns.start
        stride = to_expression(product.stride, self.names, self.ranges)
        quantise, relu = QUANTISE[tensor.dtype.name], "true" if product.relu else "false"
        lines = rows.fractals * SIDE

        def emit(target: TensorRef, source: TensorRef, width: Expression, apart: Expression) -> None:
            params = (width, rows.size, lines, apart, relu, quantise, 0, 1, 0, 0, 0)
            template = (SPELLINGS[tensor.dtype], "float", "CFG_ROW_MAJOR")
            self.writer.emit("Fixpipe", template, dst=target, src=source, params=params)

        target = self._global(product.result, product.index)
        if not product.fractal:
            emit(target, self.sums[0], columns.size, stride)
            return
        with self._each(columns.fractals) as x:  # in NZ each group of columns is a matrix of its own
            to = replace(target, offset=target.offset + x * (stride * SIDE))
            emit(to, self.sums[x * (lines * SIDE)], Number(SIDE), Number(SIDE))

    # ------------------------------------------------------------ factors

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

    @contextmanager
    def _each(self, count: Expression) -> Generator[Expression]:
        """Numbers below the count; no loop where it is 1."""
        if count == Number(1):
            yield ZERO
            return
        with self.writer.loop("i", 0, count) as number:
            yield number

    def _load_row(
        self, side: Side, target: Expression, source: Expression, row: tuple[Expression, Expression, Expression]
    ) -> None:
        """One LoadData: so many fractals, their distance in L1, and that in L0."""
        repeats, stride, apart = row
        transpose = "false" if side.matrix.along_depth else "true"
        params = (0, repeats, stride, 0, apart - 1, transpose, 0)
        self.writer.emit("LoadData", dst=side.near[target], src=side.far[source], params=params)

    @property
    def _may_be_one(self) -> bool:
        """Whether a tile may have a single row: tiles of known sizes are cut so that none has."""
        return not isinstance(self.product.row.extent, Num)

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

    def _global(self, buffer: Buffer, index: tuple[Index, ...]) -> TensorRef:
        """The element of a buffer where the loops stand."""
        tensor = self.tensors[buffer.name]
        offset = to_expression(linear(index, buffer.shape), self.names, self.ranges)
        return Tensor(tensor.name, tensor.dtype)[offset]
