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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kernelgen.nest import nodes as n
from kernelgen.nest.walk import Moved, Path, accesses_of, located, move


def share(nest: n.Nest) -> n.Nest:
    """The nest with as few workspaces as this allows; each output takes in at most one."""
    uses: dict[str, list[_Use]] = {}
    for path, statement in located(nest.body):
        for buffer, index in accesses_of(statement):
            uses.setdefault(buffer.name, []).append(_Use(path, statement, index))
    free = [b for b in nest.buffers if b.space is n.Space.OUTPUT]
    moved: dict[str, Moved] = {}
    for temporary in (b for b in nest.buffers if b.space is n.Space.WORKSPACE):
        output = next((each for each in free if _fit(temporary, each, uses)), None)
        if output is not None:
            free.remove(output)
            moved[temporary.name] = Moved(output, tuple(range(len(output.shape))))
    if not moved:
        return nest
    kept = tuple(b for b in nest.buffers if b.name not in moved)
    return replace(nest, buffers=kept, body=move(nest.body, moved))


@dataclass(frozen=True)
class _Use:
    """An access of a buffer: where it stands, the statement, the index."""

    path: Path
    statement: n.Statement
    index: tuple[n.Index, ...]


def _fit(temporary: n.Buffer, output: n.Buffer, uses: Mapping[str, Sequence[_Use]]) -> bool:
    """Whether the temporary may live in the output: it is last used in the block of the only store, before that."""
    used, stores = (uses.get(buffer.name, ()) for buffer in (temporary, output))
    if (temporary.shape, temporary.dtype) != (output.shape, output.dtype) or not used or len(stores) != 1:
        return False
    (store,) = stores
    if not isinstance(store.statement, n.Store | n.Accumulate) or {use.index for use in used} != {store.index}:
        return False
    *home, position = store.path
    *last_home, last = used[-1].path
    return last_home == home and last < position
