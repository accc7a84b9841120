"""Tiles around the blocks of a product whose operands no cache holds, so that each is read from memory once.

    rows stream     parallel i by 128; j by 32; i by 8; k; vector j; i unrolled            all panels pass a block of rows
    terms stream    parallel i by M; k by 196; j by 32; i by 8; k; vector j; i unrolled    all results stay, terms pass once

Without them all rows pass a panel, then the next one: rows that no cache holds come from memory once for each panel. The
gradient of a weight has few results and a term for each pixel of a batch; both operands lie by terms, so that a block of
eight rows would read half a line of every term, and all terms again for the next block. Loops of a band that is permutable
may be tiled: a sum takes its terms in the same order, in pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelgen.plan import LoopPlan
from kernelgen.poly.mapping.axis import Band
from kernelgen.poly.model.register_cost import Block

ROOM_BYTES = 256 * 1024
"""Of what a tile touches: a part of the second cache, beside what is asked for ahead."""

STREAM_BYTES = 1024 * 1024
"""From which size on an operand counts as one that no cache holds."""

LEAST = 128
"""Rows or terms in a tile: panels are packed again for each."""


def streaming_tiles(
    band: Band, row: int, column: int, sums: Sequence[int], block: Block, threads: int
) -> tuple[LoopPlan, ...]:
    """The loops over tiles around all others; none where operands stay in a cache, or tiles would be small."""
    found = _Product.of(band, row, column, sums)
    if found is None:
        return ()
    if (length := found.rows_at_once(block)) is not None:
        return (LoopPlan(row, length),)
    if (length := found.terms_at_once()) is not None:
        share = -(-found.rows // (threads * block[0])) * block[0]
        return LoopPlan(row, share), LoopPlan(sums[0], length)
    return ()


@dataclass(frozen=True)
class _Product:
    """Its extents; ``size`` are the bytes of an element."""

    rows: int
    columns: int
    terms: int
    size: int

    @classmethod
    def of(cls, band: Band, row: int, column: int, sums: Sequence[int]) -> _Product | None:
        """The product of a band; None where an extent is open, or several loops sum up."""
        extents = [band.axes[member].extents for member in (row, column, *sums)]
        match [each for extent in extents for each in extent]:
            case [int(rows), int(columns), int(terms)]:
                pass
            case _:
                return None
        ((statement, _),) = band.axes[row].follows
        return cls(
            rows, columns, terms, max(access.buffer.dtype.itemsize for access in (*statement.reads, *statement.writes))
        )

    def rows_at_once(self, block: Block) -> int | None:
        """Rows of a tile that several panels pass."""
        streams = self.rows * self.terms * self.size >= STREAM_BYTES and self.columns > block[1]
        return self._even(self.rows, (self.terms + self.columns) * self.size, block[0]) if streams else None

    def terms_at_once(self) -> int | None:
        """Terms of a tile, of which all results get their share."""
        across = (self.rows + self.columns) * self.size
        streams = self.terms * across >= STREAM_BYTES and self.rows * self.columns * self.size <= ROOM_BYTES
        return self._even(self.terms, across, 1) if streams else None

    def _even(self, extent: int, each: int, multiple: int) -> int | None:
        """The length of equal tiles of so many bytes ``each``; None where there is none that is long enough."""
        most = ROOM_BYTES // each
        return next((n for n in range(most, LEAST - 1, -1) if extent % n == 0 and n % multiple == 0), None)
