"""Gradients of arithmetic and transcendental operators, one line each: ``(dy, y, *operands)`` to the cotangent.

Where a function has a corner the gradient is that of torch (``Abs`` at 0: 0), but equal operands of ``Maximum`` and
``Minimum`` give all to the first, as MindSpore's ``MaximumGrad`` does, where torch gives each a half.
"""

from __future__ import annotations

from math import pi, sqrt

from graphkernel import ops
from graphkernel.gradients.base import Application, Cotangents, flat, gradient, pointwise
from graphkernel.ops import Tensor
from graphkernel.ops.composite import activation, activation_ext, arithmetic
from kernelgen.tensor.operators import creation, effects, elemwise, select
from kernelgen.tensor.operators.cast import CAST

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


ADD = pointwise(elemwise.ADD, lambda dy, z, x, y: dy, lambda dy, z, x, y: dy)
SUB = pointwise(elemwise.SUB, lambda dy, z, x, y: dy, lambda dy, z, x, y: -dy)
MUL = pointwise(elemwise.MUL, lambda dy, z, x, y: dy * y, lambda dy, z, x, y: dy * x)
REAL_DIV = pointwise(elemwise.REAL_DIV, lambda dy, z, x, y: dy / y, lambda dy, z, x, y: -dy * z / y)
DIV = pointwise(elemwise.DIV, lambda dy, z, x, y: dy / y, lambda dy, z, x, y: -dy * z / y)
MOD = pointwise(elemwise.MOD, lambda dy, z, x, y: dy, lambda dy, z, x, y: -dy * _rounded_quotient(x, y, z))
FLOOR_MOD = pointwise(elemwise.FLOOR_MOD, lambda dy, z, x, y: dy, lambda dy, z, x, y: -dy * _rounded_quotient(x, y, z))
POW = pointwise(elemwise.POW, _power_by_base, _power_by_exponent)
ATAN2 = pointwise(elemwise.ATAN2, _by_first_angle, _by_second_angle)
SELECT = pointwise(
    select.SELECT, None, lambda dy, z, c, x, y: ops.select(c, dy, 0), lambda dy, z, c, x, y: ops.select(c, 0, dy)
)

NEG = pointwise(elemwise.NEG, lambda dy, y, x: -dy)
ABS = pointwise(elemwise.ABS, lambda dy, y, x: dy * ops.sign(x))
SQRT = pointwise(elemwise.SQRT, lambda dy, y, x: ops.sqrt_grad(y, dy))
RSQRT = pointwise(elemwise.RSQRT, lambda dy, y, x: ops.rsqrt_grad(y, dy))
RECIPROCAL = pointwise(elemwise.RECIPROCAL, lambda dy, y, x: -dy * y * y)
EXP = pointwise(elemwise.EXP, lambda dy, y, x: dy * y)
EXPM1 = pointwise(elemwise.EXPM1, lambda dy, y, x: dy * (y + 1.0))
LOG = pointwise(elemwise.LOG, lambda dy, y, x: dy / x)
LOG1P = pointwise(elemwise.LOG1P, lambda dy, y, x: dy / (x + 1.0))
TANH = pointwise(elemwise.TANH, lambda dy, y, x: ops.tanh_grad(y, dy))
ERF = pointwise(elemwise.ERF, lambda dy, y, x: dy * (2 / sqrt(pi) * ops.exp(-x * x)))
ERFC = pointwise(elemwise.ERFC, lambda dy, y, x: dy * (-2 / sqrt(pi) * ops.exp(-x * x)))
SIN = pointwise(elemwise.SIN, lambda dy, y, x: dy * ops.cos(x))
COS = pointwise(elemwise.COS, lambda dy, y, x: -dy * ops.sin(x))
TAN = pointwise(elemwise.TAN, lambda dy, y, x: dy * (y * y + 1.0))
SINH = pointwise(elemwise.SINH, lambda dy, y, x: dy * ops.cosh(x))
COSH = pointwise(elemwise.COSH, lambda dy, y, x: dy * ops.sinh(x))
ASIN = pointwise(elemwise.ASIN, lambda dy, y, x: dy * ops.rsqrt((1.0 - x) * (1.0 + x)))
ACOS = pointwise(elemwise.ACOS, lambda dy, y, x: -dy * ops.rsqrt((1.0 - x) * (1.0 + x)))
ATAN = pointwise(elemwise.ATAN, lambda dy, y, x: dy / (x * x + 1.0))
ASINH = pointwise(elemwise.ASINH, lambda dy, y, x: dy * ops.rsqrt(x * x + 1.0))
ACOSH = pointwise(elemwise.ACOSH, lambda dy, y, x: dy * ops.rsqrt((x - 1.0) * (x + 1.0)))
ATANH = pointwise(elemwise.ATANH, lambda dy, y, x: dy / ((1.0 - x) * (1.0 + x)))
ASINH_EXT = pointwise(activation_ext.ASINH_EXT, lambda dy, y, x: dy * ops.rsqrt(x * x + 1.0))
ACOSH_EXT = pointwise(activation_ext.ACOSH_EXT, lambda dy, y, x: dy * ops.rsqrt((x - 1.0) * (x + 1.0)))

TENSOR_MOVE = pointwise(elemwise.TENSOR_MOVE, lambda dy, y, x: dy)
IDENTITY_MATH = pointwise(arithmetic.IDENTITY_MATH, lambda dy, y, x: dy)
ASSIGN = pointwise(effects.ASSIGN, None, lambda dy, y, target, value: dy)
ASSIGN_ADD = pointwise(effects.ASSIGN_ADD, lambda dy, y, target, value: dy, lambda dy, y, target, value: dy)

STOP_GRADIENT = flat(arithmetic.STOP_GRADIENT, "asked for")
SIGN = flat(elemwise.SIGN, STEPS)
FLOOR = flat(elemwise.FLOOR, STEPS)
CEIL = flat(elemwise.CEIL, STEPS)
TRUNC = flat(elemwise.TRUNC, STEPS)
ROUND = flat(elemwise.ROUND, STEPS)
FLOOR_DIV = flat(elemwise.FLOOR_DIV, STEPS)
ONES_LIKE = flat(activation.ONES_LIKE, SAME)
ZEROS_LIKE = flat(activation.ZEROS_LIKE, SAME)
ZEROS_LIKE_EXT = flat(creation.ZEROS_LIKE_EXT, SAME)


@gradient(activation.ADD_N)
def add_n(of: Application) -> Cotangents:
    """dy for each operand"""
    return [of.dy] * len(of.operands)


@gradient(CAST)
def cast(of: Application) -> Cotangents:
    """dy in the operand's data type"""
    return [ops.cast(of.dy, of.operands[0].dtype) if of.wanted[0] else None]


@gradient(elemwise.MAXIMUM)
def maximum(of: Application) -> Cotangents:
    """MaximumGrad"""
    x, y = of.operands
    return ops.maximum_grad(x, y, of.dy)


@gradient(elemwise.MINIMUM)
def minimum(of: Application) -> Cotangents:
    """MinimumGrad"""
    x, y = of.operands
    return ops.minimum_grad(x, y, of.dy)
