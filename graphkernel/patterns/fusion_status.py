"""The test whether any element of a tensor is set (``ElemAny``), with what it tests.

Source: ``elemany_addn`` of MindSpore's DVM model and ``elemwise_elemany`` of its GPU model.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphkernel.cluster.area import Area, Direction, fusion
from graphkernel.cluster.split_models import Limits
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.status import ELEM_ANY


@fusion(Direction.FORWARD)
def elemany_addn(area: Area, limits: Limits) -> Iterable[Area]:
    """Pointwise areas, broadcasts among them, that make what is tested."""
    return _makers(area, Kind.BROADCAST)


@fusion(Direction.FORWARD)
def elemwise_elemany(area: Area, limits: Limits) -> Iterable[Area]:
    """Element-wise areas that make what is tested."""
    return _makers(area, Kind.ELEMWISE)


def _makers(area: Area, greatest: Kind) -> list[Area]:
    if all(node.op is not ELEM_ANY for node in area.opaque()):
        return []
    return [link.area for link in area.inputs if link.area.kind <= greatest and link.is_injective]
