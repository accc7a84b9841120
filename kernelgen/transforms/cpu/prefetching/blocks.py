"""Asks for what a block of results reads beside its panel: what follows its sums, and the rows of the next block.

    for i in 0..M step 8:                                   for i in 0..M step 8:
                                                              prefetch z[i + r, 0], z[i + r, 16], ...    of each row r
      for k in 0..K:                                          for k in 0..K:
                                                    ->          prefetch x[i + 8, 0] + 8 k
        a_r = x[i + r, k]                                       a_r = x[i + r, k]
        vector j: s_r[j] += a_r * p[k, j]                       vector j: s_r[j] += a_r * p[k, j]
      vector j: y[i + r, j] = s_r[j] + z[i + r, j]            vector j: y[i + r, j] = s_r[j] + z[i + r, j]

Eight rows side by side are eight streams that begin anew with each block, before a processor follows them. What follows the
sums comes in sight when they end, and nothing is computed until it is there. Blocks lie behind one another where rows are as
long as sums: each turn asks for its share of the next one, where that is worth a load in each turn: of blocks that soon end, or
that few panels pass over, since all but the first one find rows in the second cache. Asking changes nothing but time, also past
the end of an array.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernelgen.machines.cpu import CPU
from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.walk import loads_of, statements, vector_loop_of
from kernelgen.transforms.cpu.jam_stencils import polynomial
from kernelgen.transforms.cpu.prefetching.hints import OVER_ROWS, argument_names, flat_place, with_hints

LEVEL = 1
"""The cache that both come to: they are read soon."""

FEW_TERMS = 128
"""Of a block that soon ends. Measured, of eight rows: 64 terms and 5 panels 1.06, 128 and 11 panels 1.05 times as fast."""

FEW_PANELS = 4
"""Measured: 256 terms and 2 panels 1.06, 512 and 3 panels 1.04, 256 and 22 panels 0.98, 768 and 16 panels 0.99."""


def prefetch_blocks(nest: n.Nest) -> n.Nest:
    """The nest with such hints in its loops over blocks of rows."""
    arguments = argument_names(nest)
    return with_hints(nest, OVER_ROWS, lambda rows, around: _asking(rows, around, arguments))


def _asking(rows: n.For, around: tuple[n.For, ...], arguments: frozenset[str]) -> n.For:
    parts = rows.body.statements
    at = next((at for at, part in enumerate(parts) if _is_sum(part)), None)
    if at is None or rows.step == 1:
        return rows
    following = dict.fromkeys(hint for part in parts[at + 1 :] for hint in _of_operands(part, rows, arguments))
    sums = parts[at]
    assert isinstance(sums, n.For), "so sums are"
    hint = _of_next(sums, rows, around, arguments)
    asking = sums if hint is None else replace(sums, body=n.Block((hint, *sums.body.statements)))
    return replace(rows, body=n.Block((*parts[:at], *following, asking, *parts[at + 1 :])))


def _is_sum(part: n.Statement) -> bool:
    is_loop = isinstance(part, n.For) and part.kind is n.LoopKind.SERIAL
    return is_loop and any(isinstance(inner, n.Accumulate) for inner in statements(part))


def _of_operands(part: n.Statement, rows: n.For, arguments: frozenset[str]) -> Iterator[n.Prefetch]:
    """Each line of the arguments that a vector loop behind the sums reads along these ``rows``."""
    if not isinstance(part, n.For) or part.kind is not n.LoopKind.VECTOR:
        return
    length = ix.subtract(part.upper, part.lower)
    for load in (load for inner in statements(part) for load in loads_of(inner) if load.buffer.name in arguments):
        place = flat_place(load)
        if isinstance(length, n.Num) and ix.lies_along(load, part.var) and ix.stride(place, rows.var):
            start = ix.substitute(place, {part.var: part.lower})
            for line in range(0, length.value, CPU.line_bytes // load.buffer.dtype.itemsize):
                yield n.Prefetch(load.buffer, ix.add(start, n.Num(line)), LEVEL)


def _of_next(terms: n.For, rows: n.For, around: tuple[n.For, ...], arguments: frozenset[str]) -> n.Prefetch | None:
    """What a turn of ``terms`` asks for of the next block; None where it is not worth it, or rows lie apart."""
    if vector_loop_of(terms.body, before=(n.Let, n.Accumulate, n.Prefetch)) is None:
        return None
    values = [part.value for part in terms.body.statements if isinstance(part, n.Let)]
    loads = [value for value in values if isinstance(value, n.Load) and value.buffer.name in arguments]
    if len(loads) != rows.step or len({load.buffer for load in loads}) > 1:
        return None
    first, *others = map(flat_place, loads)
    length = ix.subtract(terms.upper, terms.lower)
    if not isinstance(length, n.Num) or ix.stride(first, terms.var) != 1 or ix.stride(first, rows.var) != length.value:
        return None
    behind = [ix.add(first, n.Num(row * length.value)) for row in range(1, rows.step)]
    if list(map(polynomial, others)) != list(map(polynomial, behind)):
        return None
    if length.value > FEW_TERMS and not _pass_few_panels(rows, around, first):
        return None
    here = ix.substitute(first, {terms.var: terms.lower})
    share = ix.multiply(ix.subtract(n.Var(terms.var), terms.lower), n.Num(rows.step))
    return n.Prefetch(loads[0].buffer, ix.add(ix.add(here, n.Num(rows.step * length.value)), share), LEVEL)


def _pass_few_panels(rows: n.For, around: tuple[n.For, ...], place: n.Index) -> bool:
    """Whether the loop around, if it is over panels, which the ``place`` of a block of ``rows`` does not ask for, has few."""
    if not around or around[-1].var in ix.variables(place) | ix.variables(rows.lower):
        return True
    panels = around[-1]
    length = ix.subtract(panels.upper, panels.lower)
    return isinstance(length, n.Num) and length.value <= FEW_PANELS * panels.step
