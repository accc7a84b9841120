"""Typed SSA values, scalar or vector, with operators: instructions are written as arithmetic.

A :class:`Value` of one lane is splatted where it meets a vector, and Python numbers become constants of the other
operand's kind, so formulas read the same at every width.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import isnan

from kernelgen.targets.cpu.text.builder import Function

_INTRINSIC_KIND = {"float": "f32", "double": "f64", "half": "f16"}
_INTEGER_OF = {"float": "i32", "double": "i64", "half": "i16"}
_FLOAT_OF = {"i32": "float", "i64": "double", "i16": "half"}
_BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "half": 16, "float": 32, "double": 64}


@dataclass(frozen=True, eq=False)
class Value:
    """``text`` is a register or a constant of LLVM type ``kind``, or of ``lanes`` of them."""

    function: Function
    text: str
    kind: str
    lanes: int = 1

    @property
    def type(self) -> str:
        """The LLVM type."""
        return vector_type(self.kind, self.lanes)

    @property
    def typed(self) -> str:
        """Type and text, as operands are written."""
        return f"{self.type} {self.text}"

    @property
    def is_float(self) -> bool:
        """True for half, float and double."""
        return self.kind in _INTRINSIC_KIND

    @property
    def is_number(self) -> bool:
        """Whether it is a constant of float or double other than NaN."""
        _, is_literal, digits = self.text.rstrip(")").partition("0x")
        return bool(is_literal) and not isnan(struct.unpack(">d", bytes.fromhex(digits))[0])

    def __add__(self, other: Value | float) -> Value:
        return self.binary("fadd" if self.is_float else "add", other)

    def __sub__(self, other: Value | float) -> Value:
        return self.binary("fsub" if self.is_float else "sub", other)

    def __mul__(self, other: Value | float) -> Value:
        return self.binary("fmul" if self.is_float else "mul", other)

    def __truediv__(self, other: Value | float) -> Value:
        return self.binary("fdiv", other)

    def __and__(self, other: Value | int) -> Value:
        return self.binary("and", other)

    def __or__(self, other: Value | int) -> Value:
        return self.binary("or", other)

    def __xor__(self, other: Value | int) -> Value:
        return self.binary("xor", other)

    def __lshift__(self, other: Value | int) -> Value:
        return self.binary("shl", other)

    def __neg__(self) -> Value:
        if self.is_float:
            return self._made(f"fneg {self.typed}")
        return self.like(0) - self

    def __invert__(self) -> Value:
        return self ^ -1

    def binary(self, opcode: str, other: Value | float) -> Value:
        """``opcode self, other`` on operands of one kind."""
        left, right = unify(self, self.like(other))
        return left._made(f"{opcode} {left.typed}, {right.text}")

    def compare(self, predicate: str, other: Value | float) -> Value:
        """A mask: ``predicate`` is one of fcmp's for floats and one of icmp's for integers."""
        left, right = unify(self, self.like(other))
        opcode = "fcmp" if self.is_float else "icmp"
        return left._made(f"{opcode} {predicate} {left.typed}, {right.text}", "i1")

    def select(self, yes: Value, no: Value | float) -> Value:
        """Per lane ``yes`` where this mask holds, else ``no``."""
        no = yes.like(no)
        lanes = max(self.lanes, yes.lanes, no.lanes)
        yes, no = yes.splat(lanes), no.splat(lanes)
        return yes._made(f"select {self.splat(lanes).typed}, {yes.typed}, {no.typed}")

    def convert(self, opcode: str, kind: str) -> Value:
        """A conversion instruction; no instruction when the kind is the same."""
        if kind == self.kind:
            return self
        return self._made(f"{opcode} {self.typed} to {vector_type(kind, self.lanes)}", kind)

    def narrowed(self) -> Value:
        """A double as the nearest float. LLVM sees no further than this float.

        Where it is rounded on to half and its sign is all that is wanted, LLVM would take the sign from the double rounded
        to half at once, by a function that nobody has.
        """
        return self.convert("fptrunc", "float").intrinsic("arithmetic.fence")

    def bits(self) -> Value:
        """The same bits as an integer."""
        return self.convert("bitcast", _INTEGER_OF[self.kind])

    def as_float(self) -> Value:
        """The same bits as a floating point number."""
        return self.convert("bitcast", _FLOAT_OF[self.kind])

    def intrinsic(self, name: str, *others: Value | float) -> Value:
        """``llvm.name`` of operands of one kind, for example ``floor`` or ``smax``."""
        operands = unify(self, *(self.like(other) for other in others))
        return operands[0]._called(f"llvm.{name}.{type_suffix(self.kind, operands[0].lanes)}", operands)

    def fma(self, factor: Value | float, addend: Value | float) -> Value:
        """``self * factor + addend``, rounded once where the processor can."""
        return self.intrinsic("fmuladd", factor, addend)

    def nearest(self) -> Value:
        """The integers of 32 bits nearest to floats, to even halfway; unspecified of floats beyond them."""
        kinds = [type_suffix(kind, self.lanes) for kind in ("i32", self.kind)]
        made = vector_type("i32", self.lanes)
        callee = self.function.module.declare(f"llvm.lrint.{'.'.join(kinds)}", made, self.type)
        return self._made(f"call {made} {callee}({self.typed})", "i32")

    def splat(self, lanes: int) -> Value:
        """The value in every lane."""
        if lanes == self.lanes:
            return self
        if not self.text.startswith("%"):
            return Value(self.function, f"splat ({self.typed})", self.kind, lanes)
        whole = vector_type(self.kind, lanes)
        first = self.function.assign(f"insertelement {whole} poison, {self.typed}, i64 0")
        return Value(
            self.function,
            self.function.assign(f"shufflevector {whole} {first}, {whole} poison, <{lanes} x i32> zeroinitializer"),
            self.kind,
            lanes,
        )

    def lane(self, number: Value | int) -> Value:
        """One lane as a scalar."""
        if self.lanes == 1:
            return self
        position = number.text if isinstance(number, Value) else number
        return Value(self.function, self.function.assign(f"extractelement {self.typed}, i64 {position}"), self.kind)

    def halves(self) -> tuple[Value, Value]:
        """The lower and the upper half of the lanes."""
        half = self.lanes // 2
        return self._lane_range(0, half), self._lane_range(half, half)

    def shuffle(self, other: Value, lanes: list[int]) -> Value:
        """The numbered lanes of two vectors; the other one's follow this one's."""
        order = ", ".join(f"i32 {lane}" for lane in lanes)
        text = self.function.assign(f"shufflevector {self.typed}, {other.typed}, <{len(lanes)} x i32> <{order}>")
        return Value(self.function, text, self.kind, len(lanes))

    def _lane_range(self, start: int, count: int) -> Value:
        order = ", ".join(f"i32 {start + i}" for i in range(count))
        if count == 1:
            return self.lane(start)
        text = self.function.assign(f"shufflevector {self.typed}, {self.type} poison, <{count} x i32> <{order}>")
        return Value(self.function, text, self.kind, count)

    def like(self, value: Value | float) -> Value:
        """A Python number as a constant of this kind; values stay."""
        return value if isinstance(value, Value) else constant(self.function, value, self.kind)

    def each_lane(self, callee: str, *others: Value) -> Value:
        """A scalar function ``kind callee(kind, ...)`` applied lane by lane."""
        operands = unify(self, *others)
        signature = ", ".join([self.kind] * len(operands))
        name = self.function.module.declare(callee, self.kind, signature)
        results = [self._scalar_call(name, operands, number) for number in range(operands[0].lanes)]
        return gather_lanes(results)

    def _scalar_call(self, name: str, operands: tuple[Value, ...], number: int) -> Value:
        arguments = ", ".join(operand.lane(number).typed for operand in operands)
        return Value(self.function, self.function.assign(f"call {self.kind} {name}({arguments})"), self.kind)

    def _called(self, name: str, operands: tuple[Value, ...]) -> Value:
        callee = self.function.module.declare(name, self._type_of(operands), ", ".join(o.type for o in operands))
        return operands[0]._made(f"call {operands[0].type} {callee}({', '.join(o.typed for o in operands)})")

    @staticmethod
    def _type_of(operands: tuple[Value, ...]) -> str:
        return operands[0].type

    def _made(self, instruction: str, kind: str | None = None) -> Value:
        return Value(self.function, self.function.assign(instruction), kind or self.kind, self.lanes)


def vector_type(kind: str, lanes: int) -> str:
    """The LLVM type of so many lanes of a kind."""
    return kind if lanes == 1 else f"<{lanes} x {kind}>"


def type_suffix(kind: str, lanes: int) -> str:
    """How overloaded intrinsics name the type: ``v8f32``."""
    element = _INTRINSIC_KIND.get(kind, kind)
    return element if lanes == 1 else f"v{lanes}{element}"


def bit_width(kind: str) -> int:
    """The number of bits of a scalar kind."""
    return _BITS[kind]


def unify(*values: Value) -> tuple[Value, ...]:
    """All values at the widest number of lanes among them."""
    lanes = max(value.lanes for value in values)
    return tuple(value.splat(lanes) for value in values)


def gather_lanes(scalars: list[Value]) -> Value:
    """A vector made of scalars; a single scalar stays."""
    first = scalars[0]
    if len(scalars) == 1:
        return first
    whole, text = vector_type(first.kind, len(scalars)), "poison"
    for number, scalar in enumerate(scalars):
        text = first.function.assign(f"insertelement {whole} {text}, {scalar.typed}, i64 {number}")
    return Value(first.function, text, first.kind, len(scalars))


def constant(function: Function, value: float, kind: str) -> Value:
    """The scalar constant ``value`` in ``function``. Integers wrap to the width of ``kind``; floats round to it."""
    return Value(function, _literal(value, kind), kind)


def iota(function: Function, kind: str, lanes: int) -> Value:
    """The lane numbers 0, 1, 2, ... of ``lanes`` lanes as integers of the type ``kind``, in ``function``."""
    if lanes == 1:
        return constant(function, 0, kind)
    return Value(function, "<" + ", ".join(f"{kind} {i}" for i in range(lanes)) + ">", kind, lanes)


def _literal(value: float, kind: str) -> str:
    if kind == "i1":
        return "true" if value else "false"
    if kind in ("float", "double"):
        number = float(value) if kind == "double" else _rounded_to_single(float(value))
        return "0x" + struct.pack(">d", number).hex().upper()
    width = _BITS[kind]
    wrapped = int(value) & ((1 << width) - 1)
    return str(wrapped - (1 << width) if wrapped >> (width - 1) else wrapped)


def _rounded_to_single(number: float) -> float:
    try:
        return struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
