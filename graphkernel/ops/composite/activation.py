"""Activations and their gradients: composite operators, element by element. Expanders rewrite them for kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from graphkernel.errors import TypeRuleError
from kernelgen.tensor.operator import InferRule, Kind, Operator
from kernelgen.tensor.operators.attributes import real_number, text
from kernelgen.tensor.operators.elemwise import erfc
from kernelgen.tensor.operators.families import Array, ArrayFunction, binary, declare, rounded, unary
from kernelgen.tensor.operators.type_rules import any_dtype, broadcasting, expect_dtype, floating, number, real
from kernelgen.tensor.types import Attrs, TensorType

Types = tuple[TensorType, ...]

GELU_SCALE = float(np.sqrt(2 / np.pi))  # of the tanh form, written 0.7978845608 by MindSpore
GELU_CUBIC = 0.044715
FAST_GELU_SCALE = 1.702

_unary: Callable[..., Operator] = partial(unary, composite=True)
_binary: Callable[..., Operator] = partial(binary, composite=True)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def gated(x: Array, gate: Array) -> Array:
    """x * sigmoid(gate); the product keeps its digits where the sigmoid alone is too small to."""
    e = np.exp(-np.abs(gate))
    return x * np.where(gate >= 0, 1, e) / (1 + e)


def logistic_and_slope(x: Array) -> tuple[Array, Array]:
    """(s, s * (1 - s)) with s = sigmoid(x), without the difference, which would cancel."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e), e / np.square(1 + e)


def _gate_of_gelu(x: Array) -> Array:
    """0.5 * (1 + tanh(u)), which cancels where it is small, is sigmoid(2 u)."""
    return 2 * GELU_SCALE * (x + GELU_CUBIC * x * x * x)


def _gelu_erf(x: Array) -> Array:
    return 0.5 * x * erfc(x * np.asarray(-np.sqrt(0.5), x.dtype))


def _gelu_tanh(x: Array) -> Array:
    return gated(x, _gate_of_gelu(x))


def _fast_gelu(x: Array) -> Array:
    return gated(x, FAST_GELU_SCALE * x)


def _softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _gelu_tanh_gradient(dy: Array, x: Array) -> Array:
    s, slope = logistic_and_slope(_gate_of_gelu(x))
    return dy * (s + x * slope * (2 * GELU_SCALE * (1 + 3 * GELU_CUBIC * x * x)))


def _silu_gradient(dy: Array, x: Array) -> Array:
    s, slope = logistic_and_slope(x)
    return dy * (s + x * slope)


SQUARE = _unary("Square", np.square, number)
SIGMOID = _unary("Sigmoid", sigmoid, onnx="Sigmoid")
RELU = _unary("ReLU", lambda x: np.maximum(x, 0), real, onnx="Relu")
RELU6 = _unary("ReLU6", lambda x: np.clip(x, 0, 6), real)
SILU = _unary("SiLU", lambda x: gated(x, x), doc="x * sigmoid(x).")
GELU_TANH = _unary("GeLU", _gelu_tanh, doc="The tanh approximation, as MindSpore's GeLU.")
FAST_GELU = _unary("FastGeLU", _fast_gelu, doc="x * sigmoid(1.702 x).")
SOFTPLUS = _unary("Softplus", _softplus, doc="log(1 + exp(x)) without overflow.", onnx="Softplus")
SOFTSIGN = _unary("Softsign", lambda x: x / (1 + np.abs(x)), onnx="Softsign")
HSIGMOID = _unary("HSigmoid", lambda x: np.clip(x + 3, 0, 6) / 6)
HSWISH = _unary("HSwish", lambda x: x * np.clip((x + 3) / 6, 0, 1))
ONES_LIKE = _unary("OnesLike", np.ones_like, any_dtype)
ZEROS_LIKE = _unary("ZerosLike", np.zeros_like, any_dtype)
SQUARED_DIFFERENCE = _binary("SquaredDifference", lambda x, y: np.square(x - y), commutative=True)

TANH_GRAD = _binary("TanhGrad", lambda y, dy: dy * ((1 - y) * (1 + y)), floating, doc="From the result y and dy.")
SIGMOID_GRAD = _binary("SigmoidGrad", lambda y, dy: (1 - y) * y * dy, floating, doc="From the result y and dy.")
RELU_GRAD = _binary("ReluGrad", lambda dy, y: np.where(y > 0, dy, 0), real, doc="dy where the operand is positive.")
SQRT_GRAD = _binary("SqrtGrad", lambda y, dy: dy / (2 * y), floating, doc="From the result y and dy.")
RSQRT_GRAD = _binary("RsqrtGrad", lambda y, dy: -0.5 * y * y * y * dy, floating, doc="From the result y and dy.")
SILU_GRAD = _binary("SiLUGrad", _silu_gradient, floating, doc="From dy and the operand.")
SOFTPLUS_GRAD = _binary("SoftplusGrad", lambda dy, x: gated(dy, x), floating, doc="From dy and the operand.")


def _gelu_gradient_type(types: Types, attrs: Attrs) -> Types:
    if len(types) not in (2, 3):
        raise TypeRuleError(f"takes dy, x and optionally y, got {len(types)} operands")
    return broadcasting(floating)(types[:2], attrs)


def _gelu_gradient(dy: Array, x: Array, *unused: Array, attrs: Attrs) -> Array:
    """Gradient of GeLU (tanh form) from dy, x and optionally the result y, which is not needed."""
    return rounded(_gelu_tanh_gradient)(dy, x)


GELU_GRAD = declare("GeLUGrad", Kind.ELEMWISE, None, _gelu_gradient_type, _gelu_gradient, composite=True)


def _gelu_type(types: Types, attrs: Attrs) -> Types:
    if attrs.str("approximate", "none") not in ("none", "tanh"):
        raise TypeRuleError(f"approximate must be 'none' or 'tanh', got {attrs.str('approximate')!r}")
    return broadcasting(floating)(types, attrs)


def _gelu(x: Array, *, attrs: Attrs) -> Array:
    """x * Phi(x); approximate='none' uses erfc, 'tanh' the tanh form."""
    return rounded(_gelu_tanh if attrs.str("approximate", "none") == "tanh" else _gelu_erf)(x)


GELU = declare("Gelu", Kind.ELEMWISE, 1, _gelu_type, _gelu, attributes=(text("approximate", "none"),), composite=True)


def _with_slope(name: str, function: ArrayFunction, attribute: str, default: float) -> Operator:
    """A unary operator with one number as attribute."""

    def meaning(x: Array, *, attrs: Attrs) -> Array:
        return rounded(partial(function, attrs.float(attribute, default)))(x)

    rule: InferRule = broadcasting(floating)
    attributes, doc = (real_number(attribute, default),), function.__doc__ or ""
    return declare(name, Kind.ELEMWISE, 1, rule, meaning, attributes=attributes, composite=True, doc=doc)


def _leaky_relu(alpha: float, x: Array) -> Array:
    """x where x >= 0, else alpha * x."""
    return np.where(x < 0, alpha * x, x)


def _elu(alpha: float, x: Array) -> Array:
    """x where x >= 0, else alpha * (exp(x) - 1)."""
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


LEAKY_RELU = _with_slope("LeakyReLU", _leaky_relu, "alpha", 0.01)
ELU = _with_slope("Elu", _elu, "alpha", 1.0)


def _add_n_type(types: Types, attrs: Attrs) -> Types:
    if len({type_.shape for type_ in types}) > 1:
        raise TypeRuleError("operands must have one shape")
    expect_dtype(number, *types)
    return broadcasting(number)(types, attrs)


def _add_n(*arrays: Array, attrs: Attrs) -> Array:
    """The sum of all operands, left to right."""
    return rounded(lambda *parts: sum(parts[1:], start=parts[0]))(*arrays)


ADD_N = declare("AddN", Kind.ELEMWISE, None, _add_n_type, _add_n, composite=True, onnx="Sum")
