"""Reverse-mode differentiation of a traced function, with the gradient operators of the catalogue.

``gradients(loss, weights)`` walks the operators behind the loss from the last to the first. Each rule says what an
operator adds to the gradients of its operands. Source: the vector-Jacobian products of MindSpore's ``bprop`` functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphkernel import ops
from graphkernel.ir.graph import Graph, Value
from graphkernel.ir.types import Attrs, Shape
from graphkernel.ops import Tensor
from graphkernel.ops.nn import CONV_ATTRIBUTES


@dataclass(frozen=True)
class Application:
    """An operator that the loss depends on: its operands, results, attributes, and the gradient of its first result."""

    operands: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    attrs: Attrs
    gradient: Tensor


Gradients = Sequence[Tensor | None]
Rule = Callable[[Application], Gradients]


def gradients(loss: Tensor, wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The gradient of a scalar (or of the sum of a tensor) for each tensor. ``KeyError`` names an operator without rule."""
    builder = loss.builder
    found: dict[Value, list[Tensor]] = {loss.value: [ops.ones_like(loss)]}
    nodes = Graph("forward", (), (loss.value,)).nodes
    reached = _reached(nodes, {tensor.value for tensor in wanted.values()})
    for node in reversed(nodes):
        if node not in reached or node.outs[0] not in found or not node.args:
            continue
        if node.op.name not in RULES:
            raise KeyError(f"there is no gradient rule for {node.op.name}")
        operands, results = (tuple(Tensor(value, builder) for value in values) for values in (node.args, node.outs))
        application = Application(operands, results, node.attrs, _sum(found[node.outs[0]]))
        for value, gradient in zip(node.args, RULES[node.op.name](application), strict=True):
            if gradient is not None and value.node in reached:
                found.setdefault(value, []).append(gradient)
    return {name: _sum(found[tensor.value]) for name, tensor in wanted.items()}


def _reached(nodes: Sequence[Any], wanted: set[Value]) -> set[Any]:
    """The nodes that depend on what is wanted, these included."""
    reached: set[Any] = set()
    for node in nodes:
        if node.outs[0] in wanted or any(value.node in reached for value in node.args):
            reached.add(node)
    return reached


def _sum(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else ops.add_n(*parts) if len(parts) > 2 else parts[0] + parts[1]


def _unbroadcast(dy: Tensor, shape: Shape) -> Tensor:
    """The sum over the axes along which an operand was repeated."""
    if dy.shape == shape:
        return dy
    own = (1,) * (dy.ndim - len(shape)) + tuple(shape)
    axes = [axis for axis, (mine, whole) in enumerate(zip(own, dy.shape, strict=True)) if mine != whole]
    summed = ops.reduce_sum(dy, axis=axes, keep_dims=True) if axes else dy
    return summed if summed.shape == shape else ops.reshape(summed, shape)


def _add(of: Application) -> Gradients:
    return [_unbroadcast(of.gradient, operand.shape) for operand in of.operands]


def _sub(of: Application) -> Gradients:
    x, y = of.operands
    return _unbroadcast(of.gradient, x.shape), _unbroadcast(-of.gradient, y.shape)


def _mul(of: Application) -> Gradients:
    x, y = of.operands
    return _unbroadcast(of.gradient * y, x.shape), _unbroadcast(of.gradient * x, y.shape)


def _bias_add(of: Application) -> Gradients:
    return of.gradient, ops.bias_add_grad(of.gradient)


def _reshape(of: Application) -> Gradients:
    return (ops.reshape(of.gradient, of.operands[0].shape),)


def _transpose(of: Application) -> Gradients:
    inverse = tuple(int(axis) for axis in np.argsort(of.attrs.ints("perm")))
    return (ops.transpose(of.gradient, inverse),)


def _matmul(of: Application) -> Gradients:
    """Batches must not broadcast."""
    (a, b), dy = of.operands, of.gradient
    left, right = of.attrs.bool("transpose_a", False), of.attrs.bool("transpose_b", False)
    da = ops.matmul(b, dy, right, True) if left else ops.matmul(dy, b, False, not right)
    db = ops.matmul(dy, a, True, left) if right else ops.matmul(a, dy, not left, False)
    return da, db


def _gather(of: Application) -> Gradients:
    """The rows of the result, added up where they came from; the axis is 0."""
    table, indices = of.operands
    return ops.unsorted_segment_sum(of.gradient, indices, num_segments=table.shape[0]), None


def _strided_slice(of: Application) -> Gradients:
    """Zeros around what was cut out; strides are 1."""
    (x,) = of.operands
    begins, ends = of.attrs.ints("begin"), of.attrs.ints("end")
    around = [(begin, int(str(extent)) - end) for begin, end, extent in zip(begins, ends, x.shape, strict=True)]
    return (ops.pad(of.gradient, around),)


def _reduce_sum(of: Application) -> Gradients:
    (x,) = of.operands
    return (ops.broadcast_to(ops.reshape(of.gradient, _kept(of)), x.shape),)


def _reduce_mean(of: Application) -> Gradients:
    (x,) = of.operands
    share = int(str(of.results[0].size)) / int(str(x.size))
    return (ops.broadcast_to(ops.reshape(of.gradient * share, _kept(of)), x.shape),)


def _kept(of: Application) -> Shape:
    """The operand's shape with reduced axes of extent 1."""
    (x,) = of.operands
    axes = of.attrs.ints("axis") or tuple(range(x.ndim))
    return tuple(1 if axis in axes else extent for axis, extent in enumerate(x.shape))


def _tanh(of: Application) -> Gradients:
    return (ops.tanh_grad(of.results[0], of.gradient),)


def _relu(of: Application) -> Gradients:
    return (ops.relu_grad(of.gradient, of.results[0]),)


def _gelu(of: Application) -> Gradients:
    return (ops.gelu_grad(of.gradient, of.operands[0], of.results[0]),)


def _softmax(of: Application) -> Gradients:
    return (ops.softmax_grad(of.results[0], of.gradient, axis=of.attrs.ints("axis", (-1,))),)


def _cross_entropy(of: Application) -> Gradients:
    """The operator gives the gradient by the logits along with the loss; labels are not trained."""
    losses, dlogits = of.results
    return dlogits * ops.reshape(of.gradient, (*losses.shape, 1)), None


def _layer_norm(of: Application) -> Gradients:
    (x, gamma, _), (_, mean, variance) = of.operands, of.results
    axes = (of.attrs.int("begin_norm_axis", -1), of.attrs.int("begin_params_axis", -1))
    return ops.layer_norm_grad(x, of.gradient, variance, mean, gamma, *axes, epsilon=of.attrs.float("epsilon", 1e-7))


def _rms_norm(of: Application) -> Gradients:
    (x, gamma), (_, rstd) = of.operands, of.results
    return ops.rms_norm_grad(of.gradient, x, rstd, gamma)


def _batch_norm(of: Application) -> Gradients:
    """Of the form with the batch's statistics; the running ones are not trained."""
    (x, scale, *_), (*_, mean, rstd) = of.operands, of.results
    epsilon = of.attrs.float("epsilon", 1e-5)
    return *ops.batch_norm_grad(of.gradient, x, scale, mean, rstd, epsilon, is_training=True), None, None


def _silu(of: Application) -> Gradients:
    return (ops.silu_grad(of.gradient, of.operands[0]),)


def _conv2d(of: Application) -> Gradients:
    x, weight = of.operands
    window = {name: of.attrs[name] for name in CONV_ATTRIBUTES if name in of.attrs}
    return (
        ops.conv2d_backprop_input(of.gradient, weight, input_size=x.shape, **window),
        ops.conv2d_backprop_filter(of.gradient, x, filter_size=weight.shape, **window),
    )


RULES: Mapping[str, Rule] = {
    "Add": _add, "Sub": _sub, "Mul": _mul, "BiasAdd": _bias_add, "Reshape": _reshape, "Transpose": _transpose,
    "MatMul": _matmul, "BatchMatMul": _matmul, "Gather": _gather, "StridedSlice": _strided_slice,
    "ReduceSum": _reduce_sum, "ReduceMean": _reduce_mean, "Tanh": _tanh, "ReLU": _relu, "GeLU": _gelu,
    "SiLU": _silu, "Softmax": _softmax, "SoftmaxCrossEntropyWithLogits": _cross_entropy, "LayerNorm": _layer_norm,
    "RmsNorm": _rms_norm, "BatchNorm": _batch_norm, "Conv2D": _conv2d,
}  # fmt: skip
