"""What a product costs as a kernel of ours and in a library, as cycles of one core.

Both are modelled with the same machine, so that only what differs decides: a kernel of ours hides the reading of its weights
behind its multiplications, and gives its results to what follows in a cache; a library does neither, and is called.
Vectors are of 16 lanes: with fewer of them both take longer alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.tensor.dims import Dim

LANES = 16
TERMS_PER_CYCLE = 2 * LANES
"""Multiplications with additions that begin in a cycle."""

OWN_SHARE, LIBRARY_SHARE = 0.9, 0.8
"""Of that, what loops over panels reach that lie in a cache: measured 0.88 to 0.95, and 0.70 to 0.85 in onnxruntime."""

BYTES_PER_CYCLE = 10.0
"""Of memory, for one core: 38 GB/s at some 3.8 GHz."""

CALL = 10_000.0
"""Cycles of handing an operator to a library: some microseconds."""

LEAST_ROWS = 32
"""Of a product whose right operand is no constant: with fewer, laying it out takes as long as reading it."""

LONE_COLUMN = 3.2
"""Vectors' worth of multiplications that a single column beside whole vectors takes: it is computed term by term."""

USUAL_ROWS = 64
"""What a number of rows is taken for that is not known."""

FLOAT_BYTES = WORD_BYTES = 4
"""A word of bytes takes as long as a float: it is as large, and one instruction multiplies and adds it."""

OWN_SHARE_TERMS = 1 / (TERMS_PER_CYCLE * OWN_SHARE)
"""Cycles of a multiplication in a kernel of ours."""


@dataclass(frozen=True)
class Cycles:
    """What work takes as kernels of ours, and in a library."""

    own: float
    library: float

    @property
    def is_own(self) -> bool:
        """Whether kernels of ours take no longer."""
        return self.own <= self.library

    def __str__(self) -> str:
        return f"modelled {self.own / 1e3:.0f} thousand cycles here, {self.library / 1e3:.0f} in a library"


def is_bound_by_memory(rows: Dim) -> bool:
    """Whether reading float32 weights takes longer than multiplying so many rows with them."""
    return isinstance(rows, int) and rows * OWN_SHARE_TERMS < FLOAT_BYTES / BYTES_PER_CYCLE


def cost_of_both(rows: Dim, terms: int, columns: int) -> Cycles | None:
    """The cycles for float32 ``rows`` by ``terms`` times a matrix of ``terms`` by ``columns`` that is no constant.

    Kernels of ours lay it out at every call, as a library does. None where rows are too few for that, or not known.
    """
    if not isinstance(rows, int) or rows < LEAST_ROWS:
        return None
    cost = cost_of(rows, terms, columns)
    return Cycles(cost.own + FLOAT_BYTES * terms * columns / BYTES_PER_CYCLE, cost.library)


def cost_of(rows: Dim, terms: int, columns: int) -> Cycles:
    """The cycles for float32 ``rows`` by ``terms`` times weights of ``terms`` by ``columns``."""
    known = rows if isinstance(rows, int) else USUAL_ROWS
    memory = FLOAT_BYTES * terms * columns / BYTES_PER_CYCLE
    cycles = known * terms * LANES / TERMS_PER_CYCLE  # of one vector of columns
    vectors = -(-columns // LANES)
    own = vectors - 1 + LONE_COLUMN if columns % LANES == 1 else vectors
    moved = 2 * FLOAT_BYTES * known * columns / BYTES_PER_CYCLE
    return Cycles(max(own * cycles / OWN_SHARE, memory), vectors * cycles / LIBRARY_SHARE + memory + moved + CALL)
