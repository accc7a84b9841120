"""Numbers by which all terms of a sum multiply integers: they may multiply the sum instead.

    x0 * (cast(q0) * s), x1 * (cast(q1) * s)   ->   x0 * cast(q0), x1 * cast(q1) and the scale s

Elsewhere scales stay where they are: they may be what keeps a sum of large numbers finite.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelgen.nest.nodes import Block, Call, Expr, Let, Ref
from kernelgen.nest.substitute import written_out


def common_scales(terms: Sequence[Expr], block: Block) -> tuple[list[Expr], list[Expr]]:
    """The terms without such scales, and these; the terms as they are where there are none. ``block`` binds what they name."""
    bound = {part.name: part.value for part in block.statements if isinstance(part, Let)}
    factors = [factors_of(term) for term in terms]
    if not all(any(is_of_integers(factor, bound) for factor in each) for each in factors):
        return list(terms), []
    known = [[written_out(factor, bound) for factor in each] for each in factors]
    scales = [own for own, value in zip(factors[0], known[0], strict=True) if all(value in each for each in known)]
    if not scales or any(len(each) <= len(scales) for each in factors):
        return list(terms), []
    values = [written_out(scale, bound) for scale in scales]
    return [_without(*pair, values) for pair in zip(factors, known, strict=True)], scales


def factors_of(value: Expr) -> list[Expr]:
    """Of a product of floating-point numbers, in order."""
    if isinstance(value, Call) and value.function == "mul" and value.dtype.is_float:
        return [factor for arg in value.args for factor in factors_of(arg)]
    return [value]


def terms_of(value: Expr) -> list[Expr]:
    """Of a sum in floating-point numbers, in order."""
    if not isinstance(value, Call) or value.function != "add" or not value.dtype.is_float:
        return [value]
    return [term for arg in value.args for term in terms_of(arg)]


def is_of_integers(factor: Expr, bound: dict[str, Expr]) -> bool:
    """Whether it is an integer as a number, perhaps less another one, or a sum with products of such."""
    if isinstance(factor, Call) and factor.function == "add":
        return any(is_of_integers(each, bound) for arg in factor.args for each in factors_of(arg))
    if isinstance(factor, Call) and factor.function == "sub":
        return is_of_integers(factor.args[0], bound)
    if isinstance(factor, Call) and factor.function == "cast":
        return factor.args[0].dtype.is_integer
    return isinstance(factor, Ref) and factor.name in bound and is_of_integers(bound[factor.name], {})


def _without(factors: Sequence[Expr], known: Sequence[Expr], scales: Sequence[Expr]) -> Expr:
    left = [factor for factor, value in zip(factors, known, strict=True) if value not in scales]
    total = left[0]
    for factor in left[1:]:
        total = Call("mul", (total, factor), total.dtype)
    return total
