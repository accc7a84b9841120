"""Which products become kernels of ours, and which operands of kernels are laid out before all calls.

A product, or a convolution, with constant weights is a kernel with what follows it: its weights are packed once
(:mod:`kernelgen.transforms.cpu.prepare_constants`), while a library packs them at every call, or
keeps results in memory before something else reads them.
"""

from __future__ import annotations

from kernelgen.tensor.graph import Node
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL, MATMUL_INTEGER, STORED_MATMUL
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.operators.padding import PAD_AKG
from kernelgen.tensor.operators.pool import POOL2D
from kernelgen.tensor.operators.type_rules import OWN_KERNEL

PRODUCTS = frozenset({BATCH_MATMUL, MATMUL})
WEIGHTED = PRODUCTS | {STORED_MATMUL, MATMUL_INTEGER, CONV2D}
OWN = WEIGHTED | {POOL2D, PAD_AKG}
IMAGE = 4
"""Dims: images, rows, columns, channels."""


def is_own(node: Node) -> bool:
    """Whether it was decided that a product, a convolution, a pooling or what is around an image is a kernel of ours."""
    return node.op in OWN and node.attrs.bool(OWN_KERNEL, False)


def prepared_operands(kernel: Node) -> tuple[int, ...]:
    """The positions of a fused node's operands that are constants of several elements, where some of them are weights.

    Nothing where the kernel updates operands in place.
    """
    body = kernel.body
    if body is None or body.aliases:
        return ()
    constants = {
        inside: position
        for position, (inside, given) in enumerate(zip(body.inputs, kernel.args, strict=True))
        if given.is_known and given.type.size != 1
    }
    read = {arg for node in body.operators if node.op in WEIGHTED for arg in node.args}
    return tuple(constants.values()) if read & constants.keys() else ()
