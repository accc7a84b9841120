"""Takes out what fills tiles that nobody reads: the words of a number that is only computed with, loads of what is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kernelgen.ascendc.instructions import Call, For, If, SetValue, Statement
from kernelgen.targets.ascend.lower.program.effects import scalar_reads, uses_of
from kernelgen.targets.ascend.lower.program.writer import Program


def without_unread(program: Program) -> Program:
    """The program without statements that only write such tiles."""
    bases = {tile.name: tile.alias or tile.name for tile in program.tiles}
    left = [_Accesses.of(statement, bases) for statement in _each(program.body)]
    readers = Counter(name for one in left for name in one.read)
    idle: set[int] = set()
    while unread := [one for one in left if one.is_for_nobody(readers)]:
        idle |= {id(one.statement) for one in unread}
        readers -= Counter(name for one in unread for name in one.read)
        left = [one for one in left if id(one.statement) not in idle]
    return replace(program, body=_kept(program.body, idle)) if idle else program


@dataclass(frozen=True)
class _Accesses:
    """The tiles that a statement itself reads and writes; one that writes anything else has ``written`` None."""

    statement: Statement
    read: tuple[str, ...]
    written: tuple[str, ...] | None

    @staticmethod
    def of(statement: Statement, bases: Mapping[str, str]) -> _Accesses:
        match statement:
            case For(start=start, stop=stop, step=step):
                read = tuple(use.tensor for one in (start, stop, step) for use in scalar_reads(one))
                written: tuple[str, ...] = ()
            case If(condition=condition):
                read, written = tuple(use.tensor for use in scalar_reads(condition)), ()
            case _:
                uses = tuple(uses_of(statement))
                read = tuple(use.tensor for use in uses if not use.write)
                written = tuple(use.tensor for use in uses if use.write)
        is_tiles = isinstance(statement, Call | SetValue) and written and all(name in bases for name in written)
        own = tuple(bases[name] for name in written) if is_tiles else None
        return _Accesses(statement, tuple(bases.get(name, "") for name in read), own)

    def is_for_nobody(self, readers: Mapping[str, int]) -> bool:
        """Whether it writes tiles alone, none of which has ``readers``."""
        return self.written is not None and not any(readers.get(name) for name in self.written)


def _each(body: Sequence[Statement]) -> Iterator[Statement]:
    """All statements, those inside of others too."""
    for statement in body:
        yield statement
        match statement:
            case For(body=inner):
                yield from _each(inner)
            case If(then=then, otherwise=otherwise):
                yield from _each((*then, *otherwise))
            case _:
                pass


def _kept(body: Sequence[Statement], idle: set[int]) -> tuple[Statement, ...]:
    found: list[Statement] = []
    for statement in body:
        match statement:
            case For():
                found.append(replace(statement, body=_kept(statement.body, idle)))
            case If():
                then, otherwise = (_kept(part, idle) for part in (statement.then, statement.otherwise))
                found.append(replace(statement, then=then, otherwise=otherwise))
            case _ if id(statement) in idle:
                pass
            case _:
                found.append(statement)
    return tuple(found)
