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
    return replace(nest, body=map_blocks(nest.body, scalarized))


def scalarized(block: Block) -> Block:
    """The block with such locals of its own replaced."""
    bound = _written_once(block)
    if not bound:
        return block

    def use(expr: Expr) -> Expr:
        return bound.get(expr.buffer.name, expr) if isinstance(expr, Load) else expr

    parts: list[Statement] = []
    for part in block.statements:
        if isinstance(part, Alloc) and part.buffer.name in bound:
            continue
        mapped = map_expressions(part, use)
        if isinstance(mapped, Store) and mapped.buffer.name in bound:
            mapped = Let(bound[mapped.buffer.name].name, mapped.value)
        parts.append(mapped)
    return Block(tuple(parts))


def _written_once(block: Block) -> dict[str, Ref]:
    """The binding of each one-element local of the block whose only write stands in it, with all reads behind."""
    allocated = [part.buffer for part in block.statements if isinstance(part, Alloc) and not part.buffer.shape]
    bound = {buffer.name: Ref(f"{buffer.name}_value", buffer.dtype) for buffer in allocated}
    stored: set[str] = set()
    for part in block.statements if bound else ():
        for inner in statements(part):
            for load in loads_of(inner):
                if load.buffer.name not in stored:
                    bound.pop(load.buffer.name, None)
            if isinstance(inner, Store) and inner is part and inner.buffer.name not in stored:
                stored.add(inner.buffer.name)
            elif isinstance(inner, Store | Accumulate):
                bound.pop(inner.buffer.name, None)
    return {name: bound[name] for name in bound if name in stored}
