"""Takes out what fills tiles that nobody reads: the words of a number that is only computed with, loads of what is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kernelgen.ascendc.instructions import Call, For, If, SetValue, Statement
from kernelgen.targets.ascend.lower.program.effects import scalar_reads, uses_of
from kernelgen.targets.ascend.lower.program.writer import Program


def without_unread(program: Program) -> Program:
    """The program without statements that only write such tiles."""
    bases = {tile.name: tile.alias or tile.name for tile in program.tiles}
    body, before = program.body, None
    while True:
        read = frozenset(_read(body, bases))
        if read == before:
            return replace(program, body=body)
        body, before = _kept(body, bases, read), read


def _read(body: Sequence[Statement], bases: Mapping[str, str]) -> Iterator[str]:
    """The tiles that statements read."""
    for statement in body:
        match statement:
            case For(start=start, stop=stop, step=step, body=inner):
                yield from (bases.get(use.tensor, "") for one in (start, stop, step) for use in scalar_reads(one))
                yield from _read(inner, bases)
            case If(condition, then, otherwise):
                yield from (bases.get(use.tensor, "") for use in scalar_reads(condition))
                yield from _read((*then, *otherwise), bases)
            case _:
                yield from (bases.get(use.tensor, "") for use in uses_of(statement) if not use.write)


def _kept(body: Sequence[Statement], bases: Mapping[str, str], read: frozenset[str]) -> tuple[Statement, ...]:
    found: list[Statement] = []
    for statement in body:
        match statement:
            case For():
                found.append(replace(statement, body=_kept(statement.body, bases, read)))
            case If():
                then, otherwise = (_kept(part, bases, read) for part in (statement.then, statement.otherwise))
                found.append(replace(statement, then=then, otherwise=otherwise))
            case Call() | SetValue() if _is_unread(statement, bases, read):
                pass
            case _:
                found.append(statement)
    return tuple(found)


def _is_unread(statement: Statement, bases: Mapping[str, str], read: frozenset[str]) -> bool:
    written = [use.tensor for use in uses_of(statement) if use.write]
    return bool(written) and all(name in bases and bases[name] not in read for name in written)
