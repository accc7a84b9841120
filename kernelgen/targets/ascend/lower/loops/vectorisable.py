"""Which loops become turns: what can be a lane, what can be a row.

A vector loop has lanes where every access is contiguous, regularly apart, or at one element. A loop of rows is a tile of
two extents where this holds along it as well, and

    vector loops inside have a known, short length
    arrays move by whole rows, or not at all: x[i, j], b[j], m[i], but not x[j, i] or x[i + j]
    locals inside are a number or a row for each of its iterations

What is no tile is done one row, or one lane, after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kernelgen.ascendc.instructions import GATHER
from kernelgen.ascendc.types import BLOCK
from kernelgen.nest import nodes as n
from kernelgen.nest.index import is_by_data, references, subtract, variables
from kernelgen.nest.ranges import range_of
from kernelgen.nest.walk import accesses_of, loads_of, statements, stored_buffers
from kernelgen.targets.ascend.lower.functions.operations import takes_whole_repeats
from kernelgen.targets.ascend.lower.lanes.turn import MOST_ROWS
from kernelgen.targets.ascend.lower.loops.lane_reductions import PAIRS
from kernelgen.targets.ascend.lower.loops.transfers import steps_of
from kernelgen.targets.ascend.lower.program.indices import element_step, linear, most
from kernelgen.targets.ascend.lower.program.scope import (
    LOCAL_TYPES,
    MOST_STRIDED,
    Context,
    Scope,
    accumulated_in,
    local_size,
)
from kernelgen.tensor.dtypes import BOOL, INT32, DType

WORD = INT32
"""Indices are computed in it, and numbers of 64 bits in their words."""
MOST_COLUMNS = 2040
"""Elements of a row at most: its blocks are a repeat stride."""


# ---------------------------------------------------------------- lanes


def has_lanes(context: Context, loop: n.For, scope: Scope) -> bool:
    """Whether every access of a vector ``loop`` is contiguous, regularly apart, or stays at one element.

    ``scope`` is what is known where the loop stands in the program of ``context``.
    """
    stored = stored_buffers(loop.body)
    return loop.step == 1 and all(_is_lane(context, part, loop.var, stored, scope) for part in loop.body.statements)


def _is_lane(context: Context, part: n.Statement, variable: str, stored: frozenset[str], scope: Scope) -> bool:
    if not isinstance(part, n.Let | n.Store | n.Accumulate) or decided_by_data(part):
        return False
    for load in loads_of(part):
        step = element_step(load.index, load.buffer.shape, variable)
        if not (_moves(context, step, load.buffer, scope) or (step == n.Num(0) and load.buffer.name not in stored)):
            return False
    if isinstance(part, n.Let):
        return True
    step = element_step(part.index, part.buffer.shape, variable)
    if isinstance(part, n.Accumulate) and step == n.Num(0):
        return part.function in PAIRS and accumulated_in(part) is not None
    return _moves(context, step, part.buffer, scope)


def decided_by_data(part: n.Statement) -> bool:
    """Whether a value decides where an access goes."""
    return any(references(at) or is_by_data(at) for _, index in accesses_of(part) for at in index)


def _moves(context: Context, step: n.Index | None, buffer: n.Buffer, scope: Scope) -> bool:
    """Whether lanes lie one behind the other, or so far apart that a copy can pick them."""
    if step is None or step == n.Num(1):
        return step is not None
    low = range_of(step, scope.ranges).low
    return low is not None and low >= 1 and buffer.dtype in context.machine.operations[GATHER]


def is_strided(loop: n.For) -> bool:
    """Whether lanes of a loop lie apart, or count: their tiles are large, or made in advance."""
    for part in loop.body.statements:
        for buffer, index in accesses_of(part):
            if element_step(index, buffer.shape, loop.var) not in (n.Num(0), n.Num(1)):
                return True
    return any(counts(part) for part in loop.body.statements)


def compares(part: n.Statement) -> bool:
    """Whether a statement needs instructions that take whole repeats."""
    if isinstance(part, n.Let | n.Store | n.Accumulate):
        kinds = [b.dtype for b, _ in accesses_of(part)]
        return BOOL in kinds or _compares(part.value)
    return False


def _compares(expr: n.Expr) -> bool:
    if not isinstance(expr, n.Call):
        return isinstance(expr, n.Literal | n.Ref) and expr.dtype == BOOL
    kinds = [arg.dtype for arg in expr.args]
    return takes_whole_repeats(expr.function, kinds, expr.dtype) or any(map(_compares, expr.args))


def counts(part: n.Statement) -> bool:
    """Whether a statement computes with an index."""
    return isinstance(part, n.Let | n.Store | n.Accumulate) and _counts(part.value)


def _counts(expr: n.Expr) -> bool:
    return isinstance(expr, n.IndexValue) or (isinstance(expr, n.Call) and any(map(_counts, expr.args)))


# ---------------------------------------------------------------- rows


@dataclass(frozen=True)
class RowTiles:
    """The form of a loop's tiles: ``granule`` elements are whole blocks of every type, ``rows`` go at once."""

    granule: int
    rows: int

    def pitch(self, columns: int) -> int:
        """Elements from row to row."""
        return -(-columns // self.granule) * self.granule


def row_tiles(context: Context, loop: n.For, scope: Scope) -> RowTiles | None:
    """The tiles of a ``loop`` of rows; None where it has none. ``scope`` is what is known where it stands in the
    program of ``context``.
    """
    if loop.kind is not n.LoopKind.ROWS or loop.step != 1:
        return None
    granule = BLOCK // min(dtype.itemsize for part in statements(loop.body) for dtype in (*_types(part), WORD))
    check = _Rows(context, loop, scope, RowTiles(granule, 0), stored_buffers(loop.body))
    if not check.block(loop.body):
        return None
    widest = max(map(check.tiles.pitch, check.widths), default=granule)
    longest = most(loop.upper, loop.lower)
    rows = min(context.turn // widest, MOST_ROWS, longest or MOST_ROWS)
    rows = rows // 8 * 8 if rows >= 8 and rows != longest else rows
    columns = MOST_STRIDED if any(counts(part) for part in statements(loop.body)) else MOST_COLUMNS
    return RowTiles(granule, rows) if rows > 1 and widest <= columns else None


def _types(part: n.Statement) -> Iterator[DType]:
    """Data types that a statement computes with; a bool is a byte in GM and a float16 on its way there."""
    for buffer, _ in accesses_of(part):
        yield buffer.dtype
    if isinstance(part, n.Let | n.Store | n.Accumulate):
        yield from _expression_types(part.value)


def _expression_types(expr: n.Expr) -> Iterator[DType]:
    yield expr.dtype
    if isinstance(expr, n.Call):
        for arg in expr.args:
            yield from _expression_types(arg)


def has_columns(loop: n.For) -> bool:
    """Whether a loop inside of one of rows is a row of lanes, or is done one iteration after the other by all rows."""
    width = subtract(loop.upper, loop.lower)
    return loop.kind is n.LoopKind.VECTOR and isinstance(width, n.Num) and width.value <= MOST_COLUMNS


@dataclass
class _Rows:
    """One loop's check. ``private`` are the locals of an iteration, ``widths`` the lengths of vector loops."""

    context: Context
    loop: n.For
    scope: Scope
    tiles: RowTiles
    stored: frozenset[str]
    private: dict[str, int] = field(default_factory=dict[str, int])
    widths: set[int] = field(default_factory=set[int])

    def block(self, block: n.Block) -> bool:
        """Whether all statements of a block have a form for all rows at once."""
        return all(self.statement(part) for part in block.statements)

    def statement(self, part: n.Statement) -> bool:
        """One of them."""
        match part:
            case n.Let() | n.Store() | n.Accumulate():
                return not decided_by_data(part) and self.at_row(part)
            case n.Alloc(buffer):
                self.private[buffer.name] = local_size(buffer)
                return buffer.dtype in LOCAL_TYPES and buffer.name not in self.context.outside
            case n.For() if has_columns(part):
                return self.columns(part)
            case n.For():
                inside = variables(part.lower) | variables(part.upper)
                return self.loop.var not in inside and self.block(part.body)
            case _:
                return False

    # statements for each row

    def at_row(self, part: n.Let | n.Store | n.Accumulate) -> bool:
        """Whether a statement outside of vector loops has a lane for each row."""
        loaded = all(self.row_load(load.buffer, load.index) for load in loads_of(part))
        if isinstance(part, n.Let) or not loaded:
            return loaded
        buffer, index = part.buffer, part.index
        if buffer.name in self.private:
            return self.private[buffer.name] == 1
        step = element_step(index, buffer.shape, self.loop.var)
        if isinstance(part, n.Accumulate) and step == n.Num(0):
            return part.function in PAIRS and buffer.dtype in LOCAL_TYPES
        return self.apart(step, buffer)

    def row_load(self, buffer: n.Buffer, index: tuple[n.Index, ...]) -> bool:
        """Whether an element for each row can be loaded, and spread."""
        if buffer.name in self.private:
            return self.private[buffer.name] == 1
        step = element_step(index, buffer.shape, self.loop.var)
        spread = buffer.dtype == BOOL or buffer.dtype in self.context.machine.operations["Brcb"]
        return spread and ((step == n.Num(0) and buffer.name not in self.stored) or self.apart(step, buffer))

    def apart(self, step: n.Index | None, buffer: n.Buffer) -> bool:
        """Whether elements of the rows lie one behind the other or can be picked; those of a local lie in a row."""
        if buffer.name in self.context.locals:
            return step == n.Num(1)
        return _moves(self.context, step, buffer, self.scope)

    # vector loops

    def columns(self, loop: n.For) -> bool:
        """Whether a vector loop is a tile of rows."""
        width = subtract(loop.upper, loop.lower)
        if not isinstance(loop.lower, n.Num) or not isinstance(width, n.Num) or loop.step != 1 or width.value < 1:
            return False
        if loop.lower.value and any(
            self.private.get(b.name, 1) > 1 for s in statements(loop) for b, _ in accesses_of(s)
        ):
            return False
        self.widths.add(width.value)
        written = stored_buffers(loop.body)
        return all(self.column(part, loop.var, width.value, written) for part in loop.body.statements)

    def column(self, part: n.Statement, variable: str, width: int, written: frozenset[str]) -> bool:
        """Whether a statement of a vector loop has a lane for each element of the rows."""
        if not isinstance(part, n.Let | n.Store | n.Accumulate) or decided_by_data(part):
            return False
        for load in loads_of(part):
            if not self.column_load(load, variable, width, written):
                return False
        if isinstance(part, n.Let):
            return True
        buffer, index = part.buffer, part.index
        rows, columns = steps_of(buffer, index, (self.loop.var, variable))
        if isinstance(part, n.Accumulate) and (columns == n.Num(0) or self.is_shared(rows, buffer)):
            return self.combined(part, rows, columns)
        return self.is_row(buffer, index, variable, width)

    def column_load(self, load: n.Load, variable: str, width: int, written: frozenset[str]) -> bool:
        """Whether a load is a tile of rows, a row for all, or an element for each row."""
        buffer, index = load.buffer, load.index
        rows, columns = steps_of(buffer, index, (self.loop.var, variable))
        if columns == n.Num(0):
            return buffer.name not in written and self.row_load(buffer, index)
        if columns == n.Num(1) and self.is_shared(rows, buffer):
            spread = buffer.dtype == BOOL or buffer.dtype in self.context.machine.operations["Copy"]
            return spread and buffer.name not in self.stored
        return self.is_row(buffer, index, variable, width)

    def is_shared(self, rows: n.Index | None, buffer: n.Buffer) -> bool:
        """Whether an access is the same for all rows."""
        return rows == n.Num(0) and buffer.name not in self.private

    def combined(self, part: n.Accumulate, rows: n.Index | None, columns: n.Index | None) -> bool:
        """Whether a reduction along rows, columns or both has results that can be joined."""
        buffer = part.buffer
        if part.function not in PAIRS or buffer.dtype not in LOCAL_TYPES:
            return False
        if buffer.name in self.private:
            return self.private[buffer.name] == 1
        if columns == n.Num(0):
            return rows == n.Num(0) or self.apart(rows, buffer)
        return columns == n.Num(1)

    def is_row(self, buffer: n.Buffer, index: tuple[n.Index, ...], variable: str, width: int) -> bool:
        """Whether an access is a whole row for each row."""
        rows, columns = steps_of(buffer, index, (self.loop.var, variable))
        pitch = self.tiles.pitch(width)
        if columns != n.Num(1) or rows is None:
            return False
        if buffer.name in self.private:
            start = linear(index, buffer.shape)
            return start == n.Var(variable) and self.tiles.pitch(self.private[buffer.name]) == pitch
        if buffer.name in self.context.locals:
            return rows == n.Num(pitch)
        low = range_of(subtract(rows, n.Num(width)), self.scope.ranges).low
        return low is not None and low >= 0
