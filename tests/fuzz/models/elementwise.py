"""Recipes of operators that work element by element."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import helper

from tests.fuzz.models.contents import DATA_TYPES, FLOATS, is_float, numpy_dtype
from tests.fuzz.models.draft import Draft, Proposal, Rejected

Make = Callable[[Draft], Proposal]
Range = tuple[float | None, float | None]
ANY: Range = (None, None)

UNARY: Mapping[str, Range] = {
    "Abs": ANY, "Neg": ANY, "Sign": ANY, "Floor": ANY, "Ceil": ANY, "Round": ANY, "Sqrt": (0, None), "Erf": ANY,
    "Reciprocal": (0.05, None), "Exp": (-20, 6), "Log": (0.01, None), "Sin": (-100, 100), "Cos": (-100, 100),
    "Tan": (-1.4, 1.4), "Sinh": (-7, 7), "Cosh": (-7, 7), "Asin": (-1, 1), "Acos": (-1, 1), "Atan": ANY, "Asinh": ANY,
    "Acosh": (1, None), "Atanh": (-0.95, 0.95), "Relu": ANY, "Sigmoid": ANY, "Tanh": ANY, "Softplus": (-20, 20),
    "Softsign": ANY, "HardSwish": ANY, "Mish": (-20, 20), "Identity": ANY, "IsNaN": ANY, "Not": ANY, "BitwiseNot": ANY,
}  # fmt: skip
"""Operators of one operand, and where they are defined and well behaved."""

NUMBERS: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "Elu": {"alpha": (0.1, 2.0)}, "Selu": {"alpha": (1.0, 2.0), "gamma": (1.0, 1.5)}, "Celu": {"alpha": (0.2, 2.0)},
    "LeakyRelu": {"alpha": (-0.5, 0.9)}, "ThresholdedRelu": {"alpha": (-1.0, 1.0)},
    "HardSigmoid": {"alpha": (0.1, 0.5), "beta": (0.2, 0.8)}, "Shrink": {"bias": (-0.5, 0.5), "lambd": (0.1, 1.0)},
    "Swish": {"alpha": (0.5, 2.0)},
}  # fmt: skip
"""Operators of one operand with numbers as attributes, each left out half of the time."""

BINARY = ("Add", "Sub", "Mul", "And", "Or", "Xor", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual",
          "BitwiseAnd", "BitwiseOr", "BitwiseXor", "PRelu")  # fmt: skip
VARIADIC = ("Sum", "Mean", "Max", "Min")


def _unary(limits: Range) -> Make:
    def make(d: Draft) -> Proposal:
        return Proposal([d.operand(low=limits[0], high=limits[1])])

    return make


def _with_numbers(numbers: Mapping[str, tuple[float, float]]) -> Make:
    def make(d: Draft) -> Proposal:
        given = {name: d.random.uniform(*limits) for name, limits in numbers.items() if d.chance(0.5)}
        return Proposal([d.operand(low=-20, high=20)], given)

    return make


def _binary(d: Draft) -> Proposal:
    x = d.operand()
    y = d.partner(x)
    turned = d.op != "PRelu" and d.chance(0.5)
    return Proposal([y, x] if turned else [x, y])


def _variadic(d: Draft) -> Proposal:
    x = d.operand()
    return Proposal([x, *(d.partner(x) for _ in range(d.random.choice((0, 1, 1, 2, 3))))])


def divide(d: Draft) -> Proposal:
    """The divisor is away from 0 unless special values are wanted; then integers are divided by anything but 0."""
    x = d.operand()
    return Proposal([x, d.partner(x, low=1 if not is_float(x.dtype) else 0.1)])


def mod(d: Draft) -> Proposal:
    """``fmod`` is asked for by floats."""
    x = d.operand()
    y = d.partner(x, low=1 if not is_float(x.dtype) else 0.5)
    fmod = 1 if is_float(x.dtype) or d.chance(0.3) else 0
    return Proposal([x, y], {"fmod": fmod} if fmod or d.chance(0.3) else {})


def power(d: Draft) -> Proposal:
    """Base and exponent may have types of their own from opset 12 on."""
    x = d.operand(low=0.1, high=30)
    if d.opset < 12 or d.chance(0.6):
        return Proposal([x, d.fresh(x.dtype, x.dims if d.chance(0.5) else (), 0, 3)])
    exponent = d.data_type(d.allowed(1))
    return Proposal([x, d.fresh(exponent, x.dims if d.chance(0.5) else (), 0 if not is_float(x.dtype) else -2, 3)])


def shift(d: Draft) -> Proposal:
    """By less than the width."""
    x = d.operand()
    return Proposal([x, d.fresh(x.dtype, x.dims, 0, 7)], {"direction": d.random.choice(("LEFT", "RIGHT"))})


def where(d: Draft) -> Proposal:
    """Three operands that broadcast."""
    x = d.operand(1)
    condition = d.operand(0, where=lambda c: c.dims in (x.dims, ())) if d.chance(0.4) else d.fresh("bool", x.dims)
    return Proposal([condition, x, d.partner(x, 2)])


def clip(d: Draft) -> Proposal:
    """Bounds are attributes before opset 11, and either may be absent."""
    x = d.operand()
    low, high = -1.0, d.random.choice((0.5, 1.0, 2.0))
    wanted = d.random.choice(((True, True), (True, False), (False, True), (False, False)))
    if d.takes("min"):
        return Proposal([x], {"min": low if wanted[0] else None, "max": high if wanted[1] else None})
    info = None if is_float(x.dtype) else np.iinfo(x.dtype)
    least = low if info is None else max(low, info.min)
    bounds = [
        d.fresh(x.dtype, (), value, value) if there else None
        for there, value in zip(wanted, (least, max(high, 1.0)), strict=True)
    ]
    return Proposal([x, *bounds])


def cast(d: Draft) -> Proposal:
    """Between all data types; negative numbers and fractions do not go to what cannot hold them."""
    to = d.data_type(DATA_TYPES)
    low, high = (None, None) if is_float(to) or to.kind == "b" else (max(np.iinfo(to).min, -100), 100)
    x = d.operand(low=low, high=high)
    return Proposal([x], {"to": int(helper.np_dtype_to_tensor_dtype(to))})


def cast_like(d: Draft) -> Proposal:
    """To the type of another value."""
    other = d.operand(1)
    low, high = (None, None) if is_float(other.dtype) or other.dtype.kind == "b" else (0, 100)
    return Proposal([d.operand(low=low, high=high), other])


def bit_cast(d: Draft) -> Proposal:
    """Between data types of one width."""
    x = d.operand()
    names = [name for name in DATA_TYPES if name != "bool" and numpy_dtype(name).itemsize == x.dtype.itemsize]
    to = numpy_dtype(d.random.choice(names or ["int32"]))
    if is_float(to) and not d.special:
        raise Rejected("any bits may be NaN")
    return Proposal([x], {"to": int(helper.np_dtype_to_tensor_dtype(to))})


def is_infinite(d: Draft) -> Proposal:
    """Both signs, or one."""
    given: dict[str, Any] = {"detect_negative": 0} if d.chance(0.2) else {"detect_positive": 0} if d.chance(0.2) else {}
    return Proposal([d.operand()], given)


def gelu(d: Draft) -> Proposal:
    """By erf or tanh."""
    return Proposal([d.operand()], {"approximate": d.random.choice((None, "none", "tanh"))})


def dropout(d: Draft) -> Proposal:
    """In inference; the mask is asked for now and then."""
    x = d.operand()
    results = 2 if d.chance(0.2) else 1
    if d.takes("ratio"):
        return Proposal([x], {"ratio": 0.3}, results)
    return Proposal([x, d.constant(np.array(0.3, np.float32), np.float32) if d.chance(0.5) else None], {}, results)


def swiglu(d: Draft) -> Proposal:
    """Gate and value in one operand, or in two."""
    x = d.operand(only=FLOATS, rank=(1, 4), low=-20, high=20)
    return Proposal([x, d.fresh(x.dtype, x.dims)] if len(d.schema.inputs) > 1 else [x])


RECIPES: Mapping[str, Make] = {
    **{name: _unary(limits) for name, limits in UNARY.items()},
    **{name: _with_numbers(numbers) for name, numbers in NUMBERS.items()},
    **dict.fromkeys(BINARY, _binary), **dict.fromkeys(VARIADIC, _variadic),
    "Div": divide, "Mod": mod, "Pow": power, "BitShift": shift, "Where": where, "Clip": clip, "Cast": cast,
    "CastLike": cast_like, "BitCast": bit_cast, "IsInf": is_infinite, "Gelu": gelu, "Dropout": dropout, "SwiGLU": swiglu,
}  # fmt: skip
