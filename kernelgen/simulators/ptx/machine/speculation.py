"""What a compiler computes ahead of a branch, from registers that only one side has written.

Compilers evaluate a comparison before the branch that decides whether a thread needs it. So reading a register that was never
written is no fault: its result counts as unwritten too. The fault is to use such a result as an address, a stored value, a
guard, or a value that is exchanged between lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from kernelgen.simulators.ptx.instructions import arithmetic
from kernelgen.simulators.ptx.instructions.operands import Action, Scope
from kernelgen.simulators.ptx.language.nodes import Instruction, Negated, Operand, Register
from kernelgen.simulators.ptx.state.frame import Frame

PURE = frozenset(arithmetic.BUILDERS)

DECIDING = {"and": False, "or": True}
"""A truth of one operand that settles the result, whatever the other would be."""

Missing = Callable[[Frame], np.ndarray]


def only_computes(instruction: Instruction) -> bool:
    """Whether an instruction does nothing but make one register of others."""
    return instruction.opcode[0] in PURE and isinstance(instruction.operands[0], Register)


def passing_on(instruction: Instruction, scope: Scope, build: Callable[[Instruction, Scope], Action]) -> Action:
    """The action of an instruction that only computes: its result is missing in the lanes that lack what decides it."""
    target, *sources = instruction.operands
    action = build(instruction, replace(scope, checks=False))
    if not isinstance(target, Register) or not any(_unsure(scope, source) for source in sources):
        return action
    missing, slot = _missing_result(scope, instruction, sources), scope.slots[target.name]

    def act(frame: Frame) -> None:
        lacking = missing(frame)
        action(frame)
        if lacking.any():
            frame.state.written(slot)[frame.positions()[lacking]] = False

    return act


def _missing_result(scope: Scope, instruction: Instruction, sources: Sequence[Operand]) -> Missing:
    base = instruction.opcode[0]
    if base == "selp":
        return _missing_choice(scope, instruction, sources)
    lacking = [_missing(scope, source) for source in sources]
    if instruction.opcode[-1] != "pred" or base not in DECIDING:
        return lambda frame: _any(each(frame) for each in lacking)
    truths = [_truth(scope, source, instruction) for source in sources]

    def undecided(frame: Frame) -> np.ndarray:
        absent = [each(frame) for each in lacking]
        decided = (read(frame) == DECIDING[base] for read in truths)
        return _any(absent) & ~_any(is_so & ~gone for is_so, gone in zip(decided, absent, strict=True))

    return undecided


def _missing_choice(scope: Scope, instruction: Instruction, sources: Sequence[Operand]) -> Missing:
    """``selp d, a, b, p``: what is not chosen does not matter."""
    first, second, condition = (_missing(scope, source) for source in sources)
    truth = _truth(scope, sources[2], instruction)
    return lambda frame: condition(frame) | np.where(truth(frame), first(frame), second(frame))


def _truth(scope: Scope, source: Operand, instruction: Instruction) -> Callable[[Frame], np.ndarray]:
    return replace(scope, checks=False).reader(source, "pred", instruction)


def _missing(scope: Scope, source: Operand) -> Missing:
    if not _unsure(scope, source):
        return lambda frame: np.zeros(frame.count, np.bool_)
    slot = scope.slots[_register(source)]
    return lambda frame: ~frame.pick(frame.state.written(slot))


def _unsure(scope: Scope, operand: Operand) -> bool:
    return _register(operand) in scope.unsure


def _register(operand: Operand) -> str:
    match operand:
        case Register(name) | Negated(Register(name)):
            return name
        case _:
            return ""


def _any(masks: Iterable[np.ndarray]) -> np.ndarray:
    return np.logical_or.reduce(np.broadcast_arrays(*masks))
