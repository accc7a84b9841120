"""Asks for the next rows while several rows are added up at once.

    for i step 8:                                      for i step 8:
      vector j:                                          vector j:
        s[j] += x[i, j] + x[i + 1, j] + ...     ->         prefetch x[i + 8, j + 256]; prefetch x[i + 9, j + 256]; ...
                                                           s[j] += x[i, j] + x[i + 1, j] + ...

A processor follows a row to the end of its page; so many rows are as many streams, and each begins anew with each page. What is
asked for lies a little further on in the next rows, in time for their first columns too. The second cache takes what comes,
since the first one would lose sums. Asking changes nothing but time, also past the end of an array.
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.walk import loads_of, statements, vector_loop_of
from kernelgen.transforms.cpu.prefetching.hints import IN_TURN, flat_place, large_arguments, only_sums, with_hints

AHEAD_BYTES = 1024
"""Further on in the next rows."""

LEAST_ROWS = 4
"""Of one argument that are added up at once: a processor follows fewer."""

LEVEL = 2
"""The cache in which they are to be."""


def prefetch_summed_rows(nest: n.Nest) -> n.Nest:
    """The nest with such hints in the vector loops of its loops over rows."""
    arguments = large_arguments(nest)
    return with_hints(nest, IN_TURN, lambda rows, _: _asking(rows, arguments))


def _asking(rows: n.For, arguments: frozenset[str]) -> n.For:
    """The loop, with hints in its vector loop where that reads several rows of an argument."""
    vector = vector_loop_of(rows.body)
    hints = _hints(vector, rows, arguments) if vector is not None and only_sums(vector) else ()
    if vector is None or not hints:
        return rows
    asking = replace(vector, body=n.Block((*hints, *vector.body.statements)))
    return replace(rows, body=n.Block((*rows.body.statements[:-1], asking)))


def _hints(vector: n.For, rows: n.For, arguments: frozenset[str]) -> tuple[n.Prefetch, ...]:
    """One for each row of the arguments of which enough are read."""
    found: dict[str, dict[n.Index, n.Prefetch]] = {}
    for load in (load for part in statements(vector.body) for load in loads_of(part) if load.buffer.name in arguments):
        place = flat_place(load)
        step = ix.stride(place, rows.var)
        if ix.lies_along(load, vector.var) and step:
            ahead = step * rows.step + AHEAD_BYTES // load.buffer.dtype.itemsize
            hint = n.Prefetch(load.buffer, ix.add(place, n.Num(ahead)), LEVEL)
            found.setdefault(load.buffer.name, {})[place] = hint
    return tuple(hint for hints in found.values() if len(hints) >= LEAST_ROWS for hint in hints.values())
