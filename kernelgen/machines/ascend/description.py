"""What an Ascend machine is: sizes, cores, limits, data types and rates, each with where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelgen.ascendc.types import BLOCK
from kernelgen.tensor.dtypes import DType


@dataclass(frozen=True)
class Rates:
    """What the time model multiplies. Cycles, and bytes per cycle; docs/ascend.md says how the fitted ones came about.

    ``vector_start`` and ``mmad_start`` are cycles that an instruction takes whatever it does; ``copy_start`` and
    ``load_start`` the same of a copy from or to GM and of a LoadData. ``copy_one_core`` is the most that a core's copy
    reaches alone, ``copy_all_cores`` what all cores reach together. ``matrix_copy`` is what a cube core's copies to L1
    reach from L2, which has what another core read before. ``issue``, ``scalar_access`` and ``queue_depth``
    describe the scalar unit.
    """

    vector_start: float
    copy_start: float
    copy_one_core: float
    copy_all_cores: float
    matrix_copy: float
    load_start: float
    load_a: float
    load_b: float
    mmad_start: float
    fixpipe: float
    local_copy: float
    issue: float
    scalar_access: float
    queue_depth: int


@dataclass(frozen=True)
class Machine:
    """One Ascend machine.

    ``memories`` maps a memory's name to its usable bytes, ``alignments`` to the alignment of an operand in bytes.
    ``select_reserve`` is what a Select with a mask in memory takes from the end of the unified buffer. ``event_ids`` is
    the number of flags of a pair of pipes, ``reserved_ids`` those that the vendor's libraries keep. ``operations`` maps
    an operation to the data types it computes in, ``casts`` a pair of types to its rounding modes. ``sources`` says of
    every figure where it was read.
    """

    name: str
    architecture: int
    split_cores: bool
    cube_cores: int
    vector_cores: int
    gigahertz: float
    memories: Mapping[str, int]
    alignments: Mapping[str, int]
    select_reserve: int
    event_ids: int
    reserved_ids: frozenset[int]
    has_copy_pad: bool
    has_fixpipe: bool
    bank_groups: int
    group_ports: int
    operations: Mapping[str, frozenset[DType]]
    casts: Mapping[tuple[DType, DType], frozenset[str]]
    rates: Rates
    sources: Mapping[str, str]

    @property
    def room(self) -> int:
        """Bytes behind every buffer in GM that copies of whole blocks may touch, and that belong to nobody."""
        return 0 if self.has_copy_pad else BLOCK - 1

    @property
    def cores(self) -> int:
        """The most blocks of a kernel that run at once."""
        return self.vector_cores if self.split_cores else self.cube_cores

    @property
    def most_blocks(self) -> int:
        """The most values that a block's index has; kernels of both kinds of cores have two vector cores a cube core."""
        return max(self.cores, 2 * self.cube_cores)
