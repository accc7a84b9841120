"""What a turn does twice, or to no end, goes: the same load once more, and a copy of a tile that is only read.

    load a = x[k]; load b = x[k]; c = a - m; d = exp(b)     ->     load a = x[k]; c = a - m; d = exp(a)
    m = max(..); t = m * 1; u = Brcb(t)                     ->     m = max(..); u = Brcb(m)

One tile stands for another that is written once, whose reads all follow in the same straight piece, as long as nothing is
written to the one before the last read of the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kernelgen.ascendc.expressions import Number
from kernelgen.ascendc.instructions import Argument, Call, For, If, Statement, TensorRef
from kernelgen.targets.ascend.lower.program.effects import uses_of
from kernelgen.targets.ascend.lower.program.writer import Program, Tile

START = Number(0)


def without_idle(program: Program) -> Program:
    """The program without loads and copies whose tile another one stands for."""
    idle = _Idle(_plain_tiles(program))
    for part in _parts(program.body):
        for use in uses_of(part):
            (idle.writes if use.write else idle.reads)[use.tensor] += 1
    body = idle.block(program.body)
    tiles = (replace(tile, primed=True) if tile.name in idle.primed else tile for tile in program.tiles)
    return replace(program, body=body, tiles=tuple(tile for tile in tiles if tile.name not in idle.gone))


def _plain_tiles(program: Program) -> Mapping[str, Tile]:
    """Tiles whose memory has one name."""
    shared = {tile.alias for tile in program.tiles}
    return {tile.name: tile for tile in program.tiles if not tile.alias and tile.name not in shared}


def _parts(body: Sequence[Statement]) -> Iterator[Statement]:
    for statement in body:
        match statement:
            case For(body=inner):
                yield from _parts(inner)
            case If(then=then, otherwise=otherwise):
                yield from _parts((*then, *otherwise))
            case _:
                yield statement


@dataclass
class _Idle:
    """How often each tensor is written and read; ``gone`` are tiles that others stand for, which may have to be primed."""

    tiles: Mapping[str, Tile]
    writes: Counter[str] = field(default_factory=Counter[str])
    reads: Counter[str] = field(default_factory=Counter[str])
    gone: set[str] = field(default_factory=set[str])
    primed: set[str] = field(default_factory=set[str])

    def block(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """A block, straight piece by straight piece."""
        found: list[Statement] = []
        piece: list[Statement] = []
        for statement in body:
            match statement:
                case For(body=inner):
                    found += [*self.piece(piece), replace(statement, body=self.block(inner))]
                    piece = []
                case If(then=then, otherwise=otherwise):
                    branch = replace(statement, then=self.block(then), otherwise=self.block(otherwise))
                    found += [*self.piece(piece), branch]
                    piece = []
                case _:
                    piece.append(statement)
        return (*found, *self.piece(piece))

    def piece(self, piece: Sequence[Statement]) -> list[Statement]:
        """Statements that run one after the other."""
        found = list(piece)
        place = 0
        while place < len(found):
            pair = _copied(found[place]) or _loaded(found, place)
            if pair is not None and self._may_stand(*pair, found[place + 1 :]):
                self.reads[pair[0]] -= sum(use.tensor == pair[0] for use in uses_of(found[place]))
                found[place:] = self._stood(*pair, found[place + 1 :])
            else:
                place += 1
        return found

    def _may_stand(self, one: str, other: str, rest: Sequence[Statement]) -> bool:
        """Whether one tile holds in all reads of the other what that would hold."""
        if one not in self.tiles or other not in self.tiles or self.writes[other] != 1:
            return False
        if (self.tiles[one].dtype, self.tiles[one].elements) != (self.tiles[other].dtype, self.tiles[other].elements):
            return False
        left = self.reads[other]
        for statement in rest:
            if not left:
                break
            uses = tuple(uses_of(statement))
            reads = sum(use.tensor == other for use in uses)
            if any(use.write and use.tensor == one for use in uses) or (reads and not isinstance(statement, Call)):
                return False
            left -= reads
        return not left

    def _stood(self, one: str, other: str, rest: Sequence[Statement]) -> list[Statement]:
        """The statements behind, where ``one`` stands for ``other``."""
        self.gone.add(other)
        self.reads[one] += self.reads[other]
        if self.tiles[other].primed or other in self.primed:
            self.primed.add(one)
        return [_renamed(statement, one, other) for statement in rest]


def _copied(statement: Statement) -> tuple[str, str] | None:
    """(source, target) of a product with 1 that copies a tile from its start."""
    if not isinstance(statement, Call) or statement.operation != "Muls" or len(statement.arguments) != 4:
        return None
    match statement.arguments:
        case (TensorRef(target, at), TensorRef(source, start), Number(1), _) if at == start == START:
            return source, target
        case _:
            return None


def _loaded(piece: Sequence[Statement], place: int) -> tuple[str, str] | None:
    """(the tile of an equal load before, the tile of this load)."""
    load = piece[place]
    if not isinstance(load, Call) or load.operation != "DataCopyPad" or len(load.arguments) != 4:
        return None
    (target, source, *params) = load.arguments
    if not isinstance(target, TensorRef) or not isinstance(source, TensorRef) or target.offset != START:
        return None
    written: set[str] = set()
    for other in reversed(piece[:place]):
        first = other.arguments[0] if isinstance(other, Call) and other.operation == load.operation else None
        if isinstance(other, Call) and isinstance(first, TensorRef) and [*other.arguments[1:]] == [source, *params]:
            return (first.tensor, target.tensor) if first.offset == START and first.tensor not in written else None
        written |= {use.tensor for use in uses_of(other) if use.write}
        if source.tensor in written:
            return None
    return None


def _renamed(statement: Statement, one: str, other: str) -> Statement:
    """A statement with one tile in the place of another."""
    if not isinstance(statement, Call):
        return statement

    def named(argument: Argument) -> Argument:
        if isinstance(argument, TensorRef) and argument.tensor == other:
            return TensorRef(one, argument.offset)
        return argument

    return replace(statement, arguments=tuple(named(argument) for argument in statement.arguments))
