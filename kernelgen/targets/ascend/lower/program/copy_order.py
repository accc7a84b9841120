"""Copies to the front and to the back: a turn loads all that it needs, computes, and stores all that it made.

    load a; f = exp(a); store f; load b; g = exp(b); store g   ->   load a; load b; f = exp(a); g = exp(b); store f; store g

One flag then stands for all loads of a turn and one for all stores, and the next turn's loads run while this one computes.
A copy passes only what has nothing to do with it: a load no store to its buffer and no binding that it needs, a store no
load from its buffer and no change of its tile. Loops and branches are passed by nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernelgen.ascendc.expressions import Binary, Choice, Convert, GetValue, Name, Unary
from kernelgen.ascendc.instructions import Call, For, If, Let, SetValue, Statement, Struct, TensorRef
from kernelgen.targets.ascend.lower.program.effects import Use, scalar_reads, uses_of
from kernelgen.targets.ascend.lower.program.writer import Program


def order_copies(program: Program) -> Program:
    """The program with the copies of every straight piece at its ends."""
    tiles = frozenset(tile.name for tile in program.tiles)
    aliases = {tile.name: tile.alias or tile.name for tile in program.tiles}
    return replace(program, body=_block(program.body, tiles, aliases))


def _block(body: Sequence[Statement], tiles: frozenset[str], aliases: dict[str, str]) -> tuple[Statement, ...]:
    found: list[Statement] = []
    piece: list[Statement] = []
    for statement in body:
        match statement:
            case For():
                found += [
                    *_piece(piece, tiles, aliases),
                    replace(statement, body=_block(statement.body, tiles, aliases)),
                ]
                piece = []
            case If():
                found += [
                    *_piece(piece, tiles, aliases),
                    replace(statement, then=_block(statement.then, tiles, aliases)),
                ]
                piece = []
            case _:
                piece.append(statement)
    return (*found, *_piece(piece, tiles, aliases))


def _piece(piece: Sequence[Statement], tiles: frozenset[str], aliases: dict[str, str]) -> list[Statement]:
    """A straight piece: plain bindings and loads, the rest, stores."""
    front: list[Statement] = []
    middle: list[Statement] = []
    for statement in piece:
        early = _is_plain(statement) or _copies(statement, to_tile=True, tiles=tiles)
        (front if early and _may_pass(statement, middle, aliases) else middle).append(statement)
    back: list[Statement] = []
    rest: list[Statement] = []
    for statement in reversed(middle):
        late = _copies(statement, to_tile=False, tiles=tiles) and _may_pass(statement, rest, aliases)
        (back if late else rest).append(statement)
    return [*front, *reversed(rest), *reversed(back)]


def _is_plain(statement: Statement) -> bool:
    """Whether it binds a scalar that no data decides."""
    return isinstance(statement, Let) and not any(True for _ in scalar_reads(statement.value))


def _copies(statement: Statement, to_tile: bool, tiles: frozenset[str]) -> bool:
    if not isinstance(statement, Call) or statement.operation != "DataCopyPad":
        return False
    target = statement.arguments[0]
    return isinstance(target, TensorRef) and (target.tensor in tiles) == to_tile


def _may_pass(statement: Statement, others: Sequence[Statement], aliases: dict[str, str]) -> bool:
    """Whether a statement has nothing to do with those that it passes."""
    own, names = _places(statement, aliases), _names(statement)
    for other in others:
        if isinstance(other, Let) and other.name in names:
            return False
        if isinstance(statement, Let) and statement.name in _names(other):
            return False
        if any(place in own and (write or own[place]) for place, write in _places(other, aliases).items()):
            return False
        if isinstance(other, Call) and other.operation.startswith("CrossCore"):
            return False
    return True


def _places(statement: Statement, aliases: dict[str, str]) -> dict[str, bool]:
    """Tensor -> whether it is written."""
    found: dict[str, bool] = {}
    for use in uses_of(statement):
        found[_base(use, aliases)] = found.get(_base(use, aliases), False) or use.write
    return found


def _base(use: Use, aliases: dict[str, str]) -> str:
    return aliases.get(use.tensor, use.tensor)


def _names(statement: Statement) -> frozenset[str]:
    """The scalars that a statement names."""
    match statement:
        case Call(arguments=arguments):
            return frozenset(name for argument in arguments for name in _named(argument))
        case Let(value=value):
            return frozenset(_named(value))
        case SetValue(_, index, value):
            return frozenset([*_named(index), *_named(value)])
        case _:
            return frozenset()


def _named(argument: object) -> list[str]:
    match argument:
        case Name(name):
            return [name]
        case TensorRef(_, inner) | GetValue(_, inner) | Unary(_, inner) | Convert(_, inner):
            return _named(inner)
        case Struct(_, values):
            return [name for value in values for name in _named(value)]
        case Binary(_, left, right):
            return [*_named(left), *_named(right)]
        case Choice(condition, then, otherwise):
            return [*_named(condition), *_named(then), *_named(otherwise)]
        case _:
            return []
