"""A kernel's body: registers, variables, labels and instructions; an inner block has registers of its own."""

from __future__ import annotations

import struct

from kernelgen.simulators.ptx.language.add_with_carry import REGISTERS, has_carry, without_carry
from kernelgen.simulators.ptx.language.cursor import Cursor
from kernelgen.simulators.ptx.language.declarations import SPACES, read_variable
from kernelgen.simulators.ptx.language.nodes import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Variable,
    Vector,
)


class BodyParser:
    """Reads a block in braces and what it holds; the lists below are what it found."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._scopes: list[dict[str, str]] = []
        self._blocks = 0
        self.registers: dict[str, str] = {}
        self.variables: list[Variable] = []
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.tables: dict[str, tuple[str, ...]] = {}

    def block(self) -> None:
        """``{ ... }``; registers declared inside hide those of the same name outside."""
        self._cursor.expect("{")
        self._scopes.append({})
        self._blocks += 1
        while not self._cursor.accept("}"):
            self._statement()
        self._scopes.pop()

    def _statement(self) -> None:
        cursor = self._cursor
        text = cursor.text
        if not text:
            raise cursor.error("the text ends inside of a kernel")
        if text == "{":
            self.block()
        elif text == ".reg" or text.startswith(".reg."):
            self._registers()
        elif text in SPACES:
            self.variables += read_variable(cursor)
        elif cursor.ahead(1) == ":":
            self._label()
        elif text.startswith("."):
            cursor.skip_statement()  # .pragma and hints
        else:
            self._instruction()

    def _registers(self) -> None:
        """``.reg .f32 %f<48>;`` or ``.reg.b32 %r1, %r2;``."""
        cursor = self._cursor
        kind = cursor.take().removeprefix(".reg").removeprefix(".") or cursor.take().removeprefix(".")
        while not cursor.accept(";"):
            name = cursor.take()
            if cursor.accept("<"):
                count = cursor.integer()
                cursor.expect(">")
                self._declare([f"{name}{number}" for number in range(count)], kind)
            else:
                self._declare([name], kind)
            cursor.accept(",")

    def _declare(self, names: list[str], kind: str) -> None:
        suffix = f"@{self._blocks}" if len(self._scopes) > 1 else ""
        for name in names:
            self._scopes[-1][name] = name + suffix
            self.registers[name + suffix] = kind

    def _label(self) -> None:
        """``name:``, or a table of labels ``name: .branchtargets a, b;``."""
        cursor = self._cursor
        name = cursor.take()
        cursor.expect(":")
        if not cursor.accept(".branchtargets"):
            self.labels[name] = len(self.instructions)
            return
        targets = [cursor.take()]
        while cursor.accept(","):
            targets.append(cursor.take())
        cursor.expect(";")
        self.tables[name] = tuple(targets)

    def _instruction(self) -> None:
        cursor = self._cursor
        place = cursor.token.place
        guard: Register | Negated | None = None
        if cursor.accept("@"):
            guard = self._predicate()
        opcode = tuple(cursor.take().split("."))
        operands = list[Operand]()
        while not cursor.accept(";"):
            operands.append(self._operand())
            if cursor.text != ";":
                cursor.expect(",")
        instruction = Instruction(opcode, tuple(operands), place, guard)
        if has_carry(instruction):
            self.registers |= REGISTERS
            self.instructions += without_carry(instruction)
        else:
            self.instructions.append(instruction)

    def _predicate(self) -> Register | Negated:
        return Negated(self._register()) if self._cursor.accept("!") else self._register()

    def _register(self) -> Register:
        return Register(self._resolve(self._cursor.take()))

    def _resolve(self, name: str) -> str:
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), name)

    def _operand(self) -> Operand:
        cursor = self._cursor
        if cursor.accept("{"):
            return self._vector("}")
        if cursor.accept("("):
            return self._vector(")")
        if cursor.accept("["):
            return self._address()
        if cursor.text == "!":
            return self._predicate()
        if cursor.token.kind == "number" or cursor.text in ("-", "+"):
            return self._immediate()
        return self._named()

    def _named(self) -> Operand:
        """A register, a pair of destinations, or a symbol with an offset."""
        cursor = self._cursor
        name = self._resolve(cursor.take())
        if cursor.accept("|"):
            return Pair(Register(name), self._register())
        if name in self.registers or name.startswith("%") or name == "_":
            return Register(name)
        return Symbol(name, cursor.integer() if cursor.text in ("+", "-") else 0)

    def _vector(self, end: str) -> Vector:
        """What braces hold, or the parentheses of a call."""
        cursor = self._cursor
        parts = list[Operand]()
        while not cursor.accept(end):
            parts.append(self._operand())
            cursor.accept(",")
        return Vector(tuple(parts))

    def _address(self) -> Address:
        cursor = self._cursor
        base = self._operand()
        offset = cursor.integer() if cursor.text in ("+", "-") else 0
        cursor.expect("]")
        match base:
            case Register() | Immediate():
                return Address(base, offset)
            case Symbol(name, inner):
                return Address(Symbol(name), offset + inner)
            case _:
                raise cursor.error(f"{base} is no address")

    def _immediate(self) -> Immediate:
        text = self._cursor.text
        if text[:2] in ("0f", "0F"):
            return Immediate(int(self._cursor.take()[2:], 16), 32)
        if text[:2] in ("0d", "0D"):
            return Immediate(int(self._cursor.take()[2:], 16), 64)
        if "." in text:
            return Immediate(struct.unpack("<Q", struct.pack("<d", float(self._cursor.take())))[0], 64)
        return Immediate(self._cursor.integer())
