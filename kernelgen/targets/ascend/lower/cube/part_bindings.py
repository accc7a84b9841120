"""Parts of a nest that make the bindings of earlier parts again: cores keep no scalars from one part to the next.

    let s = min(x[], 1)                     let s = min(x[], 1)
    block i: A(s)              ->           block i: A(s)
    t = a @ b                               t = a @ b
    vector j: y[j] += s                     let s = min(x[], 1); vector j: y[j] += s

Legality: with ``D`` the statements from the binding up to the part that reads it, no store of ``D`` writes a buffer that the
binding loads, so that it has the same value at both places. A loop that is dealt to the cores makes it in each iteration, so
there ``D`` holds the loop too: another iteration may have stored before. Where a store does, the kernel is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernelgen.errors import UnsupportedError
from kernelgen.nest.nodes import Block, Expr, For, Let, LoopKind, Ref, Statement
from kernelgen.nest.walk import loads_of, map_expressions, stored_buffers


def with_own_bindings(parts: Sequence[Block]) -> list[Block]:
    """The parts, each behind the bindings at the top level of earlier ones that it reads.

    Raises UnsupportedError where what such a binding loads is written in between.
    """
    made: dict[str, tuple[Let, int]] = {}
    found: list[Block] = []
    for number, part in enumerate(parts):
        needed = {name for name in _read(part) if name in made}
        for name in reversed(made):  # a binding reads only earlier ones
            needed |= _read(made[name][0]) & made.keys() if name in needed else set()
        again = [let for name, (let, _) in made.items() if name in needed]
        for let in again:
            _check_unchanged(let, parts[made[let.name][1] : number + _is_dealt(part)])
        found.append(_behind(again, part))
        made.update({let.name: (let, number) for let in part.statements if isinstance(let, Let)})
    return found


def _read(root: Statement) -> set[str]:
    """The names of the bindings that are read anywhere inside."""
    names: set[str] = set()

    def note(expr: Expr) -> Expr:
        if isinstance(expr, Ref):
            names.add(expr.name)
        return expr

    map_expressions(root, note)
    return names


def _check_unchanged(let: Let, between: Sequence[Block]) -> None:
    loaded = {load.buffer.name for load in loads_of(let)}
    written = {name for part in between for name in stored_buffers(part)}
    if changed := sorted(loaded & written):
        raise UnsupportedError(
            "unsupported-layout",
            f"{let.name} is read by several parts of the kernel, and {changed[0]} changes between them",
        )


def _behind(bindings: Sequence[Let], part: Block) -> Block:
    """The part behind bindings; in a loop that is dealt to the cores, each iteration makes them."""
    if not bindings:
        return part
    only = part.statements[0]
    if _is_dealt(part) and isinstance(only, For):
        return Block((replace(only, body=Block((*bindings, *only.body.statements))),))
    return Block((*bindings, *part.statements))


def _is_dealt(part: Block) -> bool:
    only = part.statements[0]
    return len(part.statements) == 1 and isinstance(only, For) and only.kind is LoopKind.BLOCK
