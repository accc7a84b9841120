"""Moves bindings out of loops in which they do not change.

    for j: let a = mean[i]; let b = x[i, j] - a      ->      let a = mean[i]; for j: let b = x[i, j] - a

Legality: the value depends on no variable or binding of the loop, and the loop writes no buffer that it loads. Loops
of a nest run at least once for the sizes they are generated for, so nothing is evaluated that was not evaluated
before; nothing moves out of a guard, or out of a parallel loop or a loop over blocks (its body is a function of its own).
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.nest.index import references, variables
from kernelgen.nest.nodes import Block, Call, Expr, For, IndexValue, Let, Literal, Load, LoopKind, Nest, Ref, Statement
from kernelgen.nest.walk import map_blocks, stored_buffers


def hoist(nest: Nest) -> Nest:
    """The nest with invariant bindings as far out as they may go."""
    return replace(nest, body=map_blocks(nest.body, _block))


def _block(block: Block) -> Block:
    parts: list[Statement] = []
    for part in block.statements:
        if isinstance(part, For) and part.kind not in (LoopKind.PARALLEL, LoopKind.BLOCK):
            moved, part = _split(part)
            parts.extend(moved)
        parts.append(part)
    return Block(tuple(parts))


def _split(loop: For) -> tuple[list[Let], For]:
    """The bindings that may leave the loop, and the loop without them."""
    written = stored_buffers(loop)
    inside = {part.name for part in loop.body.statements if isinstance(part, Let)}
    moved: list[Let] = []
    kept: list[Statement] = []
    for part in loop.body.statements:
        if isinstance(part, Let) and _is_invariant(part.value, loop.var, inside, written):
            moved.append(part)
            inside.discard(part.name)
        else:
            kept.append(part)
    return moved, replace(loop, body=Block(tuple(kept))) if moved else loop


def _is_invariant(expr: Expr, var: str, inside: set[str], written: frozenset[str]) -> bool:
    match expr:
        case Literal():
            return True
        case Ref(name):
            return name not in inside
        case IndexValue(index):
            return var not in variables(index)
        case Load(buffer, index):
            moves = any(var in variables(i) or references(i) & inside for i in index)
            return buffer.name not in written and not moves
        case Call(_, args):
            return all(_is_invariant(arg, var, inside, written) for arg in args)
