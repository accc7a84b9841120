"""Double buffer: tiles that copies fill or empty have two copies, which the turns of a loop take in turn.

    for k in 0..n:                        for k in 0..n:
      DataCopyPad(x, x_gm[k * 64])          int32_t half = k % 2;
      Exp(y, x, 64)                 ->      DataCopyPad(x[half * 64], x_gm[k * 64])
      DataCopyPad(y_gm[k * 64], y)          Exp(y[half * 64], x[half * 64], 64)
                                            DataCopyPad(y_gm[k * 64], y[half * 64])

The loop is the innermost one that holds the copy; all touches of the tile lie in it, so that no value passes from turn to
turn. Tiles of other kinds stay single: one pipe works on them, in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernelgen.ascendc.expressions import BLOCK_COUNT, BLOCK_INDEX, Expression, Name, Number
from kernelgen.ascendc.instructions import GATHER, Argument, Call, For, If, Let, Statement, TensorRef
from kernelgen.targets.ascend.lower.program.effects import uses_of
from kernelgen.targets.ascend.lower.program.writer import Program
from kernelgen.tensor.dtypes import INT32

HALF = "half_"
"""Prefix of the name of a loop's turn modulo 2; the loop's variable follows."""
SINGLE = "single"
"""Stands for a loop where the scalar unit touches a tile, or Gather may read all of it: it then has one copy."""


def double_buffer(program: Program) -> Program:
    """The program with two copies of every tile that a loop's copies touch."""
    bases = {tile.name: tile.alias or tile.name for tile in program.tiles}
    homes: dict[str, set[str]] = {}
    copied: dict[str, set[str]] = {}
    _collect(program.body, "", bases, homes, copied)
    chosen = {name: next(iter(loops)) for name, loops in homes.items() if len(loops) == 1 and copied.get(name) == loops}
    chosen = {name: loop for name, loop in chosen.items() if loop}
    if not chosen:
        return program
    sizes = {tile.name: tile.size for tile in program.tiles}
    tiles = tuple(replace(t, copies=2) if bases[t.name] in chosen and not t.alias else t for t in program.tiles)
    lengths = {
        tile.name: (chosen[bases[tile.name]], sizes[bases[tile.name]] // tile.dtype.itemsize)
        for tile in program.tiles
        if bases[tile.name] in chosen
    }
    return replace(program, tiles=tiles, body=_rewritten(program.body, lengths, frozenset(chosen.values())))


def _collect(
    body: Sequence[Statement],
    loop: str,
    bases: Mapping[str, str],
    homes: dict[str, set[str]],
    copied: dict[str, set[str]],
) -> None:
    """For each tile the innermost loops of its touches, and of its copies."""
    for statement in body:
        match statement:
            case For(variable=variable, body=inner):
                _collect(inner, variable if may_repeat(statement) else loop, bases, homes, copied)
            case If(then=then, otherwise=otherwise):
                _collect(then, loop, bases, homes, copied)
                _collect(otherwise, loop, bases, homes, copied)
            case _:
                is_copy = isinstance(statement, Call) and statement.operation.startswith("DataCopy")
                gathers = isinstance(statement, Call) and statement.operation == GATHER
                for use in uses_of(statement):
                    if use.tensor in bases:
                        single = use.scalar or (gathers and not use.write)
                        homes.setdefault(bases[use.tensor], set()).add(SINGLE if single else loop)
                        if is_copy:
                            copied.setdefault(bases[use.tensor], set()).add(loop)


def may_repeat(loop: For) -> bool:
    """Whether a loop may have more than one turn."""
    known = (loop.start, loop.stop, loop.step)
    if not all(isinstance(one, Number) for one in known):
        return True
    start, stop, step = (int(one.value) for one in known if isinstance(one, Number))
    return stop - start > step


def _rewritten(
    body: Sequence[Statement], lengths: Mapping[str, tuple[str, int]], loops: frozenset[str]
) -> tuple[Statement, ...]:
    found: list[Statement] = []
    for statement in body:
        match statement:
            case For(variable=variable):
                inner = _rewritten(statement.body, lengths, loops)
                if variable in loops:
                    inner = (Let(f"{HALF}{variable}", INT32, _turn(statement) % 2, parity=True), *inner)
                found.append(replace(statement, body=inner))
            case If():
                then, otherwise = (_rewritten(part, lengths, loops) for part in (statement.then, statement.otherwise))
                found.append(replace(statement, then=then, otherwise=otherwise))
            case Call():
                arguments = tuple(_moved(argument, lengths) for argument in statement.arguments)
                found.append(replace(statement, arguments=arguments))
            case _:
                found.append(statement)
    return tuple(found)


def _turn(loop: For) -> Expression:
    """The number of the turn."""
    variable: Expression = Name(loop.variable)
    dealt = loop.start == BLOCK_INDEX and loop.step == BLOCK_COUNT
    return variable // loop.step if dealt else (variable - loop.start) // loop.step


def _moved(argument: Argument, lengths: Mapping[str, tuple[str, int]]) -> Argument:
    if not isinstance(argument, TensorRef) or argument.tensor not in lengths:
        return argument
    loop, length = lengths[argument.tensor]
    return TensorRef(argument.tensor, Name(f"{HALF}{loop}") * length + argument.offset)
