"""An attention in one kernel on a CPU: two products of ours, and the functions of whole rows between them.

The patterns grow from the products, which :mod:`graphkernel.passes.own_products` has found: what only moves or scales the
operands is read where it lies, the rows join the first product, the second one joins the rows, and the result is stored where
heads meet again.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphkernel.cluster.area import Area, Direction, fusion
from graphkernel.cluster.attention import is_of_inputs
from graphkernel.cluster.cost import is_cheap
from graphkernel.cluster.own_products import PRODUCTS, is_own
from graphkernel.cluster.split_models import Limits
from graphkernel.patterns.fusion_matmul import reduces_rows
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.shape import TRANSPOSE


@fusion(Direction.FORWARD, kinds=(Kind.OPAQUE,), ops=PRODUCTS)
def attention_operands(area: Area, limits: Limits) -> Iterable[Area]:
    """What moves, repeats or scales operands of an attention's products, and is needed there alone."""
    if not _products(area):
        return ()
    found = [link.area for link in area.inputs if link.area.has_one_user and _moves(link.area)]
    return [other for other in found if other.size <= limits.transpose_fuse_depth]


@fusion(Direction.BACKWARD, kinds=(Kind.OPAQUE,), ops=PRODUCTS)
def attention_rows(area: Area, limits: Limits) -> Iterable[Area]:
    """What reduces whole rows of an attention's scores and works on them."""
    products = _products(area)
    if len(products) != 1:
        return ()
    return [link.area for link in area.users if reduces_rows(products[0], link.area)]


@fusion(Direction.FORWARD, kinds=(Kind.OPAQUE,), ops=PRODUCTS)
def attention_values(area: Area, limits: Limits) -> Iterable[Area]:
    """The rows that the second product of an attention multiplies, with their product."""
    products = _products(area)
    if len(products) != 1 or area.spaces:
        return ()
    home = area.home(products[0].args[0].node)
    return [link.area for link in area.inputs if link.area.number == home and link.area.spaces and _products(link.area)]


@fusion(Direction.BACKWARD, kinds=(Kind.OPAQUE,), ops=PRODUCTS)
def attention_result(area: Area, limits: Limits) -> Iterable[Area]:
    """What puts the heads of an attention side by side."""
    if len(_products(area)) != 2:
        return ()
    return [link.area for link in area.users if _moves(link.area)]


def _products(area: Area) -> tuple[Node, ...]:
    """The products of attentions in an area."""
    return tuple([node for node in area.opaque if is_own(node) and is_of_inputs(node)])


def _moves(area: Area) -> bool:
    """Whether each of its values is one that it reads, or a cheap function of it."""
    return all(node.op is TRANSPOSE or node.op.kind is Kind.RESHAPE or is_cheap(node) for node in area.nodes)
