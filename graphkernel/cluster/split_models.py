"""The split model of each target as data: the order of the patterns and the limits that they and the costs obey.

Order and figures are MindSpore's: its CPU model, its GPU model for static shapes, and its two Ascend models in one. Ours
are put in: ``reduce_bwd`` and ``reduce_chain`` run before ``reduce_fwd_*``, so that what lies between two reductions over
different spaces stays with the first, whose rows it completes (a layer norm before a pooling); what joins areas side by
side, or reductions that share no loop, runs last. A pattern that is in no table runs last, by name, so that a third
party's needs no entry here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelgen.tensor.types import Dim

HALF = 2  # bytes of an element that tensor cores multiply


@dataclass(frozen=True)
class ProductLimits:
    """Most multiplications of a product that is worth a kernel with its epilogue, beside a library's product and an
    epilogue by itself: of 16-bit floats, of others, and of a single row or column.
    """

    halves: int
    others: int
    vectors: int

    def of(self, itemsize: int, rows: Dim, columns: Dim) -> int:
        """That of a product with so many rows and columns, of elements of ``itemsize`` bytes."""
        if 1 in (rows, columns):
            return self.vectors
        return self.halves if itemsize == HALF else self.others


@dataclass(frozen=True)
class Limits:
    """Bounds on areas, in operators, and on costs.

    ``cached_bytes``: what two phases of a kernel can pass to each other without going to memory.
    ``parallel_rows``: how many independent rows a kernel needs before its phases are worth being one parallel loop. On a
    gpu any number: threads share rows, and where rows are so few and long that blocks must share them, the kernel
    generator makes launches of its own (softmax of 64 x 8192 on an H200: 2.8 us in one kernel, 6.9 in three, estimated).
    ``product_outputs``, ``sibling_outputs``: most results of a matrix product with its epilogue, of areas side by side.
    ``stitch_elements``: what a reduction must read before its results are worth being passed on inside a kernel.
    ``products``: how large a product may be that is a kernel with what stands beside it; None where no library is faster.
    """

    composite_op_limit_size: int = 200
    reduce_fuse_depth: int = 20
    backward_fuse_depth: int = 20
    transpose_fuse_depth: int = 6
    cached_bytes: int = 256 * 1024
    parallel_rows: int = 4
    product_outputs: int = 5
    sibling_outputs: int = 8
    horizontal_size: int = 64
    stitch_elements: int = 12 * 1024
    products: ProductLimits | None = None


@dataclass(frozen=True)
class SplitModel:
    """Patterns by name, in the order in which they run, and the limits."""

    patterns: tuple[str, ...]
    limits: Limits


FIRST = (
    "bind_virtual_node",
    "reshape",
    "elemwise_broadcast_fwd_depth",
    "elemwise_broadcast_fwd_width",
    "reduce_bwd",
    "reduce_chain",
    "reduce_fwd_depth",
    "reduce_fwd_width",
    "elemwise_broadcast_bwd_depth",
    "elemwise_broadcast_bwd_width",
)
PRODUCTS = ("matmul_depth", "matmul_prologue")
QUANTIZED = ("quantized_result", "quantized_operand")
ATTENTION = ("attention_operands", "attention_rows", "attention_values", "attention_result")
INDICES = ("strided_slice", "onehot_fwd", "onehot_bwd", "gather_output")
LAST = ("elemwise_sibling", "reduce_crossed")

CPU = (
    *(
        *FIRST[:2],
        *QUANTIZED,
        *FIRST[2:4],
        "image_depth",
        *FIRST[4:],
        "reduce_sibling",
        *ATTENTION,
        "transpose",
        "image_parts",
        "pieces",
        "image_rows",
    ),
    *(*INDICES, "stencil"),
    *(*PRODUCTS, "isolate_reshape", *LAST),
)
GPU = (
    *(
        *FIRST[:4],
        "broadcast_tot",
        "link_csr",
        *FIRST[4:],
        *INDICES,
        "stencil",
        "reduce_output",
        "reduce_stitch",
        "reduce_sibling",
    ),
    *("transpose", "injective_output", *PRODUCTS, "isolate_reshape", "h_broadcast", "h_reduce", "h_opaque"),
    *("elemwise_elemany", *LAST),
)
ASCEND = (
    *(
        *FIRST,
        "reduce_sibling",
        "elemany_addn",
        "slice",
        "stencil",
        *PRODUCTS,
        "matmul_rows",
        "transdata",
        "allreduce_fwd",
        "allreduce_bwd",
    ),
    *("transpose", "isolate_reshape", *LAST),
)

GPU_PRODUCTS = ProductLimits(halves=1 << 27, others=1 << 24, vectors=1 << 16)
"""Measured on an H100, a gelu behind the product, microseconds in one kernel and in cuBLAS with a kernel:

    float16   128 x  768 x  768    6.3 and 6.9        float32   256 x  256 x  256    9.0 and 10.4
    float16   256 x  768 x  768    8.8 and 7.4        float32  2048 x 2048 x 2048    415 and  347
    float16  8192 x 4096 x 4096    929 and 400        float16     1 x 4096 x 4096    119 and   12

Our tiles reach 0.38 of cuBLAS in the largest: they do without the instructions of warp groups."""

MODELS: Mapping[str, SplitModel] = {
    "cpu": SplitModel(CPU, Limits()),
    "gpu": SplitModel(GPU, Limits(parallel_rows=1, products=GPU_PRODUCTS)),
    "ascend": SplitModel(ASCEND, Limits(reduce_fuse_depth=10, backward_fuse_depth=6, parallel_rows=32)),
}

NEEDS: Mapping[str, str] = {
    "allreduce_fwd": "enable_allreduce_prologue_fusion",
    "allreduce_bwd": "enable_allreduce_epilogue_fusion",
    "h_broadcast": "enable_horizontal_fusion",
    "h_reduce": "enable_horizontal_fusion",
    "h_opaque": "enable_horizontal_fusion",
    "link_csr": "enable_csr_fusion",
    "reduce_stitch": "enable_stitch_fusion",
}
"""The patterns that run only when a flag is on."""

BARRED: Mapping[str, str] = dict.fromkeys(("matmul_depth", "matmul_rows"), "disable_matmul_post_fusion")
"""The patterns that a flag of their own switches off."""
