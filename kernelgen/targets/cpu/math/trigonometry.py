"""sin, cos and tan for float, on any number of lanes: the argument is reduced in double."""

from __future__ import annotations

from kernelgen.targets import coefficients
from kernelgen.targets.cpu.math.logarithms import WIDE_ROUNDER
from kernelgen.targets.cpu.math.polynomials import polynomial
from kernelgen.targets.cpu.text.values import Value

TWO_OVER_PI = 0.6366197723675814
HALF_PI_HIGH = 1.5707963267948966
HALF_PI_LOW = 6.123233995736766e-17
LARGEST = 1e15  # beyond, the quadrant no longer fits the reduction


def sin(x: Value) -> Value:
    """The sine for abs(x) <= :data:`LARGEST`."""
    quadrant, r = _reduced(x)
    return _by_quadrant(quadrant, r.narrowed())


def cos(x: Value) -> Value:
    """The cosine for abs(x) <= :data:`LARGEST`: the sine one quadrant further."""
    quadrant, r = _reduced(x)
    return _by_quadrant(quadrant + 1, r.narrowed())


def tan(x: Value) -> Value:
    """The tangent for abs(x) <= :data:`LARGEST`, as a quotient in double."""
    quadrant, r = _reduced(x)
    square = r * r
    sine, cosine = r * polynomial(square, coefficients.SIN_WIDE), polynomial(square, coefficients.COS_WIDE)
    is_odd = (quadrant & 1).compare("ne", 0)
    return (is_odd.select(-cosine, sine) / is_odd.select(sine, cosine)).narrowed()


def _reduced(x: Value) -> tuple[Value, Value]:
    """The quadrant (i32) and ``r`` (double) with ``x = quadrant pi/2 + r``, abs(r) <= pi/4."""
    wide = x.convert("fpext", "double")
    shifted = wide.fma(TWO_OVER_PI, WIDE_ROUNDER)
    n = shifted - WIDE_ROUNDER
    r = n.fma(-HALF_PI_LOW, n.fma(-HALF_PI_HIGH, wide))
    return shifted.bits().convert("trunc", "i32"), r


def _by_quadrant(quadrant: Value, r: Value) -> Value:
    square = r * r
    sine = (r * square).fma(polynomial(square, coefficients.SIN), r).intrinsic("copysign", r)
    cosine = (square * square).fma(polynomial(square, coefficients.COS), square.fma(-0.5, 1.0))
    result = (quadrant & 1).compare("ne", 0).select(cosine, sine)
    return (result.bits() ^ ((quadrant & 2) << 30)).as_float()
