"""Arithmetic, functions, comparisons and activations as ONNX nodes.

Forms guard what ONNX leaves open: dividing integers by zero, the sign of a remainder, NaN where a value is rounded.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from graphkernel.onnx_writing.writer import Unwritable, Write, Writer, scalar, where
from graphkernel.ops.composite.activation import ADD_N, GELU, LEAKY_RELU, RELU, SILU, SQUARE
from graphkernel.ops.composite.normalize import BIAS_ADD
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators import elemwise
from kernelgen.tensor.operators.select import NOT_EQUAL, SELECT
from kernelgen.tensor.types import Category, DType

MOST_FACTORS = 64  # of a power of integers that is written as products


def _not_equal(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("Not", writer.emit("Equal", *x), result=result)


def _is_inf(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    infinite = scalar(writer, node.args[0].type.dtype, float("inf"))
    return writer.emit("Equal", writer.emit("Abs", x[0]), infinite, result=result)


def _is_finite(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    infinite = scalar(writer, node.args[0].type.dtype, float("inf"))
    return writer.emit("Less", writer.emit("Abs", x[0]), infinite, result=result)  # NaN is not less


def _trunc(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    negative = writer.emit("Less", x[0], scalar(writer, node.out.type.dtype, 0))
    return writer.emit("Where", negative, writer.emit("Ceil", x[0]), writer.emit("Floor", x[0]), result=result)


def _expm1(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """exp(x) - 1 = tanh(x / 2) (exp(x) + 1), which keeps all digits near zero."""
    of = node.out.type.dtype
    half = writer.emit("Tanh", writer.emit("Mul", x[0], scalar(writer, of, 0.5)))
    more = writer.emit("Add", writer.emit("Exp", x[0]), scalar(writer, of, 1))
    return writer.emit("Mul", half, more, result=result)


def _log1p(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """log(u) x / (u - 1) with u = 1 + x: the error of u is in both, so all digits stay near zero."""
    of = node.out.type.dtype
    one = scalar(writer, of, 1)
    moved = writer.emit("Add", x[0], one)
    log = writer.emit("Log", moved)
    ratio = writer.emit("Div", x[0], writer.emit("Sub", moved, one))
    near = writer.emit("Where", writer.emit("Equal", moved, one), x[0], writer.emit("Mul", log, ratio))
    is_small = writer.emit("Less", writer.emit("Abs", x[0]), one)
    return writer.emit("Where", is_small, near, log, result=result)


def _erfc(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("Sub", scalar(writer, node.out.type.dtype, 1), writer.emit("Erf", x[0]), result=result)


def _atan2(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """The angle of the quotient, and half a turn more on the left, with the sign of y."""
    of = node.out.type.dtype
    y, zero = x[0], scalar(writer, of, 0)
    is_upright = writer.emit("Equal", x[1], zero)
    unsigned = writer.emit("Where", is_upright, writer.emit("Abs", x[1]), x[1])  # -0 turns no sign
    both = writer.emit("And", writer.emit("Equal", y, zero), is_upright)
    angle = writer.emit("Where", both, y, writer.emit("Atan", writer.emit("Div", y, unsigned)))
    turn = scalar(writer, of, np.pi)
    half = writer.emit("Where", writer.emit("Less", y, zero), writer.emit("Neg", turn), turn)
    left = writer.emit("Less", x[1], zero)
    return writer.emit("Add", angle, writer.emit("Where", left, half, zero), result=result)


def _is_unsigned(of: DType) -> bool:
    return of.category is Category.UINT


def _div(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """Integers: by 0 it gives 0, and the least number by -1 is left to Neg, since processors trap on both."""
    of, divisor = node.out.type.dtype, node.args[1].constant
    is_safe = divisor is not None and divisor.all() and not (divisor == -1).any()
    if not of.is_integer or is_safe:
        return writer.emit("Div", *x, result=result)
    if not writer.is_whole_model:
        raise Unwritable("onnxruntime dies of an integer division by zero")
    return _guarded_quotient(writer, of, x, result)


def _guarded_quotient(writer: Writer, of: DType, x: tuple[str, ...], result: str = "") -> str:
    if _is_unsigned(of):  # onnxruntime selects no such numbers
        one = scalar(writer, of, 1)
        quotient = writer.emit("Div", x[0], writer.emit("Max", x[1], one))
        return writer.emit("Mul", quotient, writer.emit("Min", x[1], one), result=result)
    zero, safe = scalar(writer, of, 0), _safe_divisor(writer, of, x[1])
    by_zero = writer.emit("Equal", x[1], zero)
    quotient = writer.emit("Div", x[0], safe)
    by_minus_one = writer.emit("Equal", x[1], scalar(writer, of, -1))
    quotient = writer.emit("Where", by_minus_one, writer.emit("Neg", x[0]), quotient)
    return writer.emit("Where", by_zero, zero, quotient, result=result)


def _safe_divisor(writer: Writer, of: DType, y: str) -> str:
    """The divisor of integers, 1 where it is 0 or -1."""
    if _is_unsigned(of):
        return writer.emit("Max", y, scalar(writer, of, 1))
    risky = writer.emit("Equal", y, scalar(writer, of, 0))
    risky = writer.emit("Or", risky, writer.emit("Equal", y, scalar(writer, of, -1)))
    return writer.emit("Where", risky, scalar(writer, of, 1), y)


def _mod(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    of = node.out.type.dtype
    divisor = _safe_divisor(writer, of, x[1]) if of.is_integer else x[1]
    return writer.emit("Mod", x[0], divisor, result=result, fmod=1)


def _floor_mod(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """The remainder, a divisor more where its sign is not the divisor's."""
    of = node.out.type.dtype
    if _is_unsigned(of):
        return _mod(writer, node, x, result)
    zero = scalar(writer, of, 0)
    divisor = _safe_divisor(writer, of, x[1]) if of.is_integer else x[1]
    rest = writer.emit("Mod", x[0], divisor, fmod=1)
    return writer.emit(
        "Where", _wrong_sign(writer, rest, x[1], zero), writer.emit("Add", rest, x[1]), rest, result=result
    )


def _wrong_sign(writer: Writer, rest: str, divisor: str, zero: str) -> str:
    differ = writer.emit("Xor", writer.emit("Less", rest, zero), writer.emit("Less", divisor, zero))
    return writer.emit("And", differ, writer.emit("Not", writer.emit("Equal", rest, zero)))


def _floor_div(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    of = node.out.type.dtype
    if not of.is_integer:
        return writer.emit("Floor", writer.emit("Div", *x), result=result)
    if _is_unsigned(of):
        return _guarded_quotient(writer, of, x, result)
    quotient = _guarded_quotient(writer, of, x)
    rest = writer.emit("Mod", x[0], _safe_divisor(writer, of, x[1]), fmod=1)
    wrong = _wrong_sign(writer, rest, x[1], scalar(writer, of, 0))
    less = writer.emit("Sub", quotient, scalar(writer, of, 1))
    return writer.emit("Where", wrong, less, quotient, result=result)


def _pow(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """Known powers of integers are products, which wrap around; runtimes compute others in floats."""
    exponent = node.args[1].constant
    known = int(exponent.reshape(())) if exponent is not None and exponent.size == 1 else 0
    if not node.out.type.dtype.is_integer:
        return writer.emit("Pow", *x, result=result)
    if not 1 <= known <= MOST_FACTORS:
        return _pow_in_floats(writer, x, result)
    factor = product = writer.emit("Expand", x[0], writer.extents(node.out.type.shape))
    for _ in range(known - 1):
        product = writer.emit("Mul", product, factor)
    return writer.emit("Identity", product, result=result)


def _pow_in_floats(writer: Writer, x: tuple[str, ...], result: str) -> object:
    if not writer.is_whole_model:
        raise Unwritable("onnxruntime computes powers of integers in floats")
    return writer.emit("Pow", *x, result=result)


def _select(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return where(writer, node.out.type.dtype, *x, result=result)


def _relu(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    of = node.out.type.dtype
    if of.is_integer:
        return writer.emit("Max", x[0], scalar(writer, of, 0), result=result)
    return writer.emit("Relu", x[0], result=result)


def _add_n(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    if not node.out.type.dtype.is_integer:
        return writer.emit("Sum", *x, result=result)
    total = x[0]
    for operand in x[1:]:
        total = writer.emit("Add", total, operand)
    return writer.emit("Identity", total, result=result)


def _gelu(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    if node.attrs.str("approximate", "none") != "none":
        raise Unwritable("the tanh form of gelu")
    half, one = (writer.constant(np.asarray(value, node.out.type.dtype.numpy)) for value in (0.5, 1.0))
    scale = writer.constant(np.asarray(np.sqrt(0.5), node.out.type.dtype.numpy))
    phi = writer.emit("Add", writer.emit("Erf", writer.emit("Mul", x[0], scale)), one)
    return writer.emit("Mul", writer.emit("Mul", x[0], half), phi, result=result)


def _square(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("Mul", x[0], x[0], result=result)


def _rsqrt(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("Reciprocal", writer.emit("Sqrt", x[0]), result=result)


def _silu(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("Mul", x[0], writer.emit("Sigmoid", x[0]), result=result)


def _leaky_relu(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("LeakyRelu", x[0], result=result, alpha=node.attrs.float("alpha", 0.01))


def _bias_add(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    rank = node.args[0].type.rank
    channel = rank - 1 if node.attrs.str("data_format", "NCHW") == "NHWC" else 1
    bias = writer.emit("Reshape", x[1], writer.ints(tuple(-1 if axis == channel else 1 for axis in range(rank))))
    return writer.emit("Add", x[0], bias, result=result)


WRITERS: Mapping[Operator, Write] = {
    elemwise.DIV: _div, elemwise.POW: _pow, elemwise.RSQRT: _rsqrt, SELECT: _select, RELU: _relu, ADD_N: _add_n, GELU: _gelu,
    SQUARE: _square, SILU: _silu, LEAKY_RELU: _leaky_relu, BIAS_ADD: _bias_add,
}  # fmt: skip
WHOLE_MODELS_ONLY: Mapping[Operator, Write] = {
    NOT_EQUAL: _not_equal, elemwise.IS_INF: _is_inf, elemwise.IS_FINITE: _is_finite, elemwise.TRUNC: _trunc,
    elemwise.EXPM1: _expm1, elemwise.LOG1P: _log1p, elemwise.ERFC: _erfc, elemwise.ATAN2: _atan2, elemwise.MOD: _mod,
    elemwise.FLOOR_MOD: _floor_mod, elemwise.FLOOR_DIV: _floor_div,
}  # fmt: skip
