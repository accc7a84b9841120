"""The passes written_rms_norm and written_layer_norm: norms that exporters write out become the operators that they mean.

Before and after::

    c = Cast(x, "float32")                                y, _ = RmsNorm(x, gamma, epsilon=1e-06)
    m = ReduceMean(Pow(c, 2.0), axis=-1, keep_dims)  ==>
    n = Mul(c, Reciprocal(Sqrt(Add(m, 1e-06))))
    y = Mul(gamma, Cast(n, "float16"))

Squares may be Pow, Square or Mul; the root Rsqrt, Reciprocal, a division or a Pow; operands in either order; casts to a wider
float and back may stand around the norm, which computes in float32 in any case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from graphkernel import ops
from graphkernel.expanders.base import Declined
from graphkernel.ops import Tensor
from graphkernel.ops.composite.activation import SQUARE
from graphkernel.ops.composite.normalize import REDUCE_MEAN
from graphkernel.ops.fused.fused_norm import as_dtype
from graphkernel.passes.named_fusion.apply_fusion import Fusion, Product, Site, named_fusion
from graphkernel.passes.named_fusion.queries import both_orders, made_by, scalar, unwidened
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.elemwise import ADD, MUL, POW, REAL_DIV, RECIPROCAL, RSQRT, SQRT, SUB
from kernelgen.tensor.types import DType


@dataclass(frozen=True)
class _Scaled:
    """``x / sqrt(mean(x * x) + epsilon)``, over which axes, and the nodes that say it."""

    x: Value
    axes: tuple[int, ...]
    epsilon: float
    nodes: tuple[Node, ...]


@named_fusion("written_rms_norm")
def written_rms_norm(site: Site) -> Fusion | Declined | None:
    """x * rsqrt(mean(x^2) + epsilon) * gamma as RmsNorm."""
    for normed, gamma, around in _products(site.root):
        found = _scaled(normed)
        if found is None:
            continue
        declined = _over_gamma(found, gamma)
        operands = (unwidened(found.x), gamma)
        nodes = (*found.nodes, *around, site.root)
        build = _rms_norm(found.epsilon, site.root.out.type.dtype)
        return declined or Fusion(nodes, operands, site.root.outs, build)
    return None


@named_fusion("written_layer_norm")
def written_layer_norm(site: Site) -> Fusion | Declined | None:
    """(x - mean(x)) * rsqrt(mean((x - mean(x))^2) + epsilon) * gamma + beta as LayerNorm."""
    if site.root.op is not ADD:
        return None
    for scaled, beta in both_orders(site.root):
        for normed, gamma, around in _products(scaled.node):
            found = _scaled(normed)
            centred = _centred(found) if found is not None else None
            if found is None or centred is None:
                continue
            x, more = centred
            declined = _over_gamma(found, gamma)
            if declined is None and beta.type.shape != gamma.type.shape:
                declined = Declined(f"beta is {beta.type}, gamma {gamma.type}")
            nodes = (*more, *found.nodes, *around, scaled.node, site.root)
            build = _layer_norm(x.type.rank - gamma.type.rank, found.epsilon)
            return declined or Fusion(nodes, (unwidened(x), gamma, beta), site.root.outs, build)
    return None


def _products(node: Node) -> Iterator[tuple[Value, Value, tuple[Node, ...]]]:
    """The two readings of a product as something normed times gamma; what is normed may be cast on its way."""
    for normed, gamma in both_orders(node) if node.op is MUL else ():
        cast = made_by(normed, CAST)
        if cast is not None and normed.type == node.out.type and cast.args[0].type.dtype.is_float:
            yield cast.args[0], gamma, (cast,)
        yield normed, gamma, ()


def _scaled(value: Value) -> _Scaled | None:
    """Reads a value as a tensor over the root of the mean of its squares."""
    node = value.node
    if node.op is MUL:
        readings = ((x, root, _inverse_root(root)) for x, root in both_orders(node))
    elif node.op is REAL_DIV:
        readings = ((node.args[0], node.args[1], _root(node.args[1])),)
    else:
        return None
    for x, _, root in readings:
        found = _mean_square(x, root[0]) if root is not None else None
        if root is not None and found is not None:
            return _Scaled(x, found.axes, found.epsilon, (*found.nodes, *root[1], node))
    return None


def _inverse_root(value: Value) -> tuple[Value, tuple[Node, ...]] | None:
    """What stands under the root of ``1 / sqrt(v)``, and the nodes that say it."""
    node = value.node
    if node.op is RSQRT:
        return node.args[0], (node,)
    if node.op is POW and scalar(node.args[1]) == -0.5:
        return node.args[0], (node,)
    if node.op is RECIPROCAL:
        found = _root(node.args[0])
    elif node.op is REAL_DIV and scalar(node.args[0]) == 1:
        found = _root(node.args[1])
    else:
        return None
    return (found[0], (*found[1], node)) if found is not None else None


def _root(value: Value) -> tuple[Value, tuple[Node, ...]] | None:
    """What stands under the root of ``sqrt(v)``."""
    node = value.node
    is_root = node.op is SQRT or (node.op is POW and scalar(node.args[1]) == 0.5)
    return (node.args[0], (node,)) if is_root else None


def _mean_square(x: Value, under: Value) -> _Scaled | None:
    """``mean(x * x) + epsilon`` over axes that stay as extents of 1."""
    add = made_by(under, ADD)
    for mean, epsilon in both_orders(add) if add is not None else ():
        node, number = made_by(mean, REDUCE_MEAN), scalar(epsilon)
        if add is None or node is None or number is None or not node.attrs.bool("keep_dims", False):
            continue
        square = node.args[0].node
        if _is_square_of(square, x):
            rank = x.type.rank
            axes = tuple(sorted(axis % rank for axis in node.attrs.ints("axis", ())))
            return _Scaled(x, axes, number, (square, node, add))
    return None


def _is_square_of(node: Node, x: Value) -> bool:
    squares = (
        node.op is SQUARE
        or (node.op is POW and scalar(node.args[1]) == 2)
        or (node.op is MUL and unwidened(node.args[1]) == unwidened(x))
    )
    return squares and unwidened(node.args[0]) == unwidened(x)


def _centred(found: _Scaled) -> tuple[Value, tuple[Node, ...]] | None:
    """The tensor whose own mean was subtracted, over the axes of the norm."""
    subtract = made_by(found.x, SUB)
    mean = made_by(subtract.args[1], REDUCE_MEAN) if subtract is not None else None
    if subtract is None or mean is None or mean.args[0] != subtract.args[0] or not mean.attrs.bool("keep_dims", False):
        return None
    x = subtract.args[0]
    axes = tuple(sorted(axis % x.type.rank for axis in mean.attrs.ints("axis", ())))
    return (x, (mean, subtract)) if axes == found.axes else None


def _over_gamma(found: _Scaled, gamma: Value) -> Declined | None:
    """Why gamma does not span the axes of the norm, which are the last ones."""
    rank = found.x.type.rank
    if (
        found.axes != tuple(range(rank - gamma.type.rank, rank))
        or gamma.type.shape != found.x.type.shape[found.axes[0] :]
    ):
        return Declined(f"gamma is {gamma.type}, the norm of {found.x.type} is over {found.axes}")
    return None


def _rms_norm(epsilon: float, result: DType) -> Product:
    """The norm in the type of x; where the written one rounds before it is scaled, it rounds behind."""

    def build(x: Tensor, gamma: Tensor) -> tuple[Tensor, ...]:
        y, _ = ops.rms_norm(x, as_dtype(gamma, x.dtype), epsilon=epsilon)
        return (as_dtype(y, result),)

    return build


def _layer_norm(axis: int, epsilon: float) -> Product:
    def build(x: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Tensor, ...]:
        return ops.layer_norm(x, gamma, beta, begin_norm_axis=axis, begin_params_axis=axis, epsilon=epsilon)[:1]

    return build
