"""Which gathers are kernels of a CPU: those whose indices were looked at before.

A library gathers rows of 384 numbers as fast, shorter ones two or three times slower, and gives them to memory.
"""

from __future__ import annotations

from graphkernel.ops.library.places import PLACES
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operators.indexing import GATHER


def is_own_gather(node: Node) -> bool:
    """Whether it is a gather whose indices are known to be places of its axis."""
    if node.op is not GATHER or len(node.args) != 2:
        return False
    data, indices = node.args
    extent = data.type.shape[node.attrs.int("axis", 0)]
    if indices.op is PLACES:
        return indices.node.attrs["extent"] == extent
    known = indices.constant
    return known is not None and isinstance(extent, int) and bool(((known >= 0) & (known < extent)).all())
