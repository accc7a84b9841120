"""Lets a temporary that is too large for the stack live in an output.

    workspace e[M, N]
    for i:                                       for i:
      for j: e[i, j] = exp(x[i, j]); s += ..       for j: y[i, j] = exp(x[i, j]); s += ..
      for j: y[i, j] = e[i, j] / s         ->      for j: y[i, j] = y[i, j] / s

Legality: the output has one store and no load; where it is stored, the same element of the temporary is loaded before
in the same iteration; all accesses of the temporary use that index, and none stands behind that block. So an element
of the output is written when its temporary is dead, and iterations do not meet: they touch the elements they touched
before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernelgen.nest.nodes import (
    Accumulate,
    Block,
    Buffer,
    For,
    If,
    Nest,
    Space,
    Store,
)
from kernelgen.nest.walk import accesses, loads_of, map_accesses, statements


def share(nest: Nest) -> Nest:
    """The nest with as few workspaces as this allows; each output takes in at most one."""
    taken: set[str] = set()
    for temporary in [b for b in nest.buffers if b.space is Space.WORKSPACE]:
        for output in nest.buffers:
            if output.space is Space.OUTPUT and output.name not in taken and _fits(nest.body, temporary, output):
                taken.add(output.name)
                kept = tuple(b for b in nest.buffers if b is not temporary)
                nest = replace(
                    nest, buffers=kept, body=map_accesses(nest.body, temporary.name, output, range(len(output.shape)))
                )
                break
    return nest


def _fits(body: Block, temporary: Buffer, output: Buffer) -> bool:
    if (temporary.shape, temporary.dtype) != (output.shape, output.dtype):
        return False
    stores = [s for s in statements(body) if isinstance(s, Store | Accumulate) and s.buffer.name == output.name]
    if len(stores) != 1 or any(load.buffer.name == output.name for s in statements(body) for load in loads_of(s)):
        return False
    if {index for _, index in accesses(body, temporary.name)} != {stores[0].index}:
        return False
    home = next(block for block in _blocks(body) if any(part is stores[0] for part in block.statements))
    position = next(k for k, part in enumerate(home.statements) if part is stores[0])
    inside = [k for k, part in enumerate(home.statements) if any(True for _ in accesses(part, temporary.name))]
    last = [part for part, _ in accesses(body, temporary.name)][-1]
    return bool(inside) and inside[-1] < position and any(part is last for part in home.statements)


def _blocks(root: Block) -> Iterator[Block]:
    return (s.body if isinstance(s, For | If) else s for s in statements(root) if isinstance(s, For | If | Block))
