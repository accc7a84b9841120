"""Turns one-element locals that are written once into bindings.

    alloc t                               let t_value = exp(v0)
    t = exp(v0)                     ->    y[i] = t_value + 1
    y[i] = t + 1

Only a store that stands directly in the block of the allocation qualifies, with all loads behind it: the binding is
then in scope wherever the local was read. In a vector loop this is what keeps a value in a register lane by lane.
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.nest.nodes import Accumulate, Alloc, Block, Expr, Let, Load, Nest, Ref, Statement, Store
from kernelgen.nest.walk import loads_of, map_blocks, map_expressions, statements


def scalarize(nest: Nest) -> Nest:
    """The nest with such locals replaced."""
    return replace(nest, body=map_blocks(nest.body, _block))


def _block(block: Block) -> Block:
    for alloc in [part for part in block.statements if isinstance(part, Alloc) and not part.buffer.shape]:
        block = _without(block, alloc)
    return block


def _without(block: Block, alloc: Alloc) -> Block:
    name = alloc.buffer.name
    position = _only_store(block, name)
    if position is None:
        return block
    bound = Ref(f"{name}_value", alloc.buffer.dtype)

    def use(expr: Expr) -> Expr:
        return bound if isinstance(expr, Load) and expr.buffer.name == name else expr

    parts: list[Statement] = []
    for k, part in enumerate(block.statements):
        if part is alloc:
            continue
        if k == position and isinstance(part, Store):
            parts.append(Let(bound.name, part.value))
        else:
            parts.append(map_expressions(part, use))
    return Block(tuple(parts))


def _only_store(block: Block, name: str) -> int | None:
    """The position of the single write of the local, if it stands in this block and all reads follow it."""
    writes = [s for s in statements(block) if isinstance(s, Store | Accumulate) and s.buffer.name == name]
    direct = [k for k, s in enumerate(block.statements) if isinstance(s, Store) and s.buffer.name == name]
    if len(writes) != 1 or len(direct) != 1:
        return None
    early = any(
        load.buffer.name == name
        for part in block.statements[: direct[0] + 1]
        for s in statements(part)
        for load in loads_of(s)
    )
    return None if early else direct[0]
