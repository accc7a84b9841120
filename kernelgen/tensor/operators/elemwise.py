"""Arithmetic and transcendental operators, one line each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernelgen.tensor.operator import Domain, Traits
from kernelgen.tensor.operators.families import Array, binary, predicate, unary
from kernelgen.tensor.operators.type_rules import any_dtype, floating, number, real


def erf(x: Array) -> Array:
    """The error function, which numpy lacks, to double precision."""
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x)).astype(x.dtype)


def erfc(x: Array) -> Array:
    """1 - erf(x), with all digits where that is small."""
    return np.asarray(np.vectorize(math.erfc, otypes=[np.float64])(x)).astype(x.dtype)


def truncated_quotient(x: Array, y: Array) -> Any:  # numpy gives array or scalar
    """C's division: true division of floats, integers round towards zero; by zero they give 0."""
    if np.issubdtype(x.dtype, np.integer):
        return (x - np.fmod(x, y)) // y
    return x / y


def power(x: Array, y: Array) -> Any:  # numpy gives array or scalar
    """Integers wrap around; to a negative exponent they give 0, but 1 and -1 what they give to the positive one."""
    if not np.issubdtype(x.dtype, np.signedinteger):
        return np.power(x, y)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")  # numpy refuses negative exponents
    wrapped = np.power(x.astype(unsigned), y.astype(unsigned)).astype(x.dtype)
    return np.where((y < 0) & (np.abs(x) != 1), x.dtype.type(0), wrapped)


DEAR = Traits(dear=True)

ADD = binary("Add", np.add, commutative=True, onnx="Add")
SUB = binary("Sub", np.subtract, onnx="Sub")
MUL = binary("Mul", np.multiply, commutative=True, onnx="Mul")
REAL_DIV = binary(
    "RealDiv", np.divide, floating, doc="True division.", traits=Traits(domain=(1, Domain.NONZERO)), onnx="Div"
)
DIV = binary(
    "Div",
    truncated_quotient,
    real,
    doc="Division; of integers it rounds towards zero, as C and ONNX do, by 0 to 0.",
    traits=Traits(domain=(1, Domain.NONZERO)),
)
FLOOR_DIV = binary("FloorDiv", np.floor_divide, real, traits=Traits(domain=(1, Domain.NONZERO)))
MOD = binary(
    "Mod", np.fmod, real, doc="Remainder with the sign of the dividend.", traits=Traits(domain=(1, Domain.NONZERO))
)
FLOOR_MOD = binary(
    "FloorMod", np.mod, real, doc="Remainder with the sign of the divisor.", traits=Traits(domain=(1, Domain.NONZERO))
)
POW = binary("Pow", power, real, traits=Traits(dear=True, domain=(0, Domain.POSITIVE)))
MAXIMUM = binary("Maximum", np.maximum, real, commutative=True, doc="NaN wins.", onnx="Max")
MINIMUM = binary("Minimum", np.minimum, real, commutative=True, doc="NaN wins.", onnx="Min")
ATAN2 = binary("Atan2", np.arctan2, floating, traits=DEAR)

NEG = unary("Neg", np.negative, number, traits=Traits(parts_alike=True), onnx="Neg")
ABS = unary("Abs", np.abs, real, onnx="Abs")
SIGN = unary("Sign", np.sign, real, onnx="Sign")
FLOOR = unary("Floor", np.floor, onnx="Floor")
CEIL = unary("Ceil", np.ceil, onnx="Ceil")
TRUNC = unary("Trunc", np.trunc)
ROUND = unary("Round", np.rint, doc="To nearest, ties to even.", onnx="Round")
SQRT = unary("Sqrt", np.sqrt, traits=Traits(domain=(0, Domain.POSITIVE)), onnx="Sqrt")
RSQRT = unary("Rsqrt", lambda x: 1 / np.sqrt(x), traits=Traits(domain=(0, Domain.POSITIVE)))
RECIPROCAL = unary("Reciprocal", lambda x: 1 / x, traits=Traits(domain=(0, Domain.NONZERO)), onnx="Reciprocal")
EXP = unary("Exp", np.exp, traits=DEAR, onnx="Exp")
EXPM1 = unary("Expm1", np.expm1, traits=DEAR)
LOG = unary("Log", np.log, traits=Traits(dear=True, domain=(0, Domain.POSITIVE)), onnx="Log")
LOG1P = unary("Log1p", np.log1p, traits=DEAR)
TANH = unary("Tanh", np.tanh, traits=DEAR, onnx="Tanh")
ERF = unary("Erf", erf, traits=DEAR, onnx="Erf")
ERFC = unary("Erfc", erfc, traits=DEAR, doc="1 - erf(x), with all digits where that is small.")
SIN = unary("Sin", np.sin, traits=DEAR, onnx="Sin")
COS = unary("Cos", np.cos, traits=DEAR, onnx="Cos")
TAN = unary("Tan", np.tan, traits=DEAR, onnx="Tan")
SINH = unary("Sinh", np.sinh, traits=DEAR, onnx="Sinh")
COSH = unary("Cosh", np.cosh, traits=DEAR, onnx="Cosh")
ASIN = unary("Asin", np.arcsin, traits=Traits(dear=True, domain=(0, Domain.BELOW_ONE)), onnx="Asin")
ACOS = unary("ACos", np.arccos, traits=Traits(dear=True, domain=(0, Domain.BELOW_ONE)), onnx="Acos")
ATAN = unary("Atan", np.arctan, traits=DEAR, onnx="Atan")
ASINH = unary("Asinh", np.arcsinh, traits=DEAR, onnx="Asinh")
ACOSH = unary("Acosh", np.arccosh, traits=DEAR, onnx="Acosh")
ATANH = unary("Atanh", np.arctanh, traits=Traits(dear=True, domain=(0, Domain.BELOW_ONE)), onnx="Atanh")
TENSOR_MOVE = unary("TensorMove", np.copy, any_dtype, doc="A copy.", traits=Traits(parts_alike=True), onnx="Identity")

IS_NAN = predicate("IsNan", 1, np.isnan, floating, onnx="IsNaN")
IS_INF = predicate("IsInf", 1, np.isinf, floating)
IS_FINITE = predicate("IsFinite", 1, np.isfinite, floating)
