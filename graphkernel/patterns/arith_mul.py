"""Products, quotients and absolute values."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from graphkernel.patterns.language import Const, Rewrite, Safety, Term, rewrite, rule
from graphkernel.patterns.match import Match
from graphkernel.patterns.terms import reciprocal
from kernelgen.tensor.types import Category


def _has_exact_reciprocal(found: Match) -> bool:
    fraction, _ = np.frexp(found.array("c").astype(np.float64))
    return bool((np.abs(fraction) == 0.5).all()) and _has_normal_reciprocal(found)


def _has_normal_reciprocal(found: Match) -> bool:
    return _is_normal(found.array("c"), found.array("c").dtype)


def _has_normal_product(found: Match) -> bool:
    a, b = found.array("a"), found.array("b")
    return a.dtype.kind in "iu" or _is_normal(a.astype(np.float64) * b.astype(np.float64), a.dtype)


def _is_signed(found: Match) -> bool:
    return found.type("x").dtype.category is not Category.UINT


def _is_normal(array: np.ndarray, of: np.dtype) -> bool:
    """True when neither an element nor its reciprocal is zero, subnormal or infinite in a float data type."""
    magnitude = np.abs(array.astype(np.float64))
    smallest = float(ml_dtypes.finfo(of).smallest_normal)
    return bool(((magnitude >= smallest) & (magnitude <= 1 / smallest)).all())


@rule(safety=Safety.EXACT)
def mul_one(x: Term) -> Rewrite:
    return rewrite(x * 1, x)


@rule(safety=Safety.EXACT)
def div_one(x: Term) -> Rewrite:
    return rewrite(x / 1, x)


@rule(safety=Safety.EXACT)
def one_over(x: Term) -> Rewrite:
    return rewrite(1 / x, reciprocal(x))


@rule(safety=Safety.EXACT)
def mul_negated_by_constant(x: Term, c: Const) -> Rewrite:
    return rewrite(-x * c, x * -c)


@rule(safety=Safety.EXACT)
def mul_both_negated(x: Term, y: Term) -> Rewrite:
    return rewrite(-x * -y, x * y)


@rule(safety=Safety.EXACT)
def div_negated_by_constant(x: Term, c: Const) -> Rewrite:
    return rewrite(-x / c, x / -c)


@rule(safety=Safety.EXACT)
def abs_of_negated(x: Term) -> Rewrite:
    """Not of unsigned integers: their negation wraps around."""
    return rewrite(abs(-x), abs(x), when=_is_signed)


@rule(safety=Safety.EXACT)
def abs_of_abs(x: Term) -> Rewrite:
    return rewrite(abs(abs(x)), abs(x))


@rule(safety=Safety.EXACT, integers=Safety.DOMAIN)
def mul_of_abs(x: Term, y: Term) -> Rewrite:
    """Integers need products that do not wrap around."""
    return rewrite(abs(x) * abs(y), abs(x * y))


@rule(safety=Safety.EXACT)
def div_by_power_of_two(x: Term, c: Const) -> Rewrite:
    """The reciprocal of a power of two is exact."""
    return rewrite(x / c, x * reciprocal(c), when=_has_exact_reciprocal)


@rule(safety=Safety.ROUNDING)
def div_by_constant(x: Term, c: Const) -> Rewrite:
    return rewrite(x / c, x * reciprocal(c), when=_has_normal_reciprocal)


@rule(safety=Safety.ROUNDING, integers=Safety.EXACT)
def mul_two_constants(x: Term, a: Const, b: Const) -> Rewrite:
    return rewrite((x * a) * b, x * (a * b), when=_has_normal_product)


@rule(safety=Safety.EXACT)
def mul_by_reciprocal(x: Term, y: Term) -> Rewrite:
    return rewrite(x * reciprocal(y), x / y)


@rule(safety=Safety.DOMAIN)
def div_of_quotient(x: Term, y: Term, z: Term) -> Rewrite:
    """Needs a product that does not overflow."""
    return rewrite((x / y) / z, x / (y * z))


@rule(safety=Safety.DOMAIN)
def div_by_quotient(x: Term, y: Term, z: Term) -> Rewrite:
    """Needs a product that does not overflow."""
    return rewrite(x / (y / z), (x * z) / y)


@rule(safety=Safety.DOMAIN)
def quotient_of_quotients(w: Term, x: Term, y: Term, z: Term) -> Rewrite:
    """Needs products that do not overflow."""
    return rewrite((w / x) / (y / z), (w * z) / (x * y))


@rule(safety=Safety.DOMAIN, integers=Safety.EXACT)
def mul_constants_apart(x: Term, y: Term, a: Const, b: Const) -> Rewrite:
    """Needs a product that does not overflow."""
    return rewrite((x * a) * (y * b), (x * y) * (a * b), when=_has_normal_product)


@rule(safety=Safety.DOMAIN)
def mul_of_abs_within(x: Term, y: Term, z: Term) -> Rewrite:
    """Needs a product that does not overflow."""
    return rewrite((abs(x) * z) * abs(y), abs(x * y) * z)


@rule(safety=Safety.DOMAIN)
def mul_of_abs_within_both(w: Term, x: Term, y: Term, z: Term) -> Rewrite:
    """Needs a product that does not overflow."""
    return rewrite((abs(x) * w) * (abs(y) * z), abs(x * y) * (w * z))
