"""Instructions as actions: the tables of every file that implements some, joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kernelgen.simulators.ptx.instructions import access, arithmetic, asynchronous, atomics, matrix, warp
from kernelgen.simulators.ptx.instructions.approximate import FUNCTIONS
from kernelgen.simulators.ptx.instructions.arithmetic import unknown
from kernelgen.simulators.ptx.instructions.atomics import OPERATIONS
from kernelgen.simulators.ptx.instructions.compare import COMBINE
from kernelgen.simulators.ptx.instructions.operands import Action, Scope
from kernelgen.simulators.ptx.language.nodes import Instruction
from kernelgen.simulators.ptx.language.types import is_type
from kernelgen.simulators.ptx.machine.speculation import only_computes, passing_on
from kernelgen.simulators.ptx.state.frame import Frame


def _nothing(instruction: Instruction, scope: Scope) -> Action:
    """Hints change no value."""
    return lambda frame: None


def _fence(instruction: Instruction, scope: Scope) -> Action:
    """``membar.gl`` and ``fence.acq_rel.gpu``; one for the block alone orders nothing that barriers do not."""
    if {"cta", "proxy", "mbarrier_init"} & set(instruction.opcode):
        return _nothing(instruction, scope)
    return lambda frame: frame.state.fence(slice(None) if frame.index is None else frame.index)


ROUNDING = frozenset({"rn", "rz", "rm", "rp"})
ARITHMETIC = ROUNDING | {"ftz", "sat", "approx", "full", "NaN", "relu", "lo", "hi", "wide"}
CONVERSION = ROUNDING | {"rni", "rzi", "rmi", "rpi", "rna", "ftz", "sat", "relu"}
COMPARISON = frozenset({"ftz", *COMBINE})
MEMORY = frozenset(
    {
        *("global", "shared", "local", "param", "const", "nc", "v2", "v4", "v8", "volatile", "weak"),
        *("relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys", "noftz", *OPERATIONS),
        *("ca", "cg", "cs", "lu", "cv", "wb", "wt", "L1", "L2"),  # cache hints
    }
)
MODIFIERS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("add", "sub", "mul", "mad", "fma", "div", "rem", "min", "max", "abs", "neg"), ARITHMETIC),
    **dict.fromkeys(FUNCTIONS, ARITHMETIC),
    **dict.fromkeys(("ld", "ldu", "st", "atom", "red"), MEMORY),
    "cvt": CONVERSION,
    "setp": COMPARISON,
    "set": COMPARISON,
}
IGNORED = ("prefetch", "prefetchu", "discard", "applypriority", "griddepcontrol", "pmevent")
BUILDERS: Mapping[str, Callable[[Instruction, Scope], Action]] = {
    **arithmetic.BUILDERS,
    **access.BUILDERS,
    **atomics.BUILDERS,
    **asynchronous.BUILDERS,
    **warp.BUILDERS,
    **matrix.BUILDERS,
    **dict.fromkeys(IGNORED, _nothing),
    **dict.fromkeys(("membar", "fence"), _fence),
}


def decode(instruction: Instruction, scope: Scope) -> Action:
    """The action of an instruction, under its guard. Raises PtxError for what is not implemented."""
    build = BUILDERS.get(instruction.opcode[0])
    if build is None or not _modifiers_known(instruction):
        raise unknown(instruction)
    try:
        action = passing_on(instruction, scope, build) if only_computes(instruction) else build(instruction, scope)
    except (KeyError, ValueError, IndexError) as error:
        raise unknown(instruction) from error
    return action if instruction.guard is None else _guarded(action, instruction, scope)


def _modifiers_known(instruction: Instruction) -> bool:
    """A modifier that is passed over would give a wrong result in silence."""
    base, *rest = instruction.opcode
    if base not in MODIFIERS:
        return True
    if base in ("setp", "set"):
        rest = rest[1:]  # the comparison, which has a table of its own
    return all(is_type(part) or part.partition("::")[0] in MODIFIERS[base] for part in rest)


def _guarded(action: Action, instruction: Instruction, scope: Scope) -> Action:
    assert instruction.guard is not None
    read = scope.reader(instruction.guard, "pred", instruction)

    def act(frame: Frame) -> None:
        chosen = frame.narrow(read(frame))
        if chosen is not None:
            action(chosen)

    return act
