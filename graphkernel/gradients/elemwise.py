"""Gradients of arithmetic and transcendental operators, one line each: ``(dy, y, *operands)`` to the cotangent.

Where a function has a corner the gradient is that of torch (``Abs`` at 0: 0), but equal operands of ``Maximum`` and
``Minimum`` give all to the first, as MindSpore's ``MaximumGrad`` does, where torch gives each a half.
"""

from __future__ import annotations

from math import pi, sqrt

from graphkernel import ops
from graphkernel.gradients.base import Application, Cotangents, flat, gradient, pointwise
from graphkernel.ops import Tensor

STEPS = "constant between jumps"
SAME = "all ones, or all zeros"


def _rounded_quotient(x: Tensor, y: Tensor, remainder: Tensor) -> Tensor:
    """The whole number that was taken of the quotient."""
    return ops.round((x - remainder) / y)


def _power_by_base(dy: Tensor, z: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """0 where 0 is raised to 0, as where anything else is."""
    slope, exponent = dy * y * ops.pow(x, y - 1), y.value.constant
    return slope if exponent is not None and exponent.all() else ops.select((x == 0) & (y == 0), 0, slope)


def _power_by_exponent(dy: Tensor, z: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """0 where 0 is raised to what is not negative."""
    zero = (x == 0) & (y >= 0)
    return dy * ops.select(zero, 0, z * ops.log(x))


def _by_first_angle(dy: Tensor, _: Tensor, y: Tensor, x: Tensor) -> Tensor:
    return dy * x / (x * x + y * y)


def _by_second_angle(dy: Tensor, _: Tensor, y: Tensor, x: Tensor) -> Tensor:
    return -dy * y / (x * x + y * y)


ADD = pointwise("Add", lambda dy, z, x, y: dy, lambda dy, z, x, y: dy)
SUB = pointwise("Sub", lambda dy, z, x, y: dy, lambda dy, z, x, y: -dy)
MUL = pointwise("Mul", lambda dy, z, x, y: dy * y, lambda dy, z, x, y: dy * x)
REAL_DIV = pointwise("RealDiv", lambda dy, z, x, y: dy / y, lambda dy, z, x, y: -dy * z / y)
DIV = pointwise("Div", lambda dy, z, x, y: dy / y, lambda dy, z, x, y: -dy * z / y)
MOD = pointwise("Mod", lambda dy, z, x, y: dy, lambda dy, z, x, y: -dy * _rounded_quotient(x, y, z))
FLOOR_MOD = pointwise("FloorMod", lambda dy, z, x, y: dy, lambda dy, z, x, y: -dy * _rounded_quotient(x, y, z))
POW = pointwise("Pow", _power_by_base, _power_by_exponent)
ATAN2 = pointwise("Atan2", _by_first_angle, _by_second_angle)
SELECT = pointwise(
    "Select", None, lambda dy, z, c, x, y: ops.select(c, dy, 0), lambda dy, z, c, x, y: ops.select(c, 0, dy)
)

NEG = pointwise("Neg", lambda dy, y, x: -dy)
ABS = pointwise("Abs", lambda dy, y, x: dy * ops.sign(x))
SQRT = pointwise("Sqrt", lambda dy, y, x: ops.sqrt_grad(y, dy))
RSQRT = pointwise("Rsqrt", lambda dy, y, x: ops.rsqrt_grad(y, dy))
RECIPROCAL = pointwise("Reciprocal", lambda dy, y, x: -dy * y * y)
EXP = pointwise("Exp", lambda dy, y, x: dy * y)
EXPM1 = pointwise("Expm1", lambda dy, y, x: dy * (y + 1.0))
LOG = pointwise("Log", lambda dy, y, x: dy / x)
LOG1P = pointwise("Log1p", lambda dy, y, x: dy / (x + 1.0))
TANH = pointwise("Tanh", lambda dy, y, x: ops.tanh_grad(y, dy))
ERF = pointwise("Erf", lambda dy, y, x: dy * (2 / sqrt(pi) * ops.exp(-x * x)))
ERFC = pointwise("Erfc", lambda dy, y, x: dy * (-2 / sqrt(pi) * ops.exp(-x * x)))
SIN = pointwise("Sin", lambda dy, y, x: dy * ops.cos(x))
COS = pointwise("Cos", lambda dy, y, x: -dy * ops.sin(x))
TAN = pointwise("Tan", lambda dy, y, x: dy * (y * y + 1.0))
SINH = pointwise("Sinh", lambda dy, y, x: dy * ops.cosh(x))
COSH = pointwise("Cosh", lambda dy, y, x: dy * ops.sinh(x))
ASIN = pointwise("Asin", lambda dy, y, x: dy * ops.rsqrt((1.0 - x) * (1.0 + x)))
ACOS = pointwise("ACos", lambda dy, y, x: -dy * ops.rsqrt((1.0 - x) * (1.0 + x)))
ATAN = pointwise("Atan", lambda dy, y, x: dy / (x * x + 1.0))
ASINH = pointwise("Asinh", lambda dy, y, x: dy * ops.rsqrt(x * x + 1.0))
ACOSH = pointwise("Acosh", lambda dy, y, x: dy * ops.rsqrt((x - 1.0) * (x + 1.0)))
ATANH = pointwise("Atanh", lambda dy, y, x: dy / ((1.0 - x) * (1.0 + x)))
ASINH_EXT = pointwise("AsinhExt", lambda dy, y, x: dy * ops.rsqrt(x * x + 1.0))
ACOSH_EXT = pointwise("AcoshExt", lambda dy, y, x: dy * ops.rsqrt((x - 1.0) * (x + 1.0)))

TENSOR_MOVE = pointwise("TensorMove", lambda dy, y, x: dy)
IDENTITY_MATH = pointwise("IdentityMath", lambda dy, y, x: dy)
ASSIGN = pointwise("Assign", None, lambda dy, y, target, value: dy)
ASSIGN_ADD = pointwise("AssignAdd", lambda dy, y, target, value: dy, lambda dy, y, target, value: dy)

STOP_GRADIENT = flat("StopGradient", "asked for")
SIGN = flat("Sign", STEPS)
FLOOR = flat("Floor", STEPS)
CEIL = flat("Ceil", STEPS)
TRUNC = flat("Trunc", STEPS)
ROUND = flat("Round", STEPS)
FLOOR_DIV = flat("FloorDiv", STEPS)
ONES_LIKE = flat("OnesLike", SAME)
ZEROS_LIKE = flat("ZerosLike", SAME)
ZEROS_LIKE_EXT = flat("ZerosLikeExt", SAME)


@gradient("AddN")
def add_n(of: Application) -> Cotangents:
    """dy for each operand"""
    return [of.dy] * len(of.operands)


@gradient("Cast")
def cast(of: Application) -> Cotangents:
    """dy in the operand's data type"""
    return [ops.cast(of.dy, of.operands[0].dtype) if of.wanted[0] else None]


@gradient("Maximum")
def maximum(of: Application) -> Cotangents:
    """MaximumGrad"""
    return ops.maximum_grad(*of.operands, of.dy)


@gradient("Minimum")
def minimum(of: Application) -> Cotangents:
    """MinimumGrad"""
    return ops.minimum_grad(*of.operands, of.dy)
