"""What onnxruntime's optimizer of transformers joins (``com.microsoft``), as the operators it was: sums before norms, biases
before activations, the embeddings of a model, a scaled product."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from graphkernel import ops
from graphkernel.frontends.onnx.rules.base import Declined, OnnxCall, OnnxRule, Operand, Results, onnx_op, shape_of
from graphkernel.frontends.onnx.rules.positions import positions
from graphkernel.frontends.onnx.rules.reduction import zeros
from kernelgen.tensor.types import dtype

SUM = 3
"""The result of a norm that is the sum before it; the two between are none of a model that is run."""


@onnx_op("com.microsoft::SkipLayerNormalization")
def skip_layer_normalization(call: OnnxCall) -> Results:
    """Of x, skip, scale, shift and a bias, the last two optional: the norm of the sum of the first two and the bias."""
    total = _sum(call.operands[0], call.operands[1], call.operand(4))
    return _with_sum(call, _layer_norm(call, total, call.operands[2], call.operand(3)), total)


@onnx_op("com.microsoft::SkipSimplifiedLayerNormalization")
def skip_rms_normalization(call: OnnxCall) -> Results:
    """The same by the root of the mean square, which shifts nothing."""
    total = _sum(call.operands[0], call.operands[1], call.operand(3))
    return _with_sum(call, ops.rms_norm(total, call.operands[2], epsilon=_epsilon(call))[0], total)


def _layer_norm(call: OnnxCall, x: Operand, scale: Operand, shift: Operand | None) -> Any:  # a Tensor or array
    beta = zeros(scale) if shift is None else shift
    return ops.layer_norm(x, scale, beta, begin_norm_axis=-1, begin_params_axis=-1, epsilon=_epsilon(call))[0]


def _epsilon(call: OnnxCall) -> float:
    return call.attribute("epsilon", 1e-12)


def _sum(*operands: Operand | None) -> Any:  # a Tensor or array
    return reduce(ops.add, (each for each in operands if each is not None))


def _with_sum(call: OnnxCall, found: Operand, total: Operand) -> Results:
    return [found, None, None, total] if call.results > SUM else found


@onnx_op("SimplifiedLayerNormalization")
def rms_normalization(call: OnnxCall) -> Results:
    """By the root of the mean square, over the last axis; onnxruntime has it among ONNX's own operators."""
    x, scale = call.operands[:2]
    if call.attribute("axis", -1) % len(shape_of(x)) != len(shape_of(x)) - 1 or call.results > 1:
        return Declined("statistics over other axes than the last, or as a result")
    return ops.rms_norm(x, scale, epsilon=call.attribute("epsilon", 1e-5))[0]


def _biased(name: str, function: Callable[[Operand], Any]) -> OnnxRule:
    """A function of x, to which a bias may be added before."""
    return OnnxRule(f"com.microsoft::{name}", lambda call: function(_sum(*call.operands)))


FAST_GELU = _biased("FastGelu", lambda x: ops.gelu(x, approximate="tanh"))
BIAS_GELU = _biased("BiasGelu", ops.gelu)
GELU = _biased("Gelu", ops.gelu)


@onnx_op("com.microsoft::QuickGelu")
def quick_gelu(call: OnnxCall) -> Results:
    """``x * sigmoid(alpha * x)``."""
    (x,) = call.operands
    return ops.mul(x, ops.sigmoid(ops.mul(x, call.attribute("alpha", 1.702))))


@onnx_op("com.microsoft::FusedMatMul")
def scaled_product(call: OnnxCall) -> Results:
    """``alpha * a @ b``, each of them turned where that is asked for."""
    if call.attribute("transBatchA", 0) or call.attribute("transBatchB", 0) or min(map(_rank, call.operands)) < 2:
        return Declined("batches that are turned, or vectors")
    turned = (bool(call.attribute(name, 0)) for name in ("transA", "transB"))
    return ops.mul(ops.matmul(*call.operands, *turned), call.attribute("alpha", 1.0))


def _rank(operand: Operand) -> int:
    return len(shape_of(operand))


@onnx_op("com.microsoft::EmbedLayerNormalization")
def embeddings(call: OnnxCall) -> Results:
    """Rows of tables of words, places and segments, their norm, and how many tokens of each row are there."""
    ids, segments, words, places, kinds, scale, shift, mask, numbers = (call.operand(k) for k in range(9))
    batch, tokens = shape_of(ids)
    if mask is not None and dtype(mask.dtype).name != "int32":
        return Declined("a mask of another type")
    numbers = ops.expand_dims(positions(call, tokens), 0) if numbers is None else numbers
    found = [ops.gather(words, ids, axis=0), ops.gather(places, numbers, axis=0)]
    found += [] if segments is None else [ops.gather(kinds, segments, axis=0)]
    total = _sum(*found)
    norm = _layer_norm(call, total, scale, shift)
    if call.results < 2:
        return norm
    if mask is None:
        counts: Operand = ops.broadcast_to(call.constant(np.zeros(1, np.int32)), (batch,))
    else:
        counts = ops.reduce_sum(ops.cast(ops.equal(mask, 1), dtype("int32")), axis=(1,))
    return [norm, counts, total][: call.results]
