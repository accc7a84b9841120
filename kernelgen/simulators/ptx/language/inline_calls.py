"""Device functions that the compiler did not inline, put in the place of their calls.

    st.param.f64 [param0], %fd1;                mov.f64 param0+0, %fd1;
    call (retval0), f, (param0);        ->      ... the body of f, its registers and labels renamed ...
    ld.param.f64 %fd2, [retval0+8];             mov.f64 %fd2, retval0+8;

What a call passes goes through registers named after the parameter and the offset in it; ``ret`` becomes a branch behind
the body. That is what the device does too, but for the registers. Functions that call themselves are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kernelgen.simulators.ptx.language.errors import PtxError
from kernelgen.simulators.ptx.language.nodes import (
    Address,
    Instruction,
    Kernel,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Variable,
    Vector,
)
from kernelgen.simulators.ptx.language.types import width_of

CALL, PARAMETER = "call", "param"


@dataclass(frozen=True)
class Function:
    """A device function: its body as that of a kernel, with ``results`` as it has parameters."""

    body: Kernel
    results: tuple[Variable, ...]


def without_calls(kernel: Kernel, functions: Mapping[str, Function]) -> Kernel:
    """The kernel with its calls replaced. Raises PtxError for a function that has no body here, or calls itself."""
    if all(instruction.opcode[0] != CALL for instruction in kernel.instructions):
        return kernel
    return _Writer(functions).whole(kernel)


@dataclass(frozen=True)
class _Names:
    """How names of a body read where it is put: parts of parameters by the caller's names, others behind a prefix."""

    prefix: str
    known: frozenset[str]
    passed: Mapping[str, str]

    def of(self, name: str) -> str:
        """The name of a register, label or variable; special registers and what is outside of the body keep theirs."""
        return self.prefix + name if name in self.known else name


@dataclass(eq=False)
class _Writer:
    functions: Mapping[str, Function]
    registers: dict[str, str] = field(default_factory=dict[str, str])
    variables: list[Variable] = field(default_factory=list[Variable])
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    active: list[str] = field(default_factory=list[str])
    calls: int = 0

    def whole(self, kernel: Kernel) -> Kernel:
        """A kernel: its own parameters stay in their space."""
        self.body(kernel, _Names("", frozenset(), {}), "")
        return replace(
            kernel,
            registers=self.registers,
            variables=tuple(self.variables),
            instructions=tuple(self.instructions),
            labels=self.labels,
            tables=self.tables,
        )

    def body(self, kernel: Kernel, names: _Names, end: str) -> None:
        """A body; of a function (``end`` is the label behind it) or of the kernel itself."""
        self.registers |= {names.of(name): kind for name, kind in kernel.registers.items()}
        own = [one for one in kernel.variables if one.space != PARAMETER]
        self.variables += [replace(one, name=names.of(one.name)) for one in own]
        self.tables |= {names.of(name): tuple(map(names.of, to)) for name, to in kernel.tables.items()}
        places: dict[int, list[str]] = {}
        for label, position in kernel.labels.items():
            places.setdefault(position, []).append(names.of(label))
        temporaries = {one.name for one in kernel.variables if one.space == PARAMETER}
        for position, instruction in enumerate(kernel.instructions):
            self.labels |= dict.fromkeys(places.get(position, ()), len(self.instructions))
            self.instruction(instruction, names, temporaries, end)
        self.labels |= dict.fromkeys(places.get(len(kernel.instructions), ()), len(self.instructions))

    def instruction(self, given: Instruction, names: _Names, temporaries: set[str], end: str) -> None:
        """One instruction, as it reads in its new place."""
        operands = tuple(_renamed(operand, names) for operand in given.operands)
        guard = None if given.guard is None else _renamed(given.guard, names)
        assert guard is None or isinstance(guard, Register | Negated)
        if given.opcode[0] == CALL:
            self.call(given, names)
        elif given.opcode[0] == "ret" and end:
            self.instructions.append(Instruction(("bra",), (Symbol(end),), given.place, guard))
        elif given.opcode[:2] in (("ld", PARAMETER), ("st", PARAMETER)) and _passed(given, names, temporaries):
            self.instructions.append(self.move(given, operands, names, guard))
        else:
            self.instructions.append(replace(given, operands=operands, guard=guard))

    def move(
        self, given: Instruction, operands: tuple[Operand, ...], names: _Names, guard: Register | Negated | None
    ) -> Instruction:
        """``ld.param`` or ``st.param`` of what a call passes, as a ``mov``."""
        is_load = given.opcode[0] == "ld"
        address, value = (given.operands[1], operands[0]) if is_load else (given.operands[0], operands[1])
        assert isinstance(address, Address)
        if isinstance(value, Vector) or not isinstance(address.base, Symbol):
            raise PtxError(f"`{given}` passes a vector, which is not interpreted", given.place.line)
        kind = given.opcode[-1]
        place = f"{_stands_for(address.base.name, names)}+{address.offset}"
        register = Register(f"{place}:{width_of(kind)}")  # another call may pass a narrower one at this place
        self.registers.setdefault(register.name, kind)
        pair = (value, register) if is_load else (register, value)
        return Instruction(("mov", kind), pair, given.place, guard)

    def call(self, given: Instruction, names: _Names) -> None:
        """A function's body in place of ``call (results), name, (arguments)``."""
        lists = [operand for operand in given.operands if isinstance(operand, Vector)]
        called = [operand.name for operand in given.operands if isinstance(operand, Symbol)]
        function = self.functions.get(called[0]) if called else None
        if function is None or given.guard is not None or called[0] in self.active:
            raise PtxError(f"`{given}` is a call that cannot be put in place", given.place.line)
        results = lists[0].parts if function.results else ()
        arguments = lists[-1].parts if function.body.parameters else ()
        formal = (*function.results, *function.body.parameters)
        actual = [_stands_for(part.name, names) for part in (*results, *arguments) if isinstance(part, Symbol)]
        self.calls += 1
        prefix = f"{called[0]}#{self.calls}."
        body = function.body
        inside = {*body.registers, *body.labels, *body.tables, *(one.name for one in body.variables)}
        passed = {one.name: name for one, name in zip(formal, actual, strict=True)}
        self.active.append(called[0])
        self.body(body, _Names(prefix, frozenset(inside), passed), f"{prefix}end")
        self.active.pop()
        self.labels[f"{prefix}end"] = len(self.instructions)


def _passed(instruction: Instruction, names: _Names, temporaries: set[str]) -> bool:
    """Whether an access to parameters is one of a call's: the caller's temporaries, or a function's own."""
    bases = [operand.base for operand in instruction.operands if isinstance(operand, Address)]
    return any(isinstance(base, Symbol) and (base.name in temporaries or base.name in names.passed) for base in bases)


def _stands_for(name: str, names: _Names) -> str:
    """The caller's name of a parameter, else the own name of a temporary."""
    return names.passed.get(name) or names.of(name)


def _renamed(operand: Operand, names: _Names) -> Operand:
    match operand:
        case Register(name):
            return Register(names.of(name))
        case Negated(register):
            return Negated(Register(names.of(register.name)))
        case Symbol(name, offset):
            return Symbol(names.of(name), offset)
        case Pair(first, second):
            return Pair(Register(names.of(first.name)), Register(names.of(second.name)))
        case Vector(parts):
            return Vector(tuple(_renamed(part, names) for part in parts))
        case Address(Register(name), offset):
            return Address(Register(names.of(name)), offset)
        case Address(Symbol(name, inner), offset):
            return Address(Symbol(names.of(name), inner), offset)
        case _:
            return operand
