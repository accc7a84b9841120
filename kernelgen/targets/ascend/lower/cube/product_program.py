"""A product as a program of a cube core.

    for b in tiles of this core:
      for s in steps of deep:             DataCopy(l1_a, a[..], Nd2Nz); DataCopy(l1_b, b[..], Nd2Nz)       MTE2
        for t in steps of step:
          LoadData(l0_a, l1_a[..]); LoadData(l0_b, l1_b[..])                                              MTE1
          Mmad(l0_c, l0_a, l0_b, initial where s == 0 && t == 0)                                          M
      Fixpipe(y[..], l0_c)                                                                                FIX

Rows and columns beyond the matrix are computed from what is there and never copied out. How the fractals of the factors come
to L0 stands in :mod:`factor_moves`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

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
from kernelgen.ascendc.instructions import Let, TensorRef
from kernelgen.ascendc.types import FIX, L0C, SPELLINGS
from kernelgen.nest.nodes import Num
from kernelgen.targets.ascend.lower.cube.factor_moves import DEEP, ITEM, STEP, TILE, ZERO, FactorMoves, Stretch
from kernelgen.targets.ascend.lower.cube.product import SIDE, Axis
from kernelgen.targets.ascend.lower.cube.tile_sizes import NONE, RIGHT
from kernelgen.targets.ascend.lower.program.double_buffer import HALF
from kernelgen.targets.ascend.lower.program.indices import to_expression
from kernelgen.tensor.dtypes import FLOAT32, INT32

QUANTISE = {"float32": "NoQuant", "float16": "F322F16", "bfloat16": "F322BF16"}


@dataclass
class CubeProgram(FactorMoves):
    """The state of one product's program.

    ``handshake`` is the id of a flag for the block's vector cores, set behind every tile.
    """

    begun: list[Expression] = field(default_factory=list[Expression])
    first_tile: Expression = ZERO
    handshake: int | None = None

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
