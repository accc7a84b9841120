"""How long blocks of results in registers take for products with constants, in cycles of one term of all sums.

Rows pass panels of columns; a block is a few rows of one panel. Multiplications, loads or the latency of a chain bound it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelgen.plan import VectorUnit
from kernelgen.tensor.dims import Dim

Block = tuple[int, int]
"""Rows and columns of results."""

MOST_ROWS = 8
"""Of a block; rows a power of two apart fall into one set of the first cache, which holds twelve or so lines of them."""

MOST_VECTORS = 8
"""Of columns in a block: their panel is read as one stream."""

TILE_CYCLES = 0.2
"""Of a block for each term of the sum: its start and end, spread over some hundred terms."""

LEAST_SHARE = 32
"""Rows of a thread: with fewer, reading all panels takes longer than computing with them."""

HANDED_BYTES = 40 << 10
"""Of the results of a panel that the first cache holds until what follows has read them."""

FAR = 1.05
"""How much longer a share takes whose results leave the first cache before they are read."""

FLOAT_BYTES = 4

PARTS_OF_LINES = 1.1
"""How much longer a block takes whose results are parts of lines. Measured, of bytes: 1.04 to 1.17 for 48 columns beside 64."""

OTHERS_CYCLES = 1.0
"""Of reading an element that another core has. Measured: 1.3 to 2.2 where 64 columns hide it, 0.5 where 160 or 192 do."""

USUAL_ROWS = 64
"""What a number of rows is taken for that is not known."""


@dataclass(frozen=True)
class _Term:
    """What one term of a block's sums takes at least, in cycles, where two multiplications and two loads begin in each.

    ``latency`` is that of a multiplication with addition and of what it waits for others, ``vector`` one of a panel on its way
    from the second cache, ``element`` one of a row for all lanes, beside its place among the loads.
    """

    latency: float
    vector: float
    element: float


NAMED = _Term(latency=4.0, vector=0.5, element=0.0)
"""AVX-512 and NEON, whose 32 registers come with multiplications by an element in memory, or in a lane."""

LOADED = _Term(latency=4.5, vector=1.2, element=0.3)
"""Others load it first. Measured on Zen 3, 768 rows of 512 terms, where blocks of 4 x 24 reach 76 to 84 GF/s: 6 x 16 take 1.02
to 1.27 times as long, 4 x 16 1.1 to 1.4, 3 x 24 1.01 to 1.03, 2 x 32 1.12 to 1.15, 2 x 40 1.2, 1 x 64 2.2, 7 x 8 1.4; the
longer ones are those with a neighbour busy on the same core."""

PAIRED = replace(LOADED, latency=1.0)
"""Products of pairs of halves, of which sums of integers alone wait for each other: two instructions on three or four units."""


@dataclass(frozen=True)
class BlockRules:
    """What a block is made for: registers of a ``unit``.

    ``whole`` blocks leave no row over; ``widest`` are the vectors of a row at most; so many ``threads`` share the panels; so
    many vectors make a ``line`` of memory where results are handed on; in so many registers products are ``waiting`` until a
    second instruction adds them.
    """

    unit: VectorUnit
    whole: bool = False
    widest: int = MOST_VECTORS
    threads: int = 1
    line: int = 1
    waiting: int = 0


def block_for(rows: Dim, columns: Dim, rules: BlockRules) -> Block:
    """The block that takes the fewest cycles for a product of ``rows`` and ``columns``, of those that the ``rules`` allow."""
    unit = rules.unit
    known = rows if isinstance(rows, int) else USUAL_ROWS
    width = columns if isinstance(columns, int) else 0
    fitting = [
        (count, vectors)
        for vectors in range(1, rules.widest + 1)
        for count in range(1, min(known, MOST_ROWS) + 1)
        if count * vectors + vectors + 1 + rules.waiting <= unit.registers
        and not (rules.whole and known % count)
        and (not width or vectors * unit.lanes <= max(width, unit.lanes))
    ]

    def time(block: Block) -> float:
        return _cycles(known, width, block, rules) * _of_lines(block[1], width, unit, rules.line)

    count, vectors = min(fitting, key=lambda block: (time(block), -block[0] * block[1]))
    return count, vectors * unit.lanes


def block_time(rows: int, columns: Dim, block: Block, rules: BlockRules) -> float:
    """The cycles of one term of all sums of ``rows`` and ``columns`` in blocks of the size ``block``, made by the ``rules``."""
    width = columns if isinstance(columns, int) else 0
    return _cycles(rows, width, (block[0], block[1] // rules.unit.lanes), replace(rules, threads=1))


def row_time(share: int, columns: Dim, rules: BlockRules) -> float:
    """The cycles of a row of ``columns``, of ``share`` rows of which whole blocks, made by the ``rules``, leave none over."""
    block = block_for(share, columns, replace(rules, whole=True))
    vectors, width = block[1] // rules.unit.lanes, columns if isinstance(columns, int) else 0
    parts = _of_lines(vectors, width, rules.unit, rules.line)
    return block_time(share, columns, block, rules) / share * _distance(share, block) * parts


def rows_time(rows: int, columns: int, unit: VectorUnit, threads: int) -> float:
    """The cycles of all ``rows``, which pass panel after panel of ``columns`` on a ``unit``, where ``threads`` share these."""
    rules = BlockRules(unit, threads=threads)
    block = block_for(rows, columns, rules)
    return _cycles(rows, columns, (block[0], block[1] // unit.lanes), rules) * _distance(rows, block)


def panel_widths(columns: Dim, width: int, lanes: int, threads: int = 1) -> tuple[int, ...]:
    """How many of all ``columns`` panels have: a ``width``, as a block; beside whole blocks one panel for each of the
    ``threads`` that share them, in whole vectors of ``lanes``; single vectors. Each kind takes what the ones before leave.

    Tiles are counted from the first column: where the blocks end a panel of that width has to begin.
    """
    end, most = (columns - columns % width, columns % width // threads) if isinstance(columns, int) else (0, 0)
    shared = [narrow for narrow in range(lanes, most + 1, lanes) if end % narrow == 0]
    return tuple(dict.fromkeys((width, *shared[-1:], lanes)))


def _of_lines(vectors: int, columns: int, unit: VectorUnit, line: int) -> float:
    """How much longer blocks of so many vectors take where so many make a ``line`` of results; of ``columns``, if known."""
    are_whole = vectors % line == 0 or not columns or vectors * unit.lanes >= columns
    return 1.0 if are_whole else PARTS_OF_LINES


def _distance(rows: int, block: Block) -> float:
    """How much longer it takes where results of so many rows leave the first cache before they are read."""
    return 1.0 if FLOAT_BYTES * rows * block[1] <= HANDED_BYTES else FAR


def _cycles(rows: int, columns: int, block: Block, rules: BlockRules) -> float:
    """Of one term of all sums, on the one of the threads that takes most panels."""
    (count, vectors), unit, threads = block, rules.unit, rules.threads
    term = NAMED if unit.registers >= VectorUnit().registers else LOADED if not rules.waiting else PAIRED
    cycles, left = 0.0, columns or threads * vectors * unit.lanes
    for width in panel_widths(left, vectors * unit.lanes, unit.lanes, threads):
        panels, left = divmod(left, width)
        cycles += -(-panels // threads) * _panel(rows, count, width // unit.lanes, term)
    return cycles + (_panel(rows, count, 1, term) if left else 0.0)


def _panel(rows: int, count: int, vectors: int, term: _Term) -> float:
    """Of one ``term`` of the sums in a panel."""
    blocks, below = divmod(rows, count)
    return blocks * _tile(count, vectors, term) + (_tile(below, vectors, term) if below else 0.0)


def _tile(count: int, vectors: int, term: _Term) -> float:
    """Multiplications, loads or latency, whichever takes longest; the others do not hide wholly behind it.

    Columns come from the second cache, rows from the first.
    """
    loads = (count + vectors) / 2
    most = max(count * vectors / 2, loads, term.latency, vectors * term.vector)
    return most + 0.1 * loads + 0.15 * vectors + term.element * count + TILE_CYCLES
