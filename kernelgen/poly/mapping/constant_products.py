"""The loops of products with constants, whose panels are computed before all calls: every piece of rows reads the same ones.

    rows and columns in whole blocks    parallel j by columns; i by rows; k; vector j; i unrolled
    rows below them                     parallel j by columns; k; vector j; i unrolled
    columns beside them                 parallel j by lanes; ...

Where there are rows enough for several threads, each takes its share of them, ``parallel i by share`` in front of all else:
kernels that follow each other find what they read where the same thread wrote it, in the cache of its own core.

    images, many weights        parallel j by columns; rows of the image; i by neighbours; sums; vector j; i unrolled
    one block of rows           parallel j by columns; j by lanes; k; vector j; i unrolled
    bytes, many at once         parallel j by columns; i by rows; rows i; k; vector j

Rows of many terms leave the first cache before the next panel reads them, and their panels leave it for each block of rows:
all rows of a share pass a piece of a panel, ``k by depth``, before the next piece. Sums may take their terms in any order.

Panels turn round and pack what they hold, so that one row is enough for them, and the lanes are columns however the constant
lies. The block is the one whose cycles a cost says are fewest (:func:`block_for`): few rows take many columns, so that there
are sums enough to fill the latency of their instruction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from types import MappingProxyType

from kernelgen.machines.cpu import CPU
from kernelgen.nest.marks import VECTOR
from kernelgen.nest.nodes import Var
from kernelgen.plan import CpuPlan, LoopPlan, PiecePlan, VectorUnit, WholeTiles
from kernelgen.poly.mapping.axis import Band, element_stride
from kernelgen.poly.mapping.matrix_products import MATRIX_BLOCK, matrix_pieces, rows_of_block, takes_matrices
from kernelgen.poly.mapping.register_blocks import few_rows
from kernelgen.poly.mapping.windows import window_members
from kernelgen.poly.model.product_recognition import moves
from kernelgen.poly.model.register_cost import (
    FLOAT_BYTES,
    LEAST_SHARE,
    MOST_VECTORS,
    Block,
    BlockRules,
    block_for,
    block_time,
    panel_widths,
    row_time,
)
from kernelgen.poly.model.window_recognition import MOST_WEIGHT_BYTES, passes_panels_once, tap_of_few
from kernelgen.tensor.dims import Dim
from kernelgen.tensor.dtypes import INT8, UINT8

LINE_BYTES = 64
"""Of memory."""

MOST_LOSS = 1.25
"""How much longer a share may take in blocks that leave no row over than in the best ones: some numbers have no divisor."""

MOST_ELEMENTS = 1 << 18
"""Of the results of a share that the second cache of usual processors holds."""

LEAST_PASS = 96
"""Rows of a share for which more panels than the second cache holds are read again: multiplications hide reading them."""

MOST_PANEL_BYTES = 640 << 10
"""Of a panel that the second cache holds while row after row of an image passes it."""


MOST_PASS_BYTES = 3 << 19
"""Of rows and of two panels, one of which is asked for meanwhile, that the second cache keeps while they pass."""

MOST_ROW_BYTES = 48 << 10
"""Of the rows of a block that the first cache keeps while they pass a panel."""

LEAST_DEPTH = 192
"""Terms of a piece, for which reading and writing the results once more is little; a panel of them stays in the first cache."""


DIGIT_VECTORS = MappingProxyType({INT8: 1 / 8, UINT8: 3 / 16})
"""Of the columns of one row that multiplies bytes of weights digit by digit, for each register: a vector has three sums.
Groups of numbers of four bits join these more often: more vectors wait together."""


@dataclass(frozen=True)
class ConstantProduct:
    """Members of a band: ``column`` is what constants and results move along, ``row`` what the constants stay along.

    ``row`` is None where there is one row.
    """

    row: int | None
    column: int
    tap: int | None = None
    """A member of few iterations along which neighbours of a row read the same elements."""
    matrices: bool = False
    """Whether registers of matrices hold the sums."""
    line: int = 1
    """Vectors of results of which a line of memory is made: of bytes several, which products of bytes hand on."""
    waiting: int = 0
    """Registers that products wait in: those of halves of words, which bytes become, are added by another instruction."""

    def rules(self, unit: VectorUnit) -> BlockRules:
        """What its blocks are made for."""
        return BlockRules(unit, line=self.line, waiting=self.waiting)


def constant_product(band: Band, limits: CpuPlan) -> ConstantProduct | None:
    """What a ``band`` is that sums products with a constant, within the ``limits``; None for other bands."""
    if not band.is_leaf or not band.permutable or window_members(band) is not None:
        return None
    sides = _sides(band, band.scop.constants)
    matrices = sides is not None and takes_matrices(band, sides.row, sides.column, limits)
    if sides is None or not _is_of_bytes(band):
        return sides and replace(sides, matrices=matrices)
    line = max(1, LINE_BYTES // limits.unit.lanes) if limits.unit.adds_bytes else 1
    return replace(sides, matrices=matrices, line=line, waiting=int(limits.unit.adds_pairs))


def _is_of_bytes(band: Band) -> bool:
    """Whether all that is multiplied is bytes."""
    reads = (read.buffer.dtype for axis in band.axes for statement, _ in axis.follows for read in statement.reads)
    return all(dtype.itemsize == 1 for dtype in reads)


def _sides(band: Band, constants: frozenset[str]) -> ConstantProduct | None:
    """The sides of such a band, apart from what the processor decides."""
    sums = [m for m, axis in enumerate(band.axes) if not axis.coincident]
    if not constants or not sums or any(len(axis.follows) != 1 for axis in band.axes):
        return None
    if not all(band.axes[m].reduces for m in sums):
        return None
    statement = band.axes[0].follows[0][0]
    names = [axis.follows[0][1] for axis in band.axes]
    read = [moves(read) for read in statement.reads if read.buffer.name in constants]
    summed = {names[m] for m in sums}
    for column in reversed(range(len(names))):
        axis = band.axes[column]
        along = {element_stride(access, names[column]) for access in statement.writes}
        held = [one for one in read if names[column] in one]
        if not axis.coincident or along != {1} or not held or not any(summed <= one for one in held):
            continue
        rows = [m for m, other in enumerate(band.axes) if other.coincident and not any(names[m] in one for one in held)]
        row = rows[-1] if rows else None
        tap = None if row is None else tap_of_few(statement, names[row], constants)
        return ConstantProduct(row, column, None if tap is None else names.index(tap))
    return None


@dataclass(frozen=True)
class Panels:
    """Which dim of a product's results is dealt to panels, and their ``widths``, those of whole blocks first.

    ``rows`` are the dim that is dealt to threads and their share of it, where one is.
    """

    dim: int
    widths: tuple[int, ...]
    rows: tuple[int, int] | None = None


def panels_of(band: Band, sides: ConstantProduct, limits: CpuPlan) -> dict[str, Panels]:
    """The results of a ``band`` that is a product with these ``sides``, within the ``limits``, by the name of their buffer."""
    ((statement, name),) = band.axes[sides.column].follows
    widths, share = widths_of(band, sides, limits), share_of(band, sides, limits)
    row = None if share is None or sides.row is None else band.axes[sides.row].follows[0][1]
    found: dict[str, Panels] = {}
    for access in statement.writes:
        dims = {place.name: dim for dim, place in enumerate(access.index) if isinstance(place, Var)}
        rows = None if share is None or row not in dims else (dims[row], share)
        if name in dims:
            found[access.buffer.name] = Panels(dims[name], widths, rows)
    return found


def panel_axis(band: Band, panels: Mapping[str, Panels]) -> tuple[int, Panels] | None:
    """The member of a band along which it reads results of such a product, panel by panel; None for other bands."""
    for member, axis in enumerate(band.axes):
        for statement, name in axis.follows:
            for read in statement.reads:
                found = panels.get(read.buffer.name)
                if found is not None and read.index[found.dim] == Var(name):
                    return member, found
    return None


def share_axis(band: Band, panels: Panels) -> int | None:
    """The member along which such a band reads the rows that are dealt to threads; None where none are."""
    if panels.rows is None:
        return None
    dim = panels.rows[0]
    for member, axis in enumerate(band.axes):
        for statement, name in axis.follows:
            if any(len(read.index) > dim and read.index[dim] == Var(name) for read in statement.reads):
                return member
    return None


def share_of(band: Band, sides: ConstantProduct, limits: CpuPlan) -> int | None:
    """The rows that pass all panels before others do: a thread's, or a part of those where what they hand on would leave the
    first cache. None where threads take columns, or one thread all rows.

    Columns that are not all in panels of one width need memory for whole rows of a share.
    """
    rows, columns = (None if m is None else band.axes[m].extents[0] for m in (sides.row, sides.column))
    others = sum(axis.coincident for axis in band.axes) > 2
    if not isinstance(rows, int) or others or not band.outermost or columns is None:
        return None
    dealt = [share for share in _equal_shares(rows, limits.threads) if _fits(share, columns, limits.unit, sides)]
    if sides.matrices:
        dealt = [share for share in dealt if share % rows_of_block(share) == 0]
    least = LEAST_SHARE if _weight_bytes(band, columns) <= MOST_WEIGHT_BYTES else LEAST_PASS

    def time(share: int) -> float:
        """The cycles of a row in shares of this size, those of fewer than the least rows behind all others. Shares of as many
        whole blocks take equally long, whatever their last bits say."""
        return inf if share < least else round(row_time(share, columns, sides.rules(limits.unit)), 6)

    share = min(dealt, key=lambda share: (time(share), -share), default=rows)
    return share if share < rows else None


def _equal_shares(rows: int, threads: int) -> Iterator[int]:
    """Of so many rows, the largest first, as many for each thread; shares of one thread may be all."""
    return (rows // count for count in range(threads, rows // LEAST_SHARE + 1, threads) if rows % count == 0)


def _fits(share: int, columns: Dim, unit: VectorUnit, sides: ConstantProduct) -> bool:
    """Whether blocks that leave none of its rows over lose little, and its results find room."""
    rules = sides.rules(unit)
    best, whole = (block_for(share, columns, replace(rules, whole=whole)) for whole in (False, True))
    if block_time(share, columns, whole, rules) > MOST_LOSS * block_time(share, columns, best, rules):
        return False
    return isinstance(columns, int) and (columns % whole[1] == 0 or share * columns <= MOST_ELEMENTS)


def _weight_bytes(band: Band, columns: Dim) -> float:
    """Of all panels; of a size that is not known, more than any cache holds."""
    extents = (columns, *(axis.extents[0] for axis in band.axes if not axis.coincident))
    return FLOAT_BYTES * prod(extent if isinstance(extent, int) else inf for extent in extents)


def depth_of(band: Band, sides: ConstantProduct, limits: CpuPlan) -> tuple[LoopPlan, ...]:
    """The loops over pieces of the terms that are around the panels of a ``band`` with these ``sides``, and over a thread's
    columns around those, within the ``limits``; none where a block's rows find room, rows are one block, or what is left of
    rows or columns would pass the constant once more.
    """
    rows, columns = (None if m is None else band.axes[m].extents[0] for m in (sides.row, sides.column))
    sums = [m for m, axis in enumerate(band.axes) if not axis.coincident]
    if not isinstance(rows, int) or not isinstance(columns, int) or len(sums) > 1 or len(band.axes) > 3:
        return ()
    (high, width), share, terms = (
        block_of(band, sides, limits),
        share_of(band, sides, limits),
        band.axes[sums[0]].extents[0],
    )
    passing = share or rows
    if sides.matrices or not band.outermost or passing % high or passing == high or not isinstance(terms, int):
        return ()
    most = MOST_PASS_BYTES // (FLOAT_BYTES * (passing + 2 * width))
    depth = min((part for part in range(LEAST_DEPTH, most + 1) if terms % part == 0), default=terms)
    if FLOAT_BYTES * high * terms <= MOST_ROW_BYTES or depth == terms:
        return ()
    if share or limits.threads == 1:
        return (LoopPlan(sums[0], depth),)
    own = -(-columns // (width * limits.threads)) * width
    return (LoopPlan(sides.column, own), LoopPlan(sums[0], depth)) if columns % width == 0 else ()


def image_rows(band: Band, sides: ConstantProduct) -> tuple[int, ...]:
    """The members along which rows of an image lie that pass a panel before the next one; none where rows pass all panels."""
    constants = band.scop.constants
    ((statement, _),) = band.axes[sides.column].follows
    if not band.outermost or not passes_panels_once(statement, constants):
        return ()
    held = {name for read in statement.reads if read.buffer.name in constants for name in moves(read)}
    others = (m for m, axis in enumerate(band.axes) if axis.coincident and m not in (sides.row, sides.column))
    return tuple(m for m in others if band.axes[m].follows[0][1] not in held)


def stream_of(band: Band, sides: ConstantProduct, block: Block, lanes: int) -> int | None:
    """The columns of a panel that lie together, of vectors of ``lanes``, where all rows of a ``band`` with these ``sides`` are
    one ``block``, so that each element of a constant is read once; None where they are the whole panel.

    Memory bounds such a product. One stream waits at each page, several hide each other's waits: each line of a term's
    columns lies by itself, and :mod:`kernelgen.transforms.cpu.jam_panels` reads them side by side. Of parts of lines each
    is asked for several times. Bytes take as long to become numbers as to be read.
    """
    rows: Dim = 1 if sides.row is None else band.axes[sides.row].extents[0]
    others = any(axis.coincident and m not in (sides.row, sides.column) for m, axis in enumerate(band.axes))
    if not band.outermost or others or not isinstance(rows, int) or rows > block[0]:
        return None
    ((statement, _),) = band.axes[sides.column].follows
    held = min(read.buffer.dtype.itemsize for read in statement.reads if read.buffer.name in band.scop.constants)
    line = CPU.line_bytes // held
    if lanes * held < CPU.line_bytes // 2 or block[1] <= lanes:
        return None
    return line if block[1] % line == 0 and block[1] > line > lanes else lanes


def block_of(band: Band, sides: ConstantProduct, limits: CpuPlan) -> Block:
    """The block of a product's band: one that a thread's share of rows is made of, where they are dealt, or a block of rows."""
    rows, columns = (1 if m is None else band.axes[m].extents[0] for m in (sides.row, sides.column))
    if sides.matrices:
        return rows_of_block(share_of(band, sides, limits) or rows), MATRIX_BLOCK
    around, threads = image_rows(band, sides), _sharing(band, sides, limits)
    rules = replace(sides.rules(limits.unit), line=1)
    if around:
        terms = prod(axis.extents[0] for axis in band.axes if not axis.coincident and isinstance(axis.extents[0], int))
        widest = max(1, min(MOST_PANEL_BYTES // (FLOAT_BYTES * terms * limits.unit.lanes), MOST_VECTORS))
        return block_for(rows, columns, replace(rules, widest=widest, threads=threads))
    share = share_of(band, sides, limits) or _block_length(band, sides)
    if share is None:
        widest = _widest_digits(band, limits.unit) if rows == 1 and limits.unit.adds_bytes else MOST_VECTORS
        return block_for(rows, columns, replace(rules, widest=widest, threads=threads))
    return block_for(share, columns, replace(rules, whole=True, line=sides.line))


def widths_of(band: Band, sides: ConstantProduct, limits: CpuPlan) -> tuple[int, ...]:
    """How many columns the panels of a product's band have, those of whole blocks first."""
    threads = 1 if share_of(band, sides, limits) else _sharing(band, sides, limits)
    width = block_of(band, sides, limits)[1]
    return panel_widths(band.axes[sides.column].extents[0], width, limits.unit.lanes, threads)


def _widest_digits(band: Band, unit: VectorUnit) -> int:
    """The most vectors of a block where constants are bytes, which are multiplied with digits of a row; else of any block."""
    reads = (read.buffer for axis in band.axes for statement, _ in axis.follows for read in statement.reads)
    held = {buffer.dtype for buffer in reads if buffer.name in band.scop.constants}
    return min(
        (int(DIGIT_VECTORS[kind] * unit.registers) for kind in held & DIGIT_VECTORS.keys()), default=MOST_VECTORS
    )


def _sharing(band: Band, sides: ConstantProduct, limits: CpuPlan) -> int:
    """The threads that share the loop over panels: one where loops over groups or tiles are outside of it."""
    inside = {sides.row, sides.column, *image_rows(band, sides)}
    deals = band.outermost and all(m in inside for m, axis in enumerate(band.axes) if axis.coincident)
    return limits.threads if deals else 1


def _block_length(band: Band, sides: ConstantProduct) -> int | None:
    """The length of blocks of rows that loops around the band count."""
    if sides.row is None:
        return None
    ((statement, name),) = band.axes[sides.row].follows
    return next((it.blocks.length for it in statement.iterators if it.blocks and it.blocks.of == name), None)


def pieces_of_constants(
    sides: ConstantProduct,
    rest: tuple[LoopPlan, ...],
    sums: Sequence[int],
    rows: Dim,
    count: int,
    widths: tuple[int, ...],
    inside: tuple[LoopPlan, ...] = (),
    *,
    stream: int | None = None,
) -> tuple[PiecePlan, ...]:
    """Pieces of all columns that panels of the ``widths`` cover, one after the other, then what is left.

    ``rest`` are loops around panels, ``inside`` those of what passes a panel before the next one, ``count`` of the ``rows`` at
    once. A panel may be one of streams beside each other, of as many columns as ``stream``.
    """
    column = sides.column
    found: list[PiecePlan] = []
    for width in widths:
        whole = WholeTiles(column, width)
        panel = (LoopPlan(column, width), *((LoopPlan(column, stream),) if stream and width > stream else ()))
        for piece in _row_pieces(sides, sums, rows, count):
            found.append(PiecePlan((*rest, *panel, *inside, *piece.loops), (*piece.whole, whole)))
    found += [PiecePlan((*rest, *inside, *piece.loops), piece.whole) for piece in _row_pieces(sides, sums, rows, count)]
    return tuple(found)


def _row_pieces(sides: ConstantProduct, sums: Sequence[int], rows: Dim, count: int) -> Iterator[PiecePlan]:
    """The loops inside a panel, for whole blocks of rows and for the rows below."""
    row = sides.row
    if row is not None and sides.matrices:
        yield from matrix_pieces(row, sides.column, sums, rows, count)
        return
    taps = () if sides.tap is None else (LoopPlan(sides.tap, unroll=True),)
    inner = (*(LoopPlan(m) for m in sums if m != sides.tap), LoopPlan(sides.column, mark=VECTOR), *taps)
    if row is None:
        yield PiecePlan(inner)
        return
    unrolled = (*inner, LoopPlan(row, unroll=True))
    if isinstance(rows, int) and rows <= count:
        yield PiecePlan(unrolled)
        return
    yield PiecePlan((LoopPlan(row, count), *unrolled), (WholeTiles(row, count),))
    if isinstance(rows, int):
        yield PiecePlan(unrolled)
        return
    for few in few_rows(count):
        yield PiecePlan((LoopPlan(row, few), *unrolled), (WholeTiles(row, few),))
    yield PiecePlan((LoopPlan(row), *inner))
