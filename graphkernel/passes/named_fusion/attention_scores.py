"""Attention scores as exporters write them: which query and key a softmax weighs, by which factor, under which mask.

The factor may stand on query, key or product, in one place or several; the key may be transposed by the product, by a
Transpose that another one was folded into, or through matrices with merged batches; heads of the key may be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from graphkernel import ops
from graphkernel.ops import Tensor
from graphkernel.passes.named_fusion.queries import both_orders, made_by, scalar, unwidened
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.elemwise import ADD, MUL, REAL_DIV
from kernelgen.tensor.operators.matmul import BATCH_MATMUL
from kernelgen.tensor.operators.shape import BROADCAST_TO, RESHAPE, TRANSPOSE
from kernelgen.tensor.types import Shape

BNSD = 4  # axes of query, key and value: batch, heads, positions, head size


@dataclass(frozen=True)
class Scores:
    """``query @ key.T * factor + mask``: the nodes from the product on, first things first; ``factor`` None: not constant."""

    product: Node
    nodes: tuple[Node, ...]
    factor: float | None = 1.0
    masks: tuple[Value, ...] = ()

    def times(self, factor: float | None, *nodes: Node) -> Scores:
        """The scores multiplied by a number."""
        both = None if self.factor is None or factor is None else self.factor * factor
        return replace(self, factor=both, nodes=(*self.nodes, *nodes))


@dataclass(frozen=True)
class Rows:
    """Matrices of positions times head size for each batch and head: ``source``, transposed and reshaped; a number apart."""

    source: Value
    shape: Shape
    perm: tuple[int, ...] = ()
    factor: float | None = 1.0

    def of(self, source: Tensor) -> Tensor:
        """The rows, from what stands for the source."""
        moved = ops.transpose(source, self.perm) if self.perm else source
        return moved if moved.shape == self.shape else ops.reshape(moved, self.shape)


def scores_of(value: Value) -> Scores | None:
    """Reads the operand of a softmax: a product of matrices, scaled, then masked, by one term or several."""
    inner = unwidened(value)
    if inner != value:
        found = scores_of(inner)
        return replace(found, nodes=(*found.nodes, *_casts(value, inner))) if found is not None else None
    add = made_by(value, ADD)
    for scores, mask in both_orders(add) if add is not None else ():
        found = scores_of(scores)
        if add is not None and found is not None:
            return replace(found, nodes=(*found.nodes, add), masks=(*found.masks, mask))
    return _scaled_product(value)


def _scaled_product(value: Value) -> Scores | None:
    """A product of matrices times numbers, which may be cast to a wider type on its way."""
    inner, factor, nodes = _factored(value)
    if inner == value:
        before = unwidened(value)
        if before == value:
            return Scores(value.node, (value.node,)) if value.op is BATCH_MATMUL else None
        inner, nodes = before, _casts(value, before)
    found = _scaled_product(inner)
    return found.times(factor, *nodes) if found is not None else None


def _factored(value: Value) -> tuple[Value, float | None, tuple[Node, ...]]:
    """A value without the number that it is multiplied with or divided by; the factor is None where it is not constant."""
    node = value.node
    if node.op is REAL_DIV and node.args[1].type.size == 1:
        divisor = scalar(node.args[1])
        return node.args[0], 1 / divisor if divisor else None, (node,)
    for inner, factor in both_orders(node) if node.op is MUL else ():
        if factor.type.size == 1 and inner.type == value.type:
            return inner, scalar(factor), (node,)
    return value, 1.0, ()


def _casts(value: Value, inner: Value) -> tuple[Node, ...]:
    """The casts between two values, first things first."""
    return () if value == inner else (*_casts(value.node.args[0], inner), value.node)


def query_rows(value: Value) -> Rows:
    """The left factor of the product, its number apart."""
    inner, factor, _ = _factored(value)
    return Rows(inner, inner.type.shape, factor=factor)


def key_rows(value: Value, *, swapped: bool) -> Rows | None:
    """The right factor of the product with its last two axes swapped; None when it is not transposed.

    ``swapped`` says that the product itself transposes it.
    """
    shape = value.type.shape
    found = _untransposed(value, swapped=swapped)
    if found is None:
        return None
    target = shape if swapped else (*shape[:-2], shape[-1], shape[-2])
    return replace(found, shape=target)


def _untransposed(value: Value, *, swapped: bool) -> Rows | None:
    inner, factor, _ = _factored(value)
    if inner != value:
        found = _untransposed(inner, swapped=swapped)
        both = None if found is None or found.factor is None or factor is None else found.factor * factor
        return replace(found, factor=both) if found is not None else None
    node = value.node
    if node.op is RESHAPE and node.args[0].type.shape[-2:] == value.type.shape[-2:]:
        found = _untransposed(node.args[0], swapped=swapped)
        if found is not None:
            return found
    if node.op is TRANSPOSE:
        perm = node.attrs.ints("perm")
        *batch, rows, columns = perm
        swap = (*range(len(perm) - 2), len(perm) - 1, len(perm) - 2)
        if perm == swap:
            return _untransposed(node.args[0], swapped=not swapped)
        if not swapped and perm != tuple(sorted(perm)):
            return _moved(node.args[0], (*batch, columns, rows))
    return Rows(value, ()) if swapped else None


def _moved(source: Value, perm: tuple[int, ...]) -> Rows:
    """A transposed value, by one transposition; by none where two cancel."""
    while (first := made_by(source, TRANSPOSE)) is not None:
        inner = first.attrs.ints("perm")
        source, perm = first.args[0], tuple(inner[axis] for axis in perm)
    return Rows(source, (), () if perm == tuple(sorted(perm)) else perm)


def unrepeated(rows: Rows) -> Rows:
    """Rows with the heads that they had before each was repeated for a group of heads; the same rows where none was."""
    found = _unrepeated(rows.source)
    if rows.perm or found is None or len(rows.shape) != BNSD:
        return rows
    batch, heads, groups = found.type.shape[0], found.type.shape[1], rows.shape[1]
    whole = isinstance(heads, int) and isinstance(groups, int) and groups % heads == 0
    expected = (batch, groups, *found.type.shape[2:])
    return replace(rows, source=found, shape=found.type.shape) if whole and expected == rows.shape else rows


def _unrepeated(value: Value) -> Value | None:
    """``x`` of BroadcastTo(ExpandDims(x, 2)), whatever views merge the two axes of heads behind it."""
    while value.op is RESHAPE and value.node.args[0].type.shape[-2:] == value.type.shape[-2:]:
        value = value.node.args[0]
    spread = made_by(value, BROADCAST_TO)
    apart = spread.args[0].node if spread is not None else None
    if spread is None or apart is None or apart.op.kind is not Kind.RESHAPE or len(apart.args) != 1:
        return None
    x, alone = apart.args[0].type.shape, apart.out.type.shape
    if len(x) != BNSD or alone != (*x[:2], 1, *x[2:]):
        return None
    times = spread.out.type.shape[2]
    return apart.args[0] if spread.out.type.shape == (*x[:2], times, *x[2:]) else None
