"""What devices of many threads are like: how many go together, what there is room for, and what else differs between kinds.

Sources: "CUDA C++ Programming Guide", technical specifications and arithmetic by compute capability; "PTX ISA", target
notes of mma and cp.async; Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via
Microbenchmarking, 2024, for the latency, which is taken for all devices; the vendors' data sheets for the number of
multiprocessors, which differs within a capability: with a device at hand its own is asked for, without one it is that of
a usual one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16, DType

WARP = 32
"""Threads that go together. The proof of races and the interpreter have their own: they check what is made with this one."""

MOST_THREADS = 1024
"""Of a block, on every device."""

BANK_BYTES = 4
"""Of a bank of shared memory, on every device."""

WIDEST_ACCESS = 16
"""Bytes that one instruction of a thread moves at most, and their alignment, on every device."""

KILOBYTE = 1024
PARTIAL_RESULTS = 16 * KILOBYTE
"""Of shared memory, which is left for the partial results of a block's warps."""

ROW_LIMIT, PRODUCT_LIMIT, TILE_LIMIT, JOINED_LIMIT = 80 * KILOBYTE, 112 * KILOBYTE, 24 * KILOBYTE, 32 * KILOBYTE
"""Of shared memory, that a block takes where the device has as much; see the properties of :class:`GpuMachine`."""


@dataclass(frozen=True)
class GpuMachine:
    """A device; the passes that make a thread's program ask for no other figures.

    ``lanes`` is how many neighbours exchange registers: a power of two, 1 where none do. A wavefront of 64 is two groups
    of 32, so that one text runs on wavefronts of either size. ``matrices`` are the 16-bit types whose matrices a warp
    multiplies. ``processors`` are the multiprocessors, each of which holds ``resident`` threads and ``registers`` of 32
    bits at once, and issues ``issues`` instructions in a cycle; ``shared_bytes`` is the most that a block may ask for.
    ``latency`` is that of memory, in cycles.
    """

    lanes: int = 32
    matrices: frozenset[DType] = frozenset({FLOAT16, BFLOAT16})
    async_copies: bool = True  # from global to shared memory, while the thread goes on
    divided_meetings: bool = True  # threads meet where some blocks go and others do not
    processors: int = 132
    resident: int = 2048
    registers: int = 65536
    issues: int = 4
    latency: float = 480.0
    shared_bytes: int = 227 * KILOBYTE

    @property
    def array_bytes(self) -> int:
        """Of the arrays that a block's threads share, beside the partial results of its warps."""
        return min(ROW_LIMIT, self.shared_bytes - PARTIAL_RESULTS)

    @property
    def product_bytes(self) -> int:
        """Of the tiles of a product: two blocks on a multiprocessor of 228 KB at once, where registers allow it."""
        return min(PRODUCT_LIMIT, self.shared_bytes)

    @property
    def tile_bytes(self) -> int:
        """Of tiles through which elements change places, so that eight blocks fit a multiprocessor of 228 KB."""
        return min(TILE_LIMIT, self.shared_bytes)

    @property
    def joined_bytes(self) -> int:
        """Of the parts of a launch together: each of its blocks has the memory of all of them."""
        return min(JOINED_LIMIT, self.shared_bytes)


NO_MATRICES = frozenset[DType]()
HOPPER = GpuMachine()
AMPERE = replace(HOPPER, processors=108, shared_bytes=163 * KILOBYTE)
SMALL = replace(HOPPER, resident=1536, shared_bytes=99 * KILOBYTE)
BLACKWELL = replace(HOPPER, processors=148)
TURING = GpuMachine(
    matrices=frozenset({FLOAT16}), async_copies=False, processors=40, resident=1024, shared_bytes=64 * KILOBYTE
)

CAPABILITIES: Mapping[int, GpuMachine] = {
    75: TURING,  # T4
    80: AMPERE,  # A100
    86: replace(SMALL, processors=72),  # A10
    87: replace(AMPERE, processors=16, resident=1536),  # Orin
    89: replace(SMALL, processors=58),  # L4
    90: HOPPER,  # H100, H200
    100: BLACKWELL,  # B200
    103: BLACKWELL,  # B300
    110: replace(HOPPER, processors=20, resident=1536),  # Thor
    120: replace(SMALL, processors=188),  # RTX PRO 6000
    121: replace(SMALL, processors=48),  # GB10
}
"""CUDA devices by ten times their compute capability; the multiprocessors are those of the device behind it."""

DEVICES: Mapping[str, GpuMachine] = {
    "gpu": HOPPER,
    "gpu:hip": GpuMachine(matrices=NO_MATRICES, async_copies=False, shared_bytes=64 * KILOBYTE),
    "gpu:opencl": GpuMachine(
        lanes=1, matrices=NO_MATRICES, async_copies=False, divided_meetings=False, shared_bytes=32 * KILOBYTE
    ),
}
"""Kinds of devices, by the name of their machine, which is the target's name too.

OpenCL C is that of 1.2: sub-groups are an extension of later versions, and 32 KB of local memory are what it promises. PoCL
3.0 makes wrong code of barriers in a condition on the block's number, although all threads of a block agree on it.
"""


def capability(number: int) -> GpuMachine:
    """The CUDA devices of a compute capability (times ten), or of the next lower one that is known."""
    return CAPABILITIES[max((known for known in CAPABILITIES if known <= number), default=min(CAPABILITIES))]
