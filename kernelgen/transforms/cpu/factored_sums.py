"""Multiplies the sum of a group of terms by what all of them are multiplied by, and adds up alone what columns share.

    for k in 0..32:                                            total[0..128] = 0; common = 0
      vector j in 0..128:                                      for k in 0..32:
        held[j] += (a[k] * cast(q[k, j]) + b[k]) * s[j]   ->     common += b[k]; let factor = a[k]
                                                                 vector j: total[j] += factor * cast(q[k, j])
                                                               vector j: held[j] += (total[j] + common) * s[j]

Such a term takes a conversion and one multiplication, in the order in which the weights lie: a processor asks for what lies
behind on its own. Rows that are jammed, of which a scale multiplies several, read as many lines side by side.

Legality. A sum times a number is the sum of its terms times that, as real numbers, and a reduction may take its terms in any
order. The terms are products with integers, as :mod:`kernelgen.transforms.common.common_scales` asks: elsewhere a scale may be
what keeps a sum of large numbers finite. The local is read nowhere inside, and what the terms read is not written there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import count

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.substitute import written_out
from kernelgen.nest.walk import loads_of, map_blocks
from kernelgen.transforms.common.common_scales import factors_of, is_of_integers, terms_of
from kernelgen.transforms.cpu.unroll_and_jam import columns_of


def factor_sums(nest: n.Nest) -> n.Nest:
    """The nest with such sums by groups."""
    counter = count()
    return replace(nest, body=map_blocks(nest.body, lambda block: _block(block, counter)))


def _block(block: n.Block, counter: Iterator[int]) -> n.Block:
    parts: list[n.Statement] = []
    for part in block.statements:
        found = _sum_of(part) if isinstance(part, n.For) else None
        parts += [part] if found is None else found.by_groups(next(counter))
    return n.Block(tuple(parts))


@dataclass(frozen=True)
class _Sum:
    """What a ``loop`` adds to a local in its ``vector`` loop: the ``terms``, times all the ``scales``.

    ``shared`` are terms that are the same for all columns, times a number for each of them where there is one.
    """

    loop: n.For
    vector: n.For
    target: n.Accumulate
    terms: tuple[n.Expr, ...]
    shared: tuple[tuple[n.Expr, n.Expr | None], ...]
    scales: tuple[n.Expr, ...]

    def by_groups(self, number: int) -> list[n.Statement]:
        """The statements for it, whose locals are the so-manieth ones."""
        local = self.target.buffer
        total = replace(local, name=f"total{number}")
        common = [replace(local, name=f"common{number}_{at}", shape=()) for at in range(len(self.shared))]
        whole = n.Load(total, self.target.index)
        zero = n.Literal(0.0, local.dtype)
        starts = [n.Alloc(total), self._of_columns(n.Store(total, self.target.index, zero))]
        starts += [each for one in common for each in (n.Alloc(one), n.Store(one, (), zero))]
        sums = [n.Accumulate(one, (), "add", value) for one, (value, _) in zip(common, self.shared, strict=True)]
        bindings, terms = self._bound(number)
        inner = self._of_columns(replace(self.target, buffer=total, value=_folded("add", terms)))
        for one, (_, factor) in zip(common, self.shared, strict=True):
            each = n.Load(one, ())
            whole = _both("add", whole, each if factor is None else _both("mul", each, factor))
        end = self._of_columns(replace(self.target, value=_folded("mul", [whole, *self.scales])))
        return [*starts, replace(self.loop, body=n.Block((*sums, *bindings, inner))), end]

    def _bound(self, number: int) -> tuple[list[n.Let], list[n.Expr]]:
        """What is the same for all columns in each term, bound in front of them, and the terms with it."""
        bindings, terms = list[n.Let](), list[n.Expr]()
        for at, term in enumerate(self.terms):
            factors = factors_of(term)
            fixed = [factor for factor in factors if not _moves(factor, self.vector)]
            if fixed:
                bindings.append(n.Let(f"factor{number}_{at}", _folded("mul", fixed)))
                factors = [n.Ref(bindings[-1].name, term.dtype), *(each for each in factors if each not in fixed)]
            terms.append(_folded("mul", factors))
        return bindings, terms

    def _of_columns(self, part: n.Statement) -> n.For:
        return replace(self.vector, body=n.Block((part,)))


def _sum_of(loop: n.For) -> _Sum | None:
    """The sum that a loop is; None for others, and where nothing multiplies all terms of products with integers."""
    vector = columns_of(loop)
    target = None if vector is None else _target(vector)
    if vector is None or target is None:
        return None
    bound = {part.name: part.value for part in vector.body.statements if isinstance(part, n.Let)}
    factors = factors_of(written_out(target.value, bound))
    scales = [factor for factor in factors if not _moves(factor, loop)]
    others = [factor for factor in factors if factor not in scales]
    if not scales or not any(is_of_integers(factor, {}) for factor in others):
        return None
    terms = terms_of(_folded("mul", others))
    kept = tuple(term for term in terms if _shared(term, loop, vector) is None)
    shared = tuple(each for term in terms if (each := _shared(term, loop, vector)) is not None)
    return _Sum(loop, vector, target, kept, shared, tuple(scales)) if kept else None


def _target(vector: n.For) -> n.Accumulate | None:
    """The one addition of a vector loop, to elements of a local along its columns; None for other loops."""
    *bindings, last = vector.body.statements
    if not isinstance(last, n.Accumulate) or last.function != "add" or last.buffer.space is not n.Space.LOCAL:
        return None
    is_plain = last.index == (n.Var(vector.var),) and all(isinstance(part, n.Let) for part in bindings)
    is_read = any(load.buffer == last.buffer for part in vector.body.statements for load in loads_of(part))
    return last if is_plain and not is_read and last.buffer.dtype.is_float else None


def _shared(term: n.Expr, loop: n.For, vector: n.For) -> tuple[n.Expr, n.Expr | None] | None:
    """What is the same for all columns of a term, and what is the same for all turns; None where it is no such product."""
    factors = factors_of(term)
    turning = [factor for factor in factors if _moves(factor, loop)]
    others = [factor for factor in factors if not _moves(factor, loop)]
    if not turning or any(_moves(factor, vector) for factor in turning):
        return None
    along = [factor for factor in others if _moves(factor, vector)]
    alone = _folded("mul", [*turning, *(factor for factor in others if factor not in along)])
    return alone, _folded("mul", along) if along else None


def _moves(value: n.Expr, loop: n.For) -> bool:
    return loop.var in ix.variables_in(value)


def _folded(function: str, parts: Sequence[n.Expr]) -> n.Expr:
    return reduce(lambda total, part: _both(function, total, part), parts)


def _both(function: str, left: n.Expr, right: n.Expr) -> n.Expr:
    return n.Call(function, (left, right), left.dtype)
