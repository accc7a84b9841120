"""Takes four terms at once of sums of products of bytes, one byte without a sign and one with: a word of each.

    for k in 0..K:                                      for w in 0..K / 4:
      vector j:                                           vector j:
        s[i, j] += i32(a[i, k]) * i32(b[k, j])     ->       s[i, j] += byte_dot(word(a[i, 4 w] ..), word(b[4 w, j] ..))
                                                        for k in K / 4 * 4..K: ...

Processors add four such products to an int32 in one instruction. A word is a number of four bytes, the first one the lowest;
words of constants are computed before all calls, and others lie in panels like other operands.

Legality: a reduction may take its terms in any order, sums of int32 are exact modulo 2^32 in each, and four products of bytes
fit int32. The two loops together run the same terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.substitute import renamed, written_out
from kernelgen.nest.walk import map_blocks, vector_loop_of
from kernelgen.tensor.dtypes import INT8, INT32, UINT8, UINT32, DType

BYTES = 4
"""Of a word."""

Dot = Callable[[n.Load, n.Load, n.For], n.Expr | None]
"""Makes the sum of some products, of a byte without a sign and one with, for a turn of a loop over that many terms at once;
None where it takes no such bytes."""


def byte_words(nest: n.Nest) -> n.Nest:
    """The nest with such sums by words."""
    return replace(nest, body=map_blocks(nest.body, lambda block: by_several(block, BYTES, _dot)))


def by_several(block: n.Block, several: int, dot: Dot) -> n.Block:
    """The ``block`` with its loops that add up such products, ``several`` terms at once by this ``dot``."""
    parts: list[n.Statement] = []
    for part in block.statements:
        parts += (_taken(part, several, dot) if isinstance(part, n.For) else None) or [part]
    return n.Block(tuple(parts))


def _taken(terms: n.For, several: int, dot: Dot) -> list[n.Statement] | None:
    """The loop over several terms at once, and that over those that are left; None for other loops."""
    vector = vector_loop_of(terms.body)
    length = ix.subtract(terms.upper, terms.lower)
    if vector is None or terms.kind is not n.LoopKind.SERIAL or terms.step != 1 or not isinstance(length, n.Num):
        return None
    if terms.var in ix.variables(vector.lower) | ix.variables(vector.upper):
        return None
    turns = length.value // several
    sums = tuple(_sums(terms, vector, dot)) if turns else ()
    if not sums:
        return None
    inner = replace(vector, body=n.Block(sums))
    found: list[n.Statement] = [replace(terms, lower=n.Num(0), upper=n.Num(turns), body=n.Block((inner,)))]
    if length.value % several:
        first = ix.add(terms.lower, n.Num(turns * several))
        found.append(replace(terms, lower=first, body=renamed(terms.body, "_rest")))
    return found


def _sums(terms: n.For, vector: n.For, dot: Dot) -> Iterator[n.Accumulate]:
    """The accumulations of the vector loop by several terms; none where one of them has another form."""
    bound: dict[str, n.Expr] = {}
    found: list[n.Accumulate] = []
    for part in (*terms.body.statements[:-1], *vector.body.statements):
        if isinstance(part, n.Let):
            bound[part.name] = part.value
        elif isinstance(part, n.Accumulate):
            taken = _sum(part, written_out(part.value, bound), terms, dot)
            if taken is None:
                return
            found.append(taken)
        else:
            return
    yield from found


def _sum(part: n.Accumulate, value: n.Expr, terms: n.For, dot: Dot) -> n.Accumulate | None:
    """One accumulation over several terms; None where it is no sum of such products."""
    is_fixed = all(terms.var not in ix.variables(place) for place in part.index) and not ix.is_by_data(*part.index)
    is_product = isinstance(value, n.Call) and value.function == "mul" and value.dtype == INT32
    if part.function != "add" or not is_fixed or not is_product:
        return None
    assert isinstance(value, n.Call), "it is a product"
    bytes_ = {load.dtype: load for load in map(_byte, value.args) if load is not None}
    if len(bytes_) < len(value.args):
        return None
    several = dot(bytes_[UINT8], bytes_[INT8], terms)
    return None if several is None else replace(part, value=several)


def _dot(unsigned: n.Load, signed: n.Load, terms: n.For) -> n.Expr:
    """Of words of four."""
    return n.Call("byte_dot", (word(unsigned, terms), word(signed, terms)), INT32)


def _byte(factor: n.Expr) -> n.Load | None:
    """The byte that a factor is."""
    load = factor.args[0] if isinstance(factor, n.Call) and factor.function == "cast" else None
    is_byte = isinstance(load, n.Load) and load.dtype in (INT8, UINT8) and not ix.is_by_data(*load.index)
    return load if is_byte and isinstance(load, n.Load) else None


def word(byte: n.Load, terms: n.For, places: Sequence[int] = range(BYTES)) -> n.Expr:
    """The word of a ``byte`` for four of the ``terms``, the first at the lowest of the ``places``."""
    return cast(word_of([cast(cast(at_term(byte, terms, BYTES, place), UINT8), UINT32) for place in places]), INT32)


def at_term(load: n.Load, terms: n.For, several: int, place: int) -> n.Load:
    """The ``load`` for the term at a ``place`` of the ``several`` that a turn of the ``terms`` takes."""
    term = ix.add(ix.add(terms.lower, ix.multiply(n.Var(terms.var), n.Num(several))), n.Num(place))
    return n.Load(load.buffer, tuple(ix.substitute(each, {terms.var: term}) for each in load.index))


def word_of(given: Sequence[n.Expr]) -> n.Expr:
    """Bytes that are ``given`` as uint32 as one such word, the first at the lowest place: by Horner's rule."""
    *others, total = given
    for byte in reversed(others):
        total = _both("add", _both("mul", total, n.Literal(256, UINT32)), byte)
    return total


def cast(value: n.Expr, to: DType) -> n.Expr:
    """The value as another type."""
    return value if value.dtype == to else n.Call("cast", (value,), to)


def _both(function: str, left: n.Expr, right: n.Expr) -> n.Expr:
    return n.Call(function, (left, right), UINT32)
