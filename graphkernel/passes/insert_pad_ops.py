"""The pass insert_pad_ops: which float16 products in kernels of the GPU the kernel generator computes itself.

Before and after, inside kernels::

    y = MatMul(a, b)    ==>    y = MatMul(a, b, Akg=True)          a: f16[100, 40], b: f16[40, 65]

MindSpore pads here what tensor cores cannot take: M and N to multiples of 32, K to multiples of 16, by PadAkg before and
UnPadAkg behind the product. Each is a copy through the device's memory and, where it has a kernel of its own, a launch.
Our kernels fill the tile that they stage in shared memory with zeros instead, and store what is no padding
(:mod:`kernelgen.transforms.gpu.shared_tiles`): the same padding, without a copy. What is left to decide is the attribute
Akg: False where the product is so large that a library does better.
"""

from __future__ import annotations

from dataclasses import replace

from graphkernel.passes.base import Context, graph_pass, map_bodies
from kernelgen.tensor.graph import Graph, Node, Value, keep
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL
from kernelgen.tensor.types import dtype

PRODUCTS = frozenset({MATMUL, BATCH_MATMUL})
OUTER_MULTIPLE, INNER_MULTIPLE = 32, 16
LONGEST_INNER = 4096
MOST_WORK = 3e10  # M * N * K
PADDED = dtype("float16")


@graph_pass
def insert_pad_ops(graph: Graph, context: Context) -> Graph:
    """Marks float16 products in kernels, and tells which extents are padded where the operands are staged."""
    return map_bodies(graph, lambda body: marked(body, context))


def marked(graph: Graph, context: Context) -> Graph:
    """One graph without its bodies. A product that has the attribute Akg was dealt with before."""

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        kept = keep(node, args)
        if node.op not in PRODUCTS or node.out.type.dtype != PADDED or "Akg" in node.attrs:
            return kept.outs
        refusal = _refusal(kept)
        code, message = ("not-padded", refusal) if refusal else ("padded", _padding(kept))
        context.log.add(insert_pad_ops.name, code, node.name, message=message)
        return replace(kept, attrs=node.attrs.with_(Akg=not refusal)).outs

    return graph.rebuild(rewrite)


def _extents(node: Node) -> tuple[object, object, object]:
    """M, N and K; some may be symbols."""
    a, b = (arg.type.shape for arg in node.args[:2])
    inner, rows = (a[-2], a[-1]) if node.attrs.bool("transpose_a", False) else (a[-1], a[-2])
    return rows, b[-2] if node.attrs.bool("transpose_b", False) else b[-1], inner


def _refusal(node: Node) -> str:
    """Why the kernel generator should leave the product to a library; empty when it should not."""
    rows, columns, inner = _extents(node)
    if not (isinstance(rows, int) and isinstance(columns, int) and isinstance(inner, int)):
        return f"M, N, K = {rows}, {columns}, {inner} are not all static"
    if inner > LONGEST_INNER:
        return f"K = {inner} is above {LONGEST_INNER}"
    work = rows * columns * inner
    return f"M * N * K = {work} is not below {MOST_WORK:g}" if work >= MOST_WORK else ""


def _padding(node: Node) -> str:
    """The extents that whole tiles have; empty where the product has them."""
    multiples = (OUTER_MULTIPLE, OUTER_MULTIPLE, INNER_MULTIPLE)
    whole = [int(str(extent)) for extent in _extents(node)]
    filled = [extent + -extent % multiple for extent, multiple in zip(whole, multiples, strict=True)]
    if filled == whole:
        return ""
    return f"M, N, K = {_listed(whole)} are filled up to {_listed(filled)} in shared memory, without a copy"


def _listed(extents: list[int]) -> str:
    return ", ".join(map(str, extents))
