"""Bytes between the products of a quantized network are what kernels hand on, on a CPU.

    p = Cast(..MatMulInteger(x, v)..)     bytes     a kernel: from its sums to its bytes
    q = Cast(..Conv2D(p, w)..)            bytes     a kernel
    r = Cast(q) * s + Cast(p) * t         floats    a kernel with what follows: it makes the numbers of p again

The numbers that bytes stand for take four times their room. Patterns that join what is pointwise would take the steps from
sums to bytes away from their product, or make the numbers of ``p`` where ``p`` is made, so these come before them.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphkernel.cluster.area import Area, Direction, fusion
from graphkernel.cluster.own_products import is_own
from graphkernel.cluster.split_models import Limits
from graphkernel.patterns.fusion_elemwise import POINTWISE
from graphkernel.patterns.fusion_matmul import is_epilogue, product_of
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.matmul import MATMUL_INTEGER
from kernelgen.tensor.operators.nn import BYTE_SUMS, CONV2D

BYTE_PRODUCTS = (MATMUL_INTEGER, CONV2D)


@fusion(Direction.BACKWARD, kinds=(Kind.OPAQUE,), ops=BYTE_PRODUCTS)
def quantized_result(area: Area, limits: Limits) -> Iterable[Area]:
    """What makes bytes of a product's sums, one step after the other."""
    product = _product(area)
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
    is_stored = any((product := _product(reader)) is not None and read[0] in product.args for reader in readers)
    return [link.area for link in area.users if link.area.kind in POINTWISE] if is_stored else ()


def _product(area: Area) -> Node | None:
    """The product of bytes that a kernel of ours computes in an ``area``."""
    found = product_of(area)
    return found if found is not None and is_own(found) and found.out.type.dtype == BYTE_SUMS else None
