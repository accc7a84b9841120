"""Matrix products and what stands before and behind them in one kernel.

An epilogue works on the product while it is in registers, a prologue on an operand while it is loaded. A product alone
is better off in the library (:data:`graphkernel.cluster.partition.BASIC_OPERATORS`). Source: ``matmul_depth``,
``transdata``, ``allreduce_fwd`` and ``allreduce_bwd`` of MindSpore's Ascend models; the prologue and rows are ours, and what
keeps bytes between the products of a quantized network on a CPU::

    p = Cast(..MatMulInteger(x, v)..)     bytes     a kernel: from its sums to its bytes
    q = Cast(..Conv2D(p, w)..)            bytes     a kernel
    r = Cast(q) * s + Cast(p) * t         floats    a kernel with what follows: it makes the numbers of p again

The numbers that bytes stand for take four times their room. Patterns that join what is pointwise would take the steps from
sums to bytes away from their product, or make the numbers of ``p`` where ``p`` is made, so these two come before them.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphkernel.cluster.area import Area, Direction, Link, fusion
from graphkernel.cluster.cost import is_cheap
from graphkernel.cluster.own_products import is_own
from graphkernel.cluster.split_models import Limits
from graphkernel.ops.library.communication import ALL_REDUCE
from graphkernel.ops.library.grouped_products import GROUPED_MATMUL
from graphkernel.patterns.fusion_elemwise import POINTWISE
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.layout import TRANS_DATA
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL, MATMUL_INTEGER, STORED_MATMUL
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.operators.shape import RESHAPE
from kernelgen.tensor.operators.type_rules import axes_of
from kernelgen.tensor.types import TensorType

PRODUCTS = (MATMUL, BATCH_MATMUL, GROUPED_MATMUL, STORED_MATMUL, MATMUL_INTEGER, CONV2D)
BYTE_PRODUCTS = (MATMUL_INTEGER, CONV2D)


@fusion(Direction.BACKWARD, kinds=(Kind.OPAQUE,), ops=PRODUCTS)
def matmul_depth(area: Area, limits: Limits) -> Iterable[Area]:
    """Pointwise users of a product, those with fewest results first, as long as the kernel has few enough."""
    product = product_of(area)
    return () if product is None else epilogues_of(product, area, limits)


def epilogues_of(product: Node, area: Area, limits: Limits) -> list[Area]:
    """The users of the ``area`` of a ``product`` that work on its elements, within the ``limits``; none of a single column."""
    results = sum(value.node is not product for value in area.outputs)
    chosen: list[Area] = []
    users = area.users if product.types[0].shape[-1:] != (1,) else ()
    for user in sorted((link.area for link in users), key=lambda user: len(user.outputs)):
        results += len(user.outputs)
        if results > limits.product_outputs:
            break
        if is_epilogue(product, area, user):
            chosen.append(user)
    return chosen


def is_epilogue(product: Node, area: Area, user: Area) -> bool:
    """Whether a ``user`` of the ``area`` of a ``product`` is pointwise over its elements; a broadcast cannot follow a reshape,
    and a reshape alone is a view."""
    greatest = Kind.ELEMWISE if any(node.op.kind is Kind.RESHAPE for node in area.nodes) else Kind.BROADCAST
    same = all(value.type.size == product.types[0].size for value in user.outputs)
    return user.lone(RESHAPE) is None and user.kind <= greatest and same


@fusion(Direction.BACKWARD, kinds=(Kind.OPAQUE,), ops=BYTE_PRODUCTS)
def quantized_result(area: Area, limits: Limits) -> Iterable[Area]:
    """What makes bytes of a product's sums, one step after the other."""
    product = _byte_product(area)
    return () if product is None or _is_of_bytes(area) or not _leads_to_bytes(product, area) else (area.users[0].area,)


def _leads_to_bytes(product: Node, area: Area) -> bool:
    """Whether one user after the other, each the only one, works on a product's elements, and one of them makes bytes."""
    while area.has_one_user:
        user = area.users[0].area
        if not is_epilogue(product, area, user):
            return False
        if _is_of_bytes(user):
            return True
        area = user
    return False


def _is_of_bytes(area: Area) -> bool:
    return all(map(_is_byte, area.outputs))


def _is_byte(value: Value) -> bool:
    return value.type.dtype.itemsize == 1


@fusion(Direction.BACKWARD, kinds=POINTWISE, ops=(CAST,))
def quantized_operand(area: Area, limits: Limits) -> Iterable[Area]:
    """The only reader of the numbers that bytes stand for, where a product reads these bytes too."""
    read = [value for value in area.operands if not value.is_known]
    if len(read) != 1 or not _is_byte(read[0]) or not area.has_one_user:
        return ()
    readers = (user.area for link in area.inputs for user in link.area.users)
    is_stored = any((product := _byte_product(reader)) is not None and read[0] in product.args for reader in readers)
    return [link.area for link in area.users if link.area.kind in POINTWISE] if is_stored else ()


def _byte_product(area: Area) -> Node | None:
    """The product of bytes that a kernel of ours computes in an ``area``."""
    found = product_of(area)
    return found if found is not None and is_own(found) and _is_byte(found.args[0]) else None


@fusion(Direction.BACKWARD, kinds=(Kind.OPAQUE,), ops=PRODUCTS)
def matmul_rows(area: Area, limits: Limits) -> Iterable[Area]:
    """What reduces whole rows of a product and works on them: the softmax of attention's scores."""
    product = product_of(area)
    if product is None:
        return ()
    results = [value for value in area.outputs if value.node is not product]
    users = [link.area for link in area.users if reduces_rows(product, link.area)]
    return [user for user in users if len(results) + len(user.outputs) <= limits.product_outputs]


def reduces_rows(product: Node, user: Area) -> bool:
    """Whether all that an area reduces are rows of the product's shape."""
    shape = product.types[0].shape
    reductions = [node for node in user.nodes if node.op.kind is Kind.REDUCE]
    if user.kind is not Kind.REDUCE or any(node.args[0].type.shape != shape for node in reductions):
        return False
    return all(axes_of(node.attrs.ints("axis", ()), len(shape)) == (len(shape) - 1,) for node in reductions)


@fusion(Direction.FORWARD, kinds=(Kind.OPAQUE,), ops=PRODUCTS)
def matmul_prologue(area: Area, limits: Limits) -> Iterable[Area]:
    """Cheap pointwise producers of a product's operands, or of what its epilogue reads, that nobody else needs.

    A product whose weights are packed reads its rows once for each panel: they are computed before.
    """
    product = product_of(area)
    if product is None or is_own(product):
        return ()
    points = {arg.type.size for arg in product.args} | {product.types[0].size}
    return [link.area for link in area.inputs if link.area.elements in points and is_prologue(link, limits)]


def is_prologue(link: Link, limits: Limits) -> bool:
    """Whether a linked area is pointwise, short and cheap, and only its user needs it, each element as it is."""
    maker = link.area
    short = maker.kind <= Kind.BROADCAST and maker.size <= limits.transpose_fuse_depth
    return short and maker.has_one_user and link.is_injective and all(map(is_cheap, maker.nodes))


def product_of(area: Area) -> Node | None:
    """The product of an area whose other operators are pointwise; None when it has none, or another opaque operator."""
    found = area.opaque if area.kind is Kind.OPAQUE else ()
    return found[0] if len(found) == 1 and found[0].op in PRODUCTS else None


@fusion(Direction.FORWARD, ops=(TRANS_DATA,))
def transdata(area: Area, limits: Limits) -> Iterable[Area]:
    """What makes the operand of a layout change that pads nothing: a product, pointwise areas, or a lone Cast."""
    node = area.lone(TRANS_DATA)
    if node is None or not _is_whole(node):
        return ()
    to_fractal = node.attrs.str("dst_format", "") == "FRACTAL_NZ"
    return [link.area for link in area.inputs if _suits_layout(link.area, to_fractal)]


def _suits_layout(maker: Area, to_fractal: bool) -> bool:
    if product_of(maker) is not None:
        return True
    if to_fractal:
        return maker.lone(CAST) is not None and maker.has_one_user
    return maker.kind <= Kind.BROADCAST


def _is_whole(node: Node) -> bool:
    """True when both sides are whole blocks of 16 x 16, so that no element is padding."""

    def blocks(type_: TensorType) -> bool:
        return type_.rank >= 2 and all(isinstance(dim, int) and dim % 16 == 0 for dim in type_.shape[-2:])

    return blocks(node.args[0].type) and blocks(node.types[0])


@fusion(Direction.FORWARD, ops=(ALL_REDUCE,))
def allreduce_fwd(area: Area, limits: Limits) -> Iterable[Area]:
    """The product whose parts a lone AllReduce adds up, when nobody else needs them."""
    if area.lone(ALL_REDUCE) is None:
        return ()
    return [link.area for link in area.inputs if link.area.lone(MATMUL) is not None and link.area.has_one_user]


@fusion(Direction.BACKWARD, kinds=(Kind.OPAQUE,), ops=(ALL_REDUCE,))
def allreduce_bwd(area: Area, limits: Limits) -> Iterable[Area]:
    """Element-wise users of what was added up over devices."""
    if all(node.op is not ALL_REDUCE for node in area.opaque):
        return ()
    return [link.area for link in area.users if link.area.kind < Kind.BROADCAST]
