"""Expressions with the names of bindings written out, and what follows without running anything.

    int32_t total = tiling.N;                           for k in 0 .. (tiling.N + 2047) / 2048
    for k in 0 .. (total + 2047) / 2048          ->       tiling.N is 1 at least, so the loop has a turn at least
      int32_t at = k * 2048;                            x_gm[k * 2048]
      .. x_gm[at] ..

Offsets of two accesses are alike where they are the same function of loops that run alike: ``x[k * 2048]`` in one loop and
``x[j * 2048]`` in the next one of as many turns. Loops are told apart by their depth, so that x[i, j] is not x[j, i].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernelgen.ascendc.expressions import (
    Binary,
    Choice,
    Convert,
    Expression,
    Field,
    GetValue,
    Intrinsic,
    Name,
    Number,
    Unary,
)
from kernelgen.ascendc.instructions import For, If, Let, Statement
from kernelgen.targets.ascend.lower.program.effects import Use, uses_of

Decided = str | Expression


@dataclass(frozen=True)
class Touch:
    """A use of a tensor with its offset written out, and its loops by canonical names."""

    use: Use
    offset: Expression


def touches(body: Sequence[Statement]) -> Iterator[Touch]:
    """All uses of a program."""
    yield from _touches(body, {}, 0)


def _touches(body: Sequence[Statement], names: Mapping[str, Expression], depth: int) -> Iterator[Touch]:
    names = dict(names)
    for statement in body:
        match statement:
            case For():
                yield from _touches(
                    statement.body, {**names, statement.variable: _canonical(statement, names, depth)}, depth + 1
                )
            case If(then=then, otherwise=otherwise):
                yield from _touches((*then, *otherwise), names, depth)
            case _:
                yield from (Touch(use, written_out(use.offset, names)) for use in uses_of(statement))
                if isinstance(statement, Let):
                    names[statement.name] = written_out(statement.value, names)


def _canonical(loop: For, names: Mapping[str, Expression], depth: int) -> Name:
    """A name that loops of one depth, start, end and step share."""
    ends = ", ".join(repr(written_out(one, names)) for one in (loop.start, loop.stop, loop.step))
    return Name(f"loop {depth}: {ends}")


def turns_of(loop: For) -> int | None:
    """The turns of a loop; None where sizes or blocks decide."""
    match loop.start, loop.stop, loop.step:
        case Number(int(start)), Number(int(stop)), Number(int(step)) if step > 0:
            return max(0, -(-(stop - start) // step))
        case _:
            return None


def sure_loops(body: Sequence[Statement]) -> frozenset[str]:
    """The variables of the loops that have a turn whatever the sizes are, each of them 1 at least."""
    return frozenset(_sure(body, {}))


def _sure(body: Sequence[Statement], names: Mapping[str, Expression]) -> Iterator[str]:
    names = dict(names)
    for statement in body:
        match statement:
            case For():
                start, stop = (written_out(one, names) for one in (statement.start, statement.stop))
                low = least(stop)
                if isinstance(start, Number) and low is not None and low > start.value:
                    yield statement.variable
                yield from _sure(statement.body, {**names, statement.variable: start})
            case If(then=then, otherwise=otherwise):
                yield from _sure((*then, *otherwise), names)
            case Let(name, _, value):
                names[name] = written_out(value, names)
            case _:
                pass


def decided_by_block(body: Sequence[Statement]) -> Mapping[Decided, tuple[Expression, ...]]:
    """Loops (by variable) and branches (by condition) that the block's index alone decides, and what decides them."""
    found = {decided: parts for decided, parts in _deciding(body, {}) if all(map(_is_of_block, parts))}
    return {decided: parts for decided, parts in found.items() if not all(isinstance(part, Number) for part in parts)}


def _deciding(
    body: Sequence[Statement], names: Mapping[str, Expression]
) -> Iterator[tuple[Decided, tuple[Expression, ...]]]:
    names = dict(names)
    for statement in body:
        match statement:
            case For(variable, start, stop, step, inner):
                yield variable, tuple(written_out(one, names) for one in (start, stop, step))
                yield from _deciding(inner, names)
            case If(condition, then, otherwise):
                yield condition, (written_out(condition, names),)
                yield from _deciding((*then, *otherwise), names)
            case Let(name, _, value):
                names[name] = written_out(value, names)
            case _:
                pass


def _is_of_block(expression: Expression) -> bool:
    """Whether nothing but the block's index is named."""
    match expression:
        case Number() | Intrinsic("GetBlockIdx"):
            return True
        case Unary(_, operand) | Convert(_, operand):
            return _is_of_block(operand)
        case Binary(_, left, right):
            return _is_of_block(left) and _is_of_block(right)
        case Choice(condition, then, otherwise):
            return all(map(_is_of_block, (condition, then, otherwise)))
        case _:
            return False


def least(expression: Expression) -> int | None:
    """The least value where every size is 1 at least; None where nothing is known."""
    match expression:
        case Number(int(value)):
            return value
        case Field() | Intrinsic("GetBlockNum"):
            return 1
        case Intrinsic("GetBlockIdx"):
            return 0
        case Choice(_, then, otherwise):
            first, second = least(then), least(otherwise)
            return None if first is None or second is None else min(first, second)
        case Binary(sign, left, right):
            return _least(sign, least(left), least(right), isinstance(right, Number))
        case _:
            return None


def _least(sign: str, left: int | None, right: int | None, known: bool) -> int | None:
    """Of an operator that grows with its left operand, and with its right one unless that is ``known``."""
    if left is None or right is None:
        return None
    match sign:
        case "+":
            return left + right
        case "*" if left >= 0 and right >= 0:
            return left * right
        case "-" if known:
            return left - right
        case "/" if known and right > 0 and left >= 0:
            return left // right
        case _:
            return None


def written_out(expression: Expression, names: Mapping[str, Expression]) -> Expression:
    """The expression with names replaced by what they stand for."""
    match expression:
        case Name(name):
            return names.get(name, expression)
        case Unary(sign, operand):
            return Unary(sign, written_out(operand, names))
        case Binary(sign, left, right):
            return Binary(sign, written_out(left, names), written_out(right, names))
        case Choice(condition, then, otherwise):
            return Choice(*(written_out(part, names) for part in (condition, then, otherwise)))
        case Convert(dtype, operand):
            return Convert(dtype, written_out(operand, names))
        case GetValue(tensor, index):
            return GetValue(tensor, written_out(index, names))
        case _:
            return expression


def mixed_buffers(body: Sequence[Statement], tensors: Sequence[str]) -> frozenset[str]:
    """Buffers that are read and written at offsets that are not alike: too much to tell apart in a few turns."""
    reads: dict[str, set[Expression]] = {}
    writes: dict[str, set[Expression]] = {}
    for touch in touches(body):
        if touch.use.tensor in tensors:
            (writes if touch.use.write else reads).setdefault(touch.use.tensor, set()).add(touch.offset)
    return frozenset(name for name in tensors if name in reads and name in writes and reads[name] != writes[name])
