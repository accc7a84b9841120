"""Activations."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.frontends.onnx.rules.base import Declined, OnnxCall, OnnxRule, Results, onnx_op, shape_of

HARD_SWISH = OnnxRule("HardSwish", lambda call: ops.hswish(*call.operands))


@onnx_op("Gelu")
def gelu(call: OnnxCall) -> Results:
    """Through erf, or the tanh form."""
    return ops.gelu(call.operands[0], approximate=call.attribute("approximate", "none"))


@onnx_op("LeakyRelu")
def leaky_relu(call: OnnxCall) -> Results:
    """The slope of the negative side is ``alpha``."""
    return ops.leaky_relu(call.operands[0], alpha=call.attribute("alpha", 0.01))


@onnx_op("Elu")
def elu(call: OnnxCall) -> Results:
    """The limit of the negative side is ``-alpha``."""
    return ops.elu(call.operands[0], alpha=call.attribute("alpha", 1.0))


@onnx_op("PRelu")
def parametric_relu(call: OnnxCall) -> Results:
    """The slope of the negative side is an operand."""
    x, slope = call.operands
    if call.opset < 7 and len(shape_of(slope)) == 1 and shape_of(slope) != (1,):  # one for each channel
        slope = ops.expand_dims(slope, tuple(range(1, len(shape_of(x)) - 1)))
    return ops.select(ops.less(x, 0), ops.mul(x, slope), x)


@onnx_op("Swish")
def swish(call: OnnxCall) -> Results:
    """x * sigmoid(alpha * x)."""
    return ops.silu(call.operands[0]) if call.attribute("alpha", 1.0) == 1.0 else Declined("alpha is not 1")


@onnx_op("HardSigmoid")
def hard_sigmoid(call: OnnxCall) -> Results:
    """max(0, min(1, alpha * x + beta))."""
    line = ops.add(ops.mul(call.operands[0], float(call.attribute("alpha", 0.2))), float(call.attribute("beta", 0.5)))
    return ops.minimum(ops.maximum(line, 0.0), 1.0)
