"""What kernels cost side by side: how many blocks each fills and how heavy a block is, in bytes written.

Blocks of one launch run at the same time, so a merged kernel takes as long as its heaviest block; alone, the kernels take
the sum. The figures are those of MindSpore's ``graph_parallel`` model (a GPU with 80 multiprocessors), with its two
mistakes corrected: its branch for reductions was never taken, and several reductions in one kernel are allowed, the one
with most points deciding the grid and each adding the cost of combining its partial sums.

On a CPU kernels use all cores one after the other, so that only the calls are saved: 7 kernels over 4096 elements took half
the time as one, over 65536 elements no less. There, small kernels join and others do not.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from graphkernel.cluster.iteration_space import reduction_space
from kernelgen.tensor.dims import static_extents
from kernelgen.tensor.graph import Graph, Node
from kernelgen.tensor.operator import Kind

MULTIPROCESSORS = 80
WARP = 32
THREADS = 1024  # of a block, at most
BLOCKS = 256  # of one member, at most
OPAQUE_POINTS = 128  # of a block of a kernel that is neither element-wise nor a reduction
PARTIAL_SUM = 10  # what combining partial sums costs, in elements a thread
PARAMETERS = 512  # a launch has 4 KiB for its parameters
ASCEND_GAIN = 1000
CALL_BYTES = 16 * 1024  # of a CPU: what could be written while a kernel is called
SMALL_BYTES = 64 * 1024  # of a CPU: what a kernel that is worth joining writes at most


@dataclass(frozen=True)
class Load:
    """A kernel's blocks and the weight of one of them, in bytes."""

    blocks: int
    block_weight: float


def load_of(body: Graph, target: str = "gpu") -> Load | None:
    """The load of a kernel; None when its extents are not known. On ascend and on a CPU it is one block."""
    weight = _weight(body)
    if weight is None:
        return None
    if target != "gpu":
        return Load(1, float(weight))
    reductions = [node for node in body.operators if node.op.kind is Kind.REDUCE]
    if reductions:
        return _reduce(weight, reductions)
    points = max(node_points(node) for node in body.operators)
    if any(node.op.kind is Kind.OPAQUE for node in body.operators):
        blocks = min(_ceil(points, OPAQUE_POINTS), BLOCKS)
        return Load(blocks, weight / blocks)
    return _injective(weight, points)


def gain(loads: Collection[Load], target: str = "gpu") -> float:
    """Bytes that the kernels need not wait for one another; 0 when they fill more than the device, or a CPU."""
    if target == "ascend":
        return float(ASCEND_GAIN)
    if target == "cpu":
        small = all(load.block_weight <= SMALL_BYTES for load in loads)
        return float(CALL_BYTES * (len(loads) - 1)) if small else 0.0
    if sum(load.blocks for load in loads) > MULTIPROCESSORS * WARP:
        return 0.0
    weights = [load.block_weight for load in loads]
    return sum(weights) - max(weights)


def node_points(node: Node) -> int:
    """The elements that a node makes; its extents are known."""
    return max(_size(shape) for value in node.outs if (shape := static_extents(value.type.shape)) is not None)


def _weight(body: Graph) -> int | None:
    """The bytes that the operators make, one by one; None when an extent is not known."""
    if any(static_extents(value.type.shape) is None for value in body.inputs):
        return None
    total = 0
    for value in (value for node in body.operators for value in node.outs):
        shape = static_extents(value.type.shape)
        if shape is None:
            return None
        total += _size(shape) * value.type.dtype.itemsize
    return total or None


def _injective(weight: int, points: int) -> Load:
    blocks = _ceil(points, THREADS)
    waves = _ceil(blocks, BLOCKS)
    return Load(min(blocks, BLOCKS), weight / blocks * waves)


def _reduce(weight: int, reductions: Collection[Node]) -> Load:
    """A grid of 32 x 32 threads: blocks share the kept points, threads of a block the reduced ones."""
    widest = max(reductions, key=lambda node: int(str(reduction_space(node).total)))
    kept = int(str(reduction_space(widest).kept))
    blocks = _ceil(kept, WARP)
    waves = _ceil(blocks, BLOCKS)
    combining = sum(PARTIAL_SUM * node.types[0].dtype.itemsize * THREADS for node in reductions)
    return Load(min(blocks, BLOCKS), (_ceil(weight, blocks) + combining) * waves)


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size


def _ceil(number: int, divisor: int) -> int:
    return -(-number // divisor)
