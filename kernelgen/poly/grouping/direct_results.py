"""Results that are only copied to an output, in another order of axes: they are accumulated there.

    P[i, h, d]: o[h, i, d] += ...;  C[i, h, d]: y[i, h, d] = o[h, i, d]      ->      P[i, h, d]: y[i, h, d] += ...

Legality: the copy reads all of a temporary that nothing else reads, one element for each of the output, which nothing else
touches; each is then the same sum.
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.nest.index import substitute
from kernelgen.nest.nodes import Accumulate, Index, Let, Load, Ref, Space, Store, Var
from kernelgen.poly.model.scop import Scop, Statement

Effect = Store | Accumulate


def accumulate_in_outputs(scop: Scop) -> Scop:
    """The scop without such copies; the same object where there is none."""
    for copy in scop.statements:
        moved = _moved(copy)
        if moved is None:
            continue
        load, store = moved
        makers = [s for s in scop.statements if s is not copy and load.buffer.name in s.touched]
        touching = [s for s in scop.statements if store.buffer.name in s.touched]
        if len(makers) == 1 and touching == [copy] and _only_accumulates(makers[0], load.buffer.name):
            return accumulate_in_outputs(_without(scop, copy, makers[0], load, store))
    return scop


def _moved(statement: Statement) -> tuple[Load, Store] | None:
    """What a statement copies from a temporary to an output, all of both, or None."""
    *lets, store = statement.body
    if not isinstance(store, Store) or store.buffer.space is not Space.OUTPUT or statement.ordered:
        return None
    value = store.value
    if len(lets) == 1 and isinstance(lets[0], Let) and isinstance(value, Ref) and value.name == lets[0].name:
        value = lets[0].value
    elif lets:
        return None
    if not isinstance(value, Load) or value.buffer.space is not Space.WORKSPACE:
        return None
    alike = value.buffer.dtype == store.buffer.dtype
    return (value, store) if alike and is_whole(statement, value) and is_whole(statement, store) else None


def is_whole(statement: Statement, access: Load | Store) -> bool:
    """Whether an access goes over its whole buffer, each iterator along a dim of its own."""
    extents = {Var(it.name): it.extent for it in statement.iterators}
    shape = tuple(extents.get(i) if isinstance(i, Var) else None for i in access.index)
    return len(set(access.index)) == len(extents) == len(access.index) and shape == access.buffer.shape


def _only_accumulates(statement: Statement, name: str) -> bool:
    """Whether all that a statement does with a buffer is to accumulate into it, each dim along an iterator."""
    touching = [part for part in statement.body if not isinstance(part, Let) and part.buffer.name == name]
    reads = any(read.buffer.name == name for read in statement.reads)
    return not reads and all(isinstance(p, Accumulate) and all(isinstance(i, Var) for i in p.index) for p in touching)


def _without(scop: Scop, copy: Statement, maker: Statement, load: Load, store: Store) -> Scop:
    def led(part: Let | Store | Accumulate) -> Let | Store | Accumulate:
        return part if isinstance(part, Let) or part.buffer.name != load.buffer.name else led_to(part, load, store)

    made = replace(maker, body=tuple(map(led, maker.body)))
    statements = tuple(made if s is maker else s for s in scop.statements if s is not copy)
    return replace(scop, buffers=tuple(b for b in scop.buffers if b != load.buffer), statements=statements)


def led_to(part: Effect, load: Load, store: Effect) -> Effect:
    """The ``part`` that writes what a copy loads (``load``), at the place where the copy's ``store`` puts it."""
    at: dict[str, Index] = {
        i.name: there for i, there in zip(load.index, part.index, strict=True) if isinstance(i, Var)
    }
    return replace(part, buffer=store.buffer, index=tuple(substitute(i, at) for i in store.index))
