"""Comparisons, logic, selection and conversion."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.frontends.onnx.rules.base import Declined, OnnxCall, Results, onnx_op, pair_of
from kernelgen.tensor.types import dtype


@onnx_op("IsInf")
def is_inf(call: OnnxCall) -> Results:
    """Both infinities, unless an attribute leaves one out."""
    if call.attribute("detect_positive", 1) and call.attribute("detect_negative", 1):
        return ops.is_inf(*call.operands)
    return Declined("only one of the infinities is looked for")


@onnx_op("Xor")
def xor(call: OnnxCall) -> Results:
    """Of booleans: not equal."""
    return ops.not_equal(*pair_of(call))


@onnx_op("Cast")
def cast(call: OnnxCall) -> Results:
    """To the data type of ``to``."""
    from onnx import helper

    target = dtype(helper.tensor_dtype_to_np_dtype(call.attribute("to")))
    if target.is_opaque:
        return Declined(f"{target} is for operators of the host library")
    return ops.cast(call.operands[0], target)


@onnx_op("CastLike")
def cast_like(call: OnnxCall) -> Results:
    """To the data type of the second operand."""
    return ops.cast(call.operands[0], dtype(call.operands[1].dtype))
