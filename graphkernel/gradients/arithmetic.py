"""Gradients of short formulas with numbers among their attributes: sums, multiples, clamps, divisions that round."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.gradients.base import Application, Cotangents, broadcast, gradient, pointwise
from graphkernel.ops.composite import arithmetic


@gradient(arithmetic.ADD_EXT)
def add_ext(of: Application) -> Cotangents:
    """dy, alpha * dy"""
    return broadcast(of, lambda: of.dy, lambda: of.dy * of.attrs.float("alpha", 1))


@gradient(arithmetic.SUB_EXT)
def sub_ext(of: Application) -> Cotangents:
    """dy, -alpha * dy"""
    return broadcast(of, lambda: of.dy, lambda: of.dy * -of.attrs.float("alpha", 1))


@gradient(arithmetic.MULS)
def muls(of: Application) -> Cotangents:
    """dy * other"""
    return [of.dy * of.attrs.float("other")]


FUSED_MUL_ADD = pointwise(
    arithmetic.FUSED_MUL_ADD, lambda dy, r, x, y, z: dy * y, lambda dy, r, x, y, z: dy * x, lambda dy, r, x, y, z: dy
)
ADDCMUL = pointwise(
    arithmetic.ADDCMUL,
    lambda dy, r, x, first, second, value: dy,
    lambda dy, r, x, first, second, value: dy * value * second,
    lambda dy, r, x, first, second, value: dy * value * first,
    lambda dy, r, x, first, second, value: dy * (first * second),
)


@gradient(arithmetic.CLAMP_SCALAR)
def clamp_scalar(of: Application) -> Cotangents:
    """dy where min <= x <= max, else 0"""
    (x,), dy = of.operands, of.dy
    if "min" in of.attrs:
        dy = ops.select(x >= of.attrs.float("min"), dy, 0)
    return [ops.select(x <= of.attrs.float("max"), dy, 0) if "max" in of.attrs else dy]


@gradient(arithmetic.DIV_MOD)
def div_mod(of: Application) -> Cotangents:
    """That of RealDiv; zero where the quotient is rounded"""
    if of.attrs.str("rounding_mode", "none") != "none":
        return [None, None]
    _, y = of.operands
    return broadcast(of, lambda: of.dy / y, lambda: -of.dy * of.results[0] / y)
