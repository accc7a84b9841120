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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kernelgen.nest.nodes import (
    Accumulate,
    Block,
    Buffer,
    For,
    If,
    Index,
    Nest,
    Space,
    Statement,
    Store,
)
from kernelgen.nest.walk import Moved, accesses, accesses_by_buffer, move, statements


def share(nest: Nest) -> Nest:
    """The nest with as few workspaces as this allows; each output takes in at most one."""
    uses = _Uses(
        accesses_by_buffer(nest.body), {id(part): block for block in _blocks(nest.body) for part in block.statements}
    )
    free = [b for b in nest.buffers if b.space is Space.OUTPUT]
    moved: dict[str, Moved] = {}
    for temporary in (b for b in nest.buffers if b.space is Space.WORKSPACE):
        output = next((each for each in free if uses.fit(temporary, each)), None)
        if output is not None:
            free.remove(output)
            moved[temporary.name] = Moved(output, tuple(range(len(output.shape))))
    if not moved:
        return nest
    kept = tuple(b for b in nest.buffers if b.name not in moved)
    return replace(nest, buffers=kept, body=move(nest.body, moved))


@dataclass(frozen=True)
class _Uses:
    """Where buffers are accessed, and by the identity of a statement the block that it stands in."""

    accesses: Mapping[str, Sequence[tuple[Statement, tuple[Index, ...]]]]
    homes: Mapping[int, Block]

    def fit(self, temporary: Buffer, output: Buffer) -> bool:
        """Whether the temporary may live in the output."""
        used, stores = (self.accesses.get(buffer.name, ()) for buffer in (temporary, output))
        if (temporary.shape, temporary.dtype) != (output.shape, output.dtype) or len(stores) != 1:
            return False
        ((store, place),) = stores
        if not isinstance(store, Store | Accumulate) or {index for _, index in used} != {place}:
            return False
        home = self.homes[id(store)].statements
        position = next(k for k, part in enumerate(home) if part is store)
        inside = [k for k, part in enumerate(home) if any(True for _ in accesses(part, temporary.name))]
        return bool(inside) and inside[-1] < position and any(part is used[-1][0] for part in home)


def _blocks(root: Block) -> Iterator[Block]:
    return (s.body if isinstance(s, For | If) else s for s in statements(root) if isinstance(s, For | If | Block))
