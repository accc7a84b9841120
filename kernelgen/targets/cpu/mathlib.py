"""Transcendental functions."""

from __future__ import annotations

from kernelgen.targets.cpu.values import Value

_LIBM = {
    "pow": "pow", "atan2": "atan2", "exp": "exp", "expm1": "expm1", "log": "log", "log1p": "log1p", "tanh": "tanh",
    "erf": "erf", "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "asin": "asin",
    "acos": "acos", "atan": "atan", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "fmod": "fmod",
}  # fmt: skip


def call(function: str, *operands: Value) -> Value:
    """A transcendental function of floats or doubles."""
    return libm(function, *operands)


def libm(function: str, *operands: Value) -> Value:
    """The C library's function in double precision, lane by lane, rounded to the operands' kind."""
    kind = operands[0].kind
    wide = [operand.convert("fpext", "double") for operand in operands]
    return wide[0].each_lane(_LIBM[function], *wide[1:]).convert("fptrunc", kind)
