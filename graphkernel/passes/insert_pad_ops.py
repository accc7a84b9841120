"""The pass insert_pad_ops: products in kernels of the GPU get extents that tensor cores can take.

Before and after, inside kernels::

    y = MatMul(a, b)                                     a: f16[100, 40], b: f16[40, 64]
        ==>
    p = PadAkg(a, tail=(28, 8)); q = PadAkg(b, tail=(8, 0))
    m = MatMul(p, q, Akg=True); y = UnPadAkg(m, tail=(28, 0))

Zeros behind the inner extent add nothing; the rows and columns behind the others are dropped again. The attribute Akg
says whether the kernel generator computes the product itself: not when it is so large that a library does better.
"""

from __future__ import annotations

from dataclasses import replace

from graphkernel.cluster.extract import with_unique_labels
from graphkernel.ir.graph import Builder, Graph, Node, Value, keep
from graphkernel.ir.types import Attrs, Sym, TensorType, dtype
from graphkernel.ops.padding import PAD_AKG, UNPAD_AKG
from graphkernel.passes.base import Context, graph_pass, map_bodies

PRODUCTS = frozenset({"MatMul", "BatchMatMul"})
OUTER_MULTIPLE, INNER_MULTIPLE = 32, 16
LONGEST_INNER = 4096
MOST_WORK = 3e10  # M * N * K
PADDED = dtype("float16")


@graph_pass
def insert_pad_ops(graph: Graph, context: Context) -> Graph:
    """Pads float16 products in kernels: M and N to multiples of 32, K to multiples of 16, at the end and with zeros."""
    return map_bodies(graph, lambda body: padded(body, context))


def padded(graph: Graph, context: Context) -> Graph:
    """One graph without its bodies. A product that has the attribute Akg was dealt with before."""

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        kept = keep(node, args)
        if node.op.name not in PRODUCTS or node.out.type.dtype != PADDED or "Akg" in node.attrs:
            return kept.outs
        refusal = _refusal(kept)
        if refusal:
            context.log.add(insert_pad_ops.name, "not-padded", node.name, message=refusal)
            return replace(kept, attrs=node.attrs.with_(Akg=False)).outs
        context.log.add(insert_pad_ops.name, "padded", node.name)
        return (_padded_product(kept, Builder(origin=node.name)),)

    result = graph.rebuild(rewrite)
    return result if result is graph else with_unique_labels(result)


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


def _padded_product(node: Node, builder: Builder) -> Value:
    inner_first = (node.attrs.bool("transpose_a", False), not node.attrs.bool("transpose_b", False))
    operands = [
        _with_tail(arg, _tail(arg.type, inner_axis=-2 if first else -1), builder)
        for arg, first in zip(node.args[:2], inner_first, strict=True)
    ]
    operands += [_with_tail(bias, (_missing(bias.type.shape[0], OUTER_MULTIPLE),), builder) for bias in node.args[2:]]
    product = builder.node(node.op, operands, node.attrs.with_(Akg=True), node.name).out
    extra = tuple(_missing(dim, OUTER_MULTIPLE) for dim in node.out.type.shape[-2:])
    if not any(extra):
        return product
    tail = (*(0 for _ in node.out.type.shape[:-2]), *extra)
    return builder.node(UNPAD_AKG, (product,), Attrs.of(tail=tail)).out


def _tail(type_: TensorType, inner_axis: int) -> tuple[int, ...]:
    multiples = {inner_axis: INNER_MULTIPLE, -3 - inner_axis: OUTER_MULTIPLE}
    extra = (_missing(type_.shape[axis], multiples[axis]) for axis in (-2, -1))
    return (*(0 for _ in type_.shape[:-2]), *extra)


def _with_tail(value: Value, tail: tuple[int, ...], builder: Builder) -> Value:
    if not any(tail):
        return value
    attrs = Attrs.of(head=(0,) * len(tail), tail=tail, pad_val=0.0)
    return builder.node(PAD_AKG, (value,), attrs).out


def _missing(dim: int | Sym, multiple: int) -> int:
    assert isinstance(dim, int), "only products of static extents are padded"
    return -dim % multiple
