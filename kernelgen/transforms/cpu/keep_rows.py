"""Keeps what several loops over a row would each compute again from several arrays, in an array of one row.

                                                           alloc t[N]
    vector j: s += x[i, j] + r[i, j]                       vector j: v = x[i, j] + r[i, j]; t[j] = v; s += v
    vector j: q += f(x[i, j] + r[i, j], s)                 vector j: q += f(t[j], s)
    vector j: y[i, j] = g(x[i, j] + r[i, j], q)      ->    vector j: y[i, j] = g(t[j], q)

Before loops are known a value is stored where its arithmetic takes longer than a store and a load
(:mod:`kernelgen.poly.grouping.merge_groups`). These loops are bound by what they read: arguments begin anywhere, so that most
of their vectors lie across two lines of a cache, and several rows fill the first cache where one does not. So a value is kept
where that saves more loads than it takes stores and loads. Values are numbered: one of a loop is one of another where both are
the same function of the same elements.

Legality: the loops stand in one block and have the same iterations, and bind ``S1[j]`` and ``S2[j]`` to one function of
elements ``{ S[j] -> x[f(j)] }`` of inputs, which nothing writes. Every ``S1[j]`` is before every ``S2[k]``, and ``t`` belongs
to this run of the block, so that ``S2[j]`` loads what ``S1[j]`` stored. Results stay the same to the last bit, but where a
processor would have fused a product that is kept with the sum behind it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.bindings import names_in, names_read, needed
from kernelgen.nest.walk import map_blocks, map_expression, without_body
from kernelgen.system.named_tuples import NamedTuple
from kernelgen.tensor.dtypes import DType
from kernelgen.transforms.common.array_contraction import LOCAL_BYTES
from kernelgen.transforms.cpu.jam_stencils import normal


def keep_rows(nest: n.Nest) -> n.Nest:
    """The nest with such arrays in the blocks that hold such loops."""
    return replace(nest, body=map_blocks(nest.body, _block))


def _block(block: n.Block) -> n.Block:
    loops: dict[n.For, list[n.For]] = {}
    for part in block.statements:
        if _is_row(part):
            loops.setdefault(without_body(part), []).append(part)
    rows = [_numbered(each) for each in loops.values() if len(each) > 1]
    arrays = {name: buffer for row in rows for name, buffer in row.arrays().items()}
    if not arrays:
        return block
    again = {name: arrays[first] for row in rows for name, first in row.again.items() if first in arrays}
    parts = (_keeping(part, arrays, again) if _is_row(part) else part for part in block.statements)
    return n.Block((*map(n.Alloc, arrays.values()), *parts))


def _is_row(part: n.Statement) -> TypeGuard[n.For]:
    """Whether it is a vector loop that only binds, stores and accumulates."""
    if not isinstance(part, n.For) or part.kind is not n.LoopKind.VECTOR:
        return False
    return all(isinstance(each, n.Let | n.Store | n.Accumulate) for each in part.body.statements)


class _Value(NamedTuple):
    """What is bound: a number of this type, computed from these elements along the row."""

    dtype: DType
    reads: frozenset[n.Expr]


@dataclass
class _Row:
    """The loops over one row, of which ``loop`` is the first: the values that they bind, each by its first binding.

    ``again`` says of bindings which value of an earlier loop they are; ``wanted`` counts for each such value the loops in which
    more than such bindings need it.
    """

    loop: n.For
    numbers: dict[n.Expr, str] = field(default_factory=dict[n.Expr, str])
    values: dict[str, _Value] = field(default_factory=dict[str, _Value])
    again: dict[str, str] = field(default_factory=dict[str, str])
    wanted: Counter[str] = field(default_factory=Counter[str])

    def enter(self, loop: n.For) -> None:
        """Takes the next loop."""
        earlier, here, wanted = frozenset(self.values), dict[str, n.Expr](), set[str]()
        for part in loop.body.statements:
            first = self.first(part, here) if isinstance(part, n.Let) else None
            if isinstance(part, n.Let) and first in earlier:
                self.again[part.name] = first
            else:
                wanted.update(self.again[name] for name in names_read(part) if name in self.again)
        self.wanted.update(wanted)

    def first(self, part: n.Let, here: dict[str, n.Expr]) -> str:
        """The first binding of what is bound, which those behind in the loop have ``here``; its own where the nest writes what
        it loads.
        """
        value = normal(map_expression(part.value, lambda x: here.get(x.name, x) if isinstance(x, n.Ref) else x))
        if any(load.buffer.space is not n.Space.INPUT for load in value.loads):
            return part.name
        name = value.name if isinstance(value, n.Ref) else self.numbers.setdefault(value, part.name)
        along = frozenset(load for load in value.loads if self.loop.var in ix.variables_in(load))
        parts = (self.values[each].reads for each in names_in(value) if each in self.values)
        self.values.setdefault(name, _Value(value.dtype, along.union(*parts)))
        here[part.name] = n.Ref(name, value.dtype)
        return name

    def arrays(self) -> dict[str, n.Buffer]:
        """The arrays that are worth it, by the first binding of what they hold."""
        length = ix.subtract(self.loop.upper, self.loop.lower)
        found: dict[str, n.Buffer] = {}
        if not isinstance(length, n.Num):
            return found
        for name, loops in self.wanted.items():
            dtype, reads = self.values[name]
            fits = length.value * dtype.itemsize <= LOCAL_BYTES
            if fits and len(reads) * loops > 1 + loops:
                found[name] = n.Buffer(f"{name}_row", dtype, (length.value,), n.Space.LOCAL)
        return found


def _numbered(loops: Sequence[n.For]) -> _Row:
    """What is known of these loops over one row."""
    row = _Row(loops[0])
    for loop in loops:
        row.enter(loop)
    return row


def _keeping(loop: n.For, arrays: Mapping[str, n.Buffer], again: Mapping[str, n.Buffer]) -> n.For:
    """The loop that stores what it is the first to bind into ``arrays``, and loads what is bound ``again``."""
    place = (ix.subtract(n.Var(loop.var), loop.lower),)
    parts: list[n.Statement] = []
    for part in loop.body.statements:
        name = part.name if isinstance(part, n.Let) else ""
        parts.append(n.Let(name, n.Load(again[name], place)) if name in again else part)
        if name in arrays:
            parts.append(n.Store(arrays[name], place, n.Ref(name, arrays[name].dtype)))
    return replace(loop, body=n.Block(tuple(needed(parts))))
