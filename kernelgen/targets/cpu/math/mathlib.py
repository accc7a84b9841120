"""Which code computes a transcendental function: our vector code for float, the C library's for the rest."""

from __future__ import annotations

from collections.abc import Callable

from kernelgen.targets.cpu.math import exponentials, logarithms, trigonometry
from kernelgen.targets.cpu.text.values import Value

LIBRARY = frozenset((
    "pow", "atan2", "exp", "expm1", "log", "log1p", "tanh", "erf", "erfc", "sin", "cos", "tan", "sinh", "cosh", "asin",
    "acos", "atan", "asinh", "acosh", "atanh", "fmod",
))  # fmt: skip
"""Functions of the C library, by its names."""

_INLINE: dict[str, Callable[..., Value]] = {
    "exp": exponentials.exp,
    "expm1": exponentials.expm1,
    "tanh": exponentials.tanh,
    "erf": exponentials.erf,
    "erfc": exponentials.erfc,
    "sinh": exponentials.sinh,
    "cosh": exponentials.cosh,
    "log": logarithms.log,
    "log1p": logarithms.log1p,
}
_INLINE_WITH_FMA: dict[str, Callable[..., Value]] = {
    "pow": logarithms.power,
    "sin": trigonometry.sin,
    "cos": trigonometry.cos,
    "tan": trigonometry.tan,
}
"""These reduce their argument in double and are only exact enough with fused multiply-add."""


def call(function: str, *operands: Value) -> Value:
    """A transcendental function of floats or doubles."""
    if operands[0].kind == "float":
        if function in _INLINE:
            return _INLINE[function](*operands)
        if function in _INLINE_WITH_FMA and operands[0].function.module.host.has_fma:
            return _inline_with_fma(function, operands)
    return library(function, *operands)


def library(function: str, *operands: Value) -> Value:
    """The C library's function in double precision, lane by lane, rounded to the operands' kind."""
    assert function in LIBRARY, function
    kind = operands[0].kind
    wide = [operand.convert("fpext", "double") for operand in operands]
    result = wide[0].each_lane(function, *wide[1:])
    return result.narrowed() if kind == "float" else result


def _inline_with_fma(function: str, operands: tuple[Value, ...]) -> Value:
    result = _INLINE_WITH_FMA[function](*operands)
    if function == "pow":
        return result
    (x,) = operands
    is_huge = x.intrinsic("fabs").compare("ogt", trigonometry.LARGEST)
    return _unless(is_huge, result, lambda: library(function, x))


def _unless(mask: Value, usual: Value, rare: Callable[[], Value]) -> Value:
    """``usual``, but ``rare`` in the lanes of the mask; its code only runs when there are such lanes."""
    function = usual.function
    inside, after = function.label("rare"), function.label("usual")
    before = function.block
    function.branch(_any(mask).text, inside, after)
    function.begin(inside)
    replaced = mask.select(rare(), usual)
    last = function.block
    function.jump(after)
    function.begin(after)
    merged = f"phi {usual.type} [ {usual.text}, %{before} ], [ {replaced.text}, %{last} ]"
    return Value(function, function.assign(merged), usual.kind, usual.lanes)


def _any(mask: Value) -> Value:
    if mask.lanes == 1:
        return mask
    name = mask.function.module.declare(f"llvm.vector.reduce.or.v{mask.lanes}i1", "i1", mask.type)
    return Value(mask.function, mask.function.assign(f"call i1 {name}({mask.typed})"), "i1")
