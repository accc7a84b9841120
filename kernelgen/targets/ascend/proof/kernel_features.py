"""What a kernel's text does when it runs at given sizes, as words that do not depend on the sizes.

    loop of MTE2, V, MTE3: several turns      Cast repeat half float CAST_NONE, mask part      n_: then

Two sizes of one kernel with the same words run the same kinds of code. The scalar part is gone through for a few blocks (the
first, one in the middle, the last), and of every loop for the first turns and the last: what only other turns do is not seen.
A branch that data decides counts both ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from kernelgen.ascendc.expressions import Binary, Choice, Expression, Name, Number
from kernelgen.ascendc.instructions import (
    MIX,
    Call,
    Enumerator,
    For,
    GlobalTensor,
    If,
    Kernel,
    Let,
    LocalTensor,
    Pads,
    SetValue,
    Statement,
    Struct,
    TensorRef,
    statements_in,
)
from kernelgen.ascendc.intrinsics import STRUCTS, form_of
from kernelgen.ascendc.pipes import pipe_of
from kernelgen.ascendc.types import GM, PIPES, POSITIONS, S
from kernelgen.simulators.ascendc.core.scalars import BadScalar, Scope, Value

FEW_TURNS = 3
"""Turns that a loop of copies in two halves needs until each half was used again."""


def features_of(kernel: Kernel, blocks: int, tiling: Mapping[str, int]) -> frozenset[str]:
    """What a launch of so many blocks with these fields of the tiling struct does."""
    walk = _Walk(_memories(kernel.body), tiling)
    walk.found |= {kernel.kind, "blocks: " + _number(blocks)}
    for block in {0, blocks // 2, blocks - 1}:
        for values in _seats(kernel, block, blocks):
            walk.values = values
            walk.through(kernel.body)
    return frozenset(walk.found)


def _seats(kernel: Kernel, block: int, blocks: int) -> Iterator[dict[str, Value]]:
    """The values that the cores of a block begin with."""
    plain = {"GetBlockIdx": block, "GetBlockNum": blocks, "GetSubBlockIdx": 0, "true": 1, "false": 0}
    if kernel.kind != MIX:
        yield {**plain, "ASCEND_IS_AIC": int("AIC" in kernel.kind), "ASCEND_IS_AIV": int("AIV" in kernel.kind)}
        return
    yield {**plain, "ASCEND_IS_AIC": 1, "ASCEND_IS_AIV": 0}
    for sub in (0, 1):
        yield {**plain, "GetBlockIdx": 2 * block + sub, "GetSubBlockIdx": sub, "ASCEND_IS_AIC": 0, "ASCEND_IS_AIV": 1}


def _memories(body: Sequence[Statement]) -> dict[str, tuple[str, str]]:
    """Tensor -> its memory and the type of its elements."""
    found: dict[str, tuple[str, str]] = {}
    for part in statements_in(body):
        if isinstance(part, GlobalTensor):
            found[part.name] = (GM, part.dtype.name)
        elif isinstance(part, LocalTensor):
            found[part.name] = (POSITIONS[part.position], part.dtype.name)
    return found


@dataclass
class _Walk:
    """Goes through statements as the scalar unit does, and notes what it meets."""

    memories: Mapping[str, tuple[str, str]]
    fields: Mapping[str, int]
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    found: set[str] = field(default_factory=set[str])
    seen: dict[int, str] = field(default_factory=dict[int, str])

    def through(self, body: Sequence[Statement]) -> None:
        """All statements of a block."""
        for part in body:
            match part:
                case For():
                    self._loop(part)
                case If(condition, then, otherwise):
                    self._branch(condition, then, otherwise)
                case Let(name, _, value):
                    self._bind(name, value)
                case Pads(name):
                    self.values[name] = 0
                case Call():
                    self.found.add(self._instruction(part))
                case SetValue():
                    self.found.add("SetValue")
                case _:
                    pass

    def _loop(self, loop: For) -> None:
        try:
            start, stop, step = (self._scope.integer(part) for part in (loop.start, loop.stop, loop.step))
        except BadScalar:
            self.found.add(f"loop of {self._pipes(loop.body)}: data decides")
            self.values[loop.variable] = 0
            self.through(loop.body)
            return
        turns = range(start, stop, max(step, 1))
        self.found.add(f"loop of {self._pipes(loop.body)}: {_number(len(turns))} turns")
        for turn in sorted({*turns[:2], *turns[-1:]}):
            self.values[loop.variable] = turn
            self.through(loop.body)

    def _branch(self, condition: Expression, then: Sequence[Statement], otherwise: Sequence[Statement]) -> None:
        known = self._value(condition)
        for way, body in ((True, then), (False, otherwise)):
            if known is None or bool(known) is way:
                self.found.add(f"branch before {self._pipes((*then, *otherwise))}: {'yes' if way else 'no'}")
                self.through(body)

    def _bind(self, name: str, value: Expression) -> None:
        for choice in _choices(value):
            known = self._value(choice.condition)
            ways = ("yes", "no") if known is None else ("yes",) if known else ("no",)
            self.found |= {f"choice of {name.rstrip('0123456789')}: {way}" for way in ways}
        known = self._value(value)
        if known is None:
            self.values.pop(name, None)
        else:
            self.values[name] = known

    @property
    def _scope(self) -> Scope:
        return Scope(self.values, self.fields, _unread)

    def _value(self, expression: Expression) -> Value | None:
        """The value, None where data decides it."""
        with suppress(BadScalar):
            return self._scope.value(expression)
        return None

    def _pipes(self, body: Sequence[Statement]) -> str:
        """The pipes that get work in a block."""
        found = {
            pipe_of(part, lambda name: self.memories[name][0]) for part in statements_in(body) if isinstance(part, Call)
        }
        found |= {S for part in statements_in(body) if isinstance(part, SetValue)}
        return ", ".join(pipe for pipe in PIPES if pipe in found) or "nothing"

    def _instruction(self, call: Call) -> str:
        """An instruction in words; the same line always gives the same ones but for what its numbers are."""
        form = form_of(call)
        words = [call.operation, form.variant, *call.template]
        for slot, argument in zip(form.slots, call.arguments, strict=True):
            match argument:
                case TensorRef(tensor):
                    words.append(" ".join(self.memories[tensor]))
                case Enumerator(name):
                    words.append(name.rpartition("::")[2])
                case Struct(name, values):
                    words.append(self._fields(name, values))
                case Expression() if slot.name in ("mask", "repeats", "id"):
                    words.append(f"{slot.name} {self._kind(slot.name, argument)}")
                case _:
                    pass
        return ", ".join(word for word in words if word)

    def _fields(self, name: str, values: Sequence[Expression | Enumerator]) -> str:
        """The fields of a struct: whether each is nothing, one or more."""
        texts = (v.name if isinstance(v, Enumerator) else self._size(v) for v in values)
        return " ".join(f"{key} {text}" for key, text in zip(STRUCTS[name], texts, strict=True) if text != "0")

    def _kind(self, slot: str, argument: Expression) -> str:
        if slot == "id":
            return "fixed" if isinstance(argument, Number) else "of a half"
        return (
            "named"
            if slot == "mask" and isinstance(argument, Name) and argument.name not in self.values
            else self._size(argument)
        )

    def _size(self, expression: Expression) -> str:
        known = self._value(expression)
        return "by data" if known is None else "n" if known > 1 else str(int(known))


def _choices(expression: Expression) -> Iterator[Choice]:
    match expression:
        case Choice():
            yield expression
        case Binary(_, left, right):
            yield from _choices(left)
            yield from _choices(right)
        case _:
            pass


def _number(count: int) -> str:
    return str(count) if count < FEW_TURNS else "several"


def _unread(tensor: str, index: int) -> Value:
    raise BadScalar(f"{tensor}[{index}] is data")
