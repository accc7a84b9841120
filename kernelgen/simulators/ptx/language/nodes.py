"""The parts of a PTX module as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Register:
    """A register by its name, special ones (``%tid.x``) included; ``_`` is the sink that takes and forgets."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Negated:
    """A predicate operand ``!%p1``."""

    register: Register

    def __str__(self) -> str:
        return f"!{self.register}"


@dataclass(frozen=True)
class Immediate:
    """A constant: an integer, or the bits of a float that was written as 0f... or 0d..."""

    value: int
    width: int = 0  # 32 or 64 for the bits of a float; 0 for an integer

    def __str__(self) -> str:
        return f"0{'f' if self.width == 32 else 'd'}{self.value:0{self.width // 4}X}" if self.width else str(self.value)


@dataclass(frozen=True)
class Symbol:
    """The address of a variable plus a number of bytes, or a label."""

    name: str
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.name}+{self.offset}" if self.offset else self.name


@dataclass(frozen=True)
class Address:
    """A memory operand ``[base+offset]``."""

    base: Register | Symbol | Immediate
    offset: int = 0

    def __str__(self) -> str:
        return f"[{self.base}+{self.offset}]" if self.offset else f"[{self.base}]"


@dataclass(frozen=True)
class Vector:
    """Several operands in braces."""

    parts: tuple[Operand, ...]

    def __str__(self) -> str:
        return "{" + ", ".join(map(str, self.parts)) + "}"


@dataclass(frozen=True)
class Pair:
    """Two destinations ``%r1|%p1``."""

    first: Register
    second: Register

    def __str__(self) -> str:
        return f"{self.first}|{self.second}"


Operand = Register | Negated | Immediate | Symbol | Address | Vector | Pair


@dataclass(frozen=True)
class Place:
    """Where an instruction stands: its line in the PTX text, and the line of the CUDA source where that is known."""

    line: int
    source_line: int = 0


@dataclass(frozen=True)
class Instruction:
    """``@guard opcode operands;`` with the opcode's parts between its dots."""

    opcode: tuple[str, ...]
    operands: tuple[Operand, ...]
    place: Place
    guard: Register | Negated | None = None

    def __str__(self) -> str:
        guard = f"@{self.guard} " if self.guard else ""
        return f"{guard}{'.'.join(self.opcode)} {', '.join(map(str, self.operands))}".rstrip()


@dataclass(frozen=True)
class Variable:
    """A variable in a state space; ``size`` is in bytes, 0 for the dynamic shared array; ``data`` is its first content."""

    space: str
    name: str
    size: int
    align: int
    data: bytes | None = None


@dataclass(frozen=True)
class Kernel:
    """An entry: parameters, registers with their types, variables, instructions, and labels as positions among them."""

    name: str
    parameters: tuple[Variable, ...]
    registers: Mapping[str, str]
    variables: tuple[Variable, ...]
    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


@dataclass(frozen=True)
class Module:
    """A PTX text: what it was written for, its kernels by name, and variables that they share."""

    target: str
    kernels: Mapping[str, Kernel]
    variables: tuple[Variable, ...]
