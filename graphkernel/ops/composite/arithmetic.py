"""Short formulas that MindSpore has operators for: fused multiply and add, clamping, divisions that round, xor."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import numpy as np

from graphkernel.errors import TypeRuleError
from kernelgen.tensor.operator import REQUIRED, Kind, Operator
from kernelgen.tensor.operators.attributes import element, text
from kernelgen.tensor.operators.elemwise import truncated_quotient
from kernelgen.tensor.operators.families import Array, array_of, declare, is_floating, rounded, scalar_of, unary
from kernelgen.tensor.operators.type_rules import (
    Accepts,
    any_dtype,
    boolean,
    broadcasting,
    expect_dtype,
    floating,
    number,
    real,
)
from kernelgen.tensor.types import Attrs, TensorType, dtype

Types = tuple[TensorType, ...]

IDENTITY_MATH = unary("IdentityMath", np.copy, any_dtype, composite=True, doc="The operand.", onnx="Identity")

STOP_GRADIENT = unary(
    "StopGradient",
    np.copy,
    any_dtype,
    composite=True,
    doc="The operand, which counts as constant when differentiated.",
    onnx="Identity",
)

LOGICAL_XOR = declare(
    "LogicalXor",
    Kind.ELEMWISE,
    2,
    broadcasting(boolean),
    lambda x, y, *, attrs: np.logical_xor(x, y),
    commutative=True,
    composite=True,
    doc="Whether exactly one operand holds.",
    onnx="Xor",
)


def _with_scalar(name: str, arity: int, scalar: str, default: float | None, function: Callable[..., Array]) -> Operator:
    """A formula over operands that broadcast and one number among the attributes."""

    def rule(types: Types, attrs: Attrs) -> Types:
        results = broadcasting(real)(types, attrs)
        scalar_of(attrs, scalar, types[0].dtype, default)
        return results

    @wraps(function, assigned=())
    def meaning(*arrays: Array, attrs: Attrs) -> Array:
        own = arrays[0].dtype
        number_ = scalar_of(attrs, scalar, dtype(own), default)
        factor = number_ if is_floating(arrays[0]) else own.type(number_)
        return rounded(lambda *wide: function(*wide, factor))(*arrays)

    attributes = (element(scalar, REQUIRED if default is None else default),)
    return declare(
        name, Kind.ELEMWISE, arity, rule, meaning, attributes=attributes, composite=True, doc=function.__doc__ or ""
    )


def _add_ext(x: Array, y: Array, alpha: float) -> Array:
    """x + alpha * y."""
    return x + alpha * y


def _sub_ext(x: Array, y: Array, alpha: float) -> Array:
    """x - alpha * y."""
    return x - alpha * y


def _muls(x: Array, other: float) -> Array:
    """x * other, a number."""
    return x * other


ADD_EXT = _with_scalar("AddExt", 2, "alpha", 1, _add_ext)
SUB_EXT = _with_scalar("SubExt", 2, "alpha", 1, _sub_ext)
MULS = _with_scalar("Muls", 1, "other", None, _muls)


def _formula(name: str, arity: int, accepts: Accepts, function: Callable[..., Array]) -> Operator:
    compute = rounded(function)

    @wraps(function, assigned=())
    def meaning(*arrays: Array, attrs: Attrs) -> Array:
        return compute(*arrays)

    return declare(
        name,
        Kind.ELEMWISE,
        arity,
        broadcasting(accepts),
        meaning,
        composite=True,
        doc=function.__doc__ or "",
    )


def _fused_mul_add(x: Array, y: Array, z: Array) -> Array:
    """x * y + z; the product is rounded."""
    return x * y + z


def _addcmul(x: Array, first: Array, second: Array, value: Array) -> Array:
    """x + value * (first * second); (x, first, second, value)."""
    return x + value * (first * second)


FUSED_MUL_ADD = _formula("FusedMulAdd", 3, number, _fused_mul_add)
ADDCMUL = _formula("Addcmul", 4, number, _addcmul)


def _clamp_type(types: Types, attrs: Attrs) -> Types:
    of = expect_dtype(real, *types)
    if "min" not in attrs and "max" not in attrs:
        raise TypeRuleError("needs min, max or both")
    for name in attrs:
        scalar_of(attrs, name, of)
    return types


def _clamp(x: Array, *, attrs: Attrs) -> Array:
    """Minimum(Maximum(x, min), max), where one of the two may be absent; max wins when min > max, NaN stays."""
    least, most = (scalar_of(attrs, name, dtype(x.dtype), 0) for name in ("min", "max"))
    low = np.maximum(x, np.asarray(least).astype(x.dtype)) if "min" in attrs else x
    return np.minimum(low, np.asarray(most).astype(x.dtype)) if "max" in attrs else low


CLAMP_SCALAR = declare(
    "ClampScalar",
    Kind.ELEMWISE,
    1,
    _clamp_type,
    _clamp,
    attributes=(element("min", None), element("max", None)),
    composite=True,
)


def _mode(attrs: Attrs) -> str:
    mode = attrs.str("rounding_mode", "none")
    if mode not in ("none", "floor", "trunc"):
        raise TypeRuleError(f"rounding_mode must be 'none', 'floor' or 'trunc', got {mode!r}")
    return mode


def _div_mod_type(types: Types, attrs: Attrs) -> Types:
    return broadcasting(floating if _mode(attrs) == "none" else real)(types, attrs)


def _div_mod(x: Array, y: Array, *, attrs: Attrs) -> Array:
    """x / y ('none'), its floor ('floor') or its whole part ('trunc'); the quotient of floats is rounded before."""
    if is_floating(x):
        rounding: dict[str, Callable[[Array], Array]] = {"none": array_of, "floor": np.floor, "trunc": np.trunc}
        return rounded(lambda a, b: rounding[_mode(attrs)](a / b))(x, y)
    return x // y if _mode(attrs) == "floor" else array_of(truncated_quotient(x, y))


DIV_MOD = declare(
    "DivMod", Kind.ELEMWISE, 2, _div_mod_type, _div_mod, attributes=(text("rounding_mode", None),), composite=True
)
