"""Sums whose places data decide, by results instead of by terms: each result looks at all terms and takes its own.

    S[i, c]: out[clamp(ids[i]), c] += f(i, c)     ->     S[s, i, c]: out[s, c] += ids[i] == s ? f(i, c) : 0

Results are then independent, where terms are not: two of them may go to one place, so that all of a column would be added
up one after the other. The order in which a result takes its terms is not left to chance, as it is with atomic additions.

Legality: a number out of range is no ``s``, and adds nothing before either, which the value's own guard says; all others are
one ``s``. Adding the neutral element changes nothing. It pays where the results are few: a term takes a thread a
microsecond where the next one has to wait for its store, and a share of a nanosecond of the device to look at.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from kernelgen.nest import index as ix
from kernelgen.nest.neutral import neutral_element
from kernelgen.nest.nodes import Accumulate, Call, Expr, IndexValue, Let, ValueIndex, Var
from kernelgen.poly.model.scop import Iterator, Scop, Statement
from kernelgen.tensor.dtypes import BOOL, INT64

MOST_RESULTS = 1 << 18
"""More results than this look at too many terms of others."""

ENOUGH = 1 << 14
"""Independent results of one place that keep a device busy as they are."""


def take_own_terms(scop: Scop) -> Scop:
    """The scop with such sums by results where that pays; the same object when nowhere. Expects grouped statements."""
    statements = tuple(map(_by_results, scop.statements))
    return scop if statements == scop.statements else replace(scop, statements=statements)


def _by_results(statement: Statement) -> Statement:
    *bindings, last = statement.body
    if statement.ordered or not isinstance(last, Accumulate) or not all(isinstance(part, Let) for part in bindings):
        return statement
    found = _place_by_data(last)
    if found is None:
        return statement
    dim, number = found
    extent, name = last.buffer.shape[dim], f"{statement.name}_own"
    kept = [it.extent for it in statement.iterators if Var(it.name) in last.index]
    sizes = [each for each in (extent, *kept) if isinstance(each, int)]
    if len(sizes) < 1 + len(kept) or prod(sizes) > MOST_RESULTS or prod(sizes[1:]) > ENOUGH:
        return statement
    own = Call("equal", (_wide(number), IndexValue(Var(name), INT64)), BOOL)
    value = Call("select", (own, last.value, neutral_element(last.function, last.value.dtype)), last.value.dtype)
    place = tuple(Var(name) if k == dim else i for k, i in enumerate(last.index))
    body = (*bindings, replace(last, index=place, value=value))
    return replace(statement, iterators=(Iterator(name, extent), *statement.iterators), body=body)


def _place_by_data(part: Accumulate) -> tuple[int, Expr] | None:
    """The only dim that data decides and the number that does, clamped into the buffer; iterators address the others."""
    by_data = [k for k, i in enumerate(part.index) if ix.is_by_data(i)]
    if len(by_data) != 1 or not all(isinstance(i, Var) for k, i in enumerate(part.index) if k not in by_data):
        return None
    (dim,) = by_data
    number = ix.values(part.index[dim])[0]
    is_clamped = part.index[dim] == ix.clamp(ValueIndex(number), part.buffer.shape[dim])
    return (dim, number) if is_clamped else None


def _wide(number: Expr) -> Expr:
    return number if number.dtype == INT64 else Call("cast", (number,), INT64)
