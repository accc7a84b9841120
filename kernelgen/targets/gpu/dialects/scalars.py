"""The scalar functions of :mod:`kernelgen.nest.scalars` as C expressions, with numpy's meaning.

Half precision computes in float and rounds once. Signed integers wrap around: sums and products go through unsigned ones.
Functions that take more than an expression are helpers, printed before the kernels that use them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from kernelgen.errors import CodegenError
from kernelgen.nest.nodes import Literal
from kernelgen.targets.gpu.dialects.dialect import Dialect
from kernelgen.tensor.dtypes import BOOL, DTYPES, FLOAT32, FLOAT64, INT32, INT64, UINT32, UINT64, Category, DType

UNSIGNED = {32: UINT32, 64: UINT64}
INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "bitwise_xor": "^", "equal": "==", "not_equal": "!=", "less": "<",
    "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip
WRAPPING = ("add", "sub", "mul")

HELPERS: dict[str, str] = {
    "maximum_of": "{head}({T} a, {T} b) {{ return a != a || a > b ? a : b; }}",
    "minimum_of": "{head}({T} a, {T} b) {{ return a != a || a < b ? a : b; }}",
    "sign_of": "{head}({T} a) {{ return a > 0 ? ({T})1 : a < 0 ? ({T})-1 : a == 0 ? ({T})0 : a; }}",
    "remainder_of": """\
{head}({T} a, {T} b) {{
  if (b == 0) return 0;
  return b == ({T})-1 ? (b < 0 ? ({T})0 : ({T})(a % b)) : ({T})(a % b);
}}""",
    "quotient_of": """\
{head}({T} a, {T} b) {{
  if (b == 0) return 0;
  if (b == ({T})-1) return b < 0 ? ({T})(0 - ({U64})a) : ({T})(a / b);
  {T} q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? ({T})(q - 1) : q;
}}""",
    "floor_remainder_of": """\
{head}({T} a, {T} b) {{
  if (b == 0) return 0;
  if (b == ({T})-1) return b < 0 ? ({T})0 : ({T})(a % b);
  {T} r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? ({T})(r + b) : r;
}}""",
    "power_of": """\
{head}({T} a, {T} b) {{
  {U64} base = ({U64})a, bits = ({U64})b, result = 1;
  for (int k = 0; k < 8 * (int)sizeof({T}); ++k, base *= base) result = bits >> k & 1 ? result * base : result;
  return ({T})result;
}}""",
    "floor_quotient_of_floats": """\
{head}({T} a, {T} b) {{
  if (b == 0) return a / b;
  {T} r = fmod(a, b), q = (a - r) / b;
  if (r != 0 && (b < 0) != (r < 0)) q -= 1;
  if (q == 0) return copysign(({T})0, a / b);
  {T} f = floor(q);
  return q - f > ({T})0.5 ? f + 1 : f;
}}""",
    "floor_remainder_of_floats": """\
{head}({T} a, {T} b) {{
  {T} r = fmod(a, b);
  if (r == 0) return copysign(({T})0, b);
  return (b < 0) != (r < 0) ? r + b : r;
}}""",
    "floor_quotient": "{head}({T} a, {T} b) {{ return a / b - (a % b < 0); }}",
    "floor_modulo": "{head}({T} a, {T} b) {{ return a % b + (a % b < 0 ? b : 0); }}",
}  # fmt: skip
"""Our own device functions, by name: one for each data type {T}, as C has no templates."""


@dataclass
class Scalars:
    """Prints scalar functions in a dialect and notes which helpers and types they need."""

    dialect: Dialect
    helpers: set[tuple[str, DType]] = field(default_factory=set[tuple[str, DType]])
    types: set[DType] = field(default_factory=set[DType])

    def type(self, dtype: DType) -> str:
        """The name of a data type."""
        self.types.add(dtype)
        return self.dialect.types[dtype]

    def helper_texts(self) -> Iterator[str]:
        """The functions that were called."""
        for name, text in HELPERS.items():
            for dtype in DTYPES:
                if (name, dtype) in self.helpers:
                    kind = self.type(dtype)
                    head = f"{self.dialect.device} {kind} {name}_{dtype.name}"
                    yield text.format(head=head, T=kind, U64=self.dialect.types[UINT64])

    def literal(self, literal: Literal) -> str:
        """A constant, exact."""
        dtype, value = literal.dtype, literal.value
        if dtype == BOOL:
            return "true" if value else "false"
        if dtype.is_integer:
            return self._integer_literal(int(value), dtype)
        if dtype in self.dialect.halves:
            bits = int(np.asarray(value, dtype.numpy).view(np.uint16))
            self.types.add(dtype)
            return self.dialect.halves[dtype].of_bits.format(f"{bits:#x}")
        return self.real(float(np.asarray(value, dtype.numpy)), dtype)

    def _integer_literal(self, value: int, dtype: DType) -> str:
        if dtype.bits < 32:
            return f"(({self.type(dtype)})({value}))"
        unsigned = dtype.category is Category.UINT
        suffix = ("U" if unsigned else "") + (self.dialect.long_suffix if dtype.bits == 64 else "")
        if not unsigned and value == -(1 << (dtype.bits - 1)):
            return f"({value + 1}{suffix} - 1)"
        return f"{value}{suffix}" if value >= 0 else f"({value}{suffix})"

    def real(self, value: float, dtype: DType) -> str:
        """A constant of float32 or float64; what C has no literal for is made of its bits."""
        if dtype == FLOAT64:
            if math.isfinite(value):
                return _hexadecimal(value)
            bits = 0x7FF0000000000000 if math.isinf(value) else 0x7FF8000000000000
            text = self.dialect.double_of_bits.format(f"{bits:#x}{self.dialect.long_suffix}")
            return f"(-{text})" if value < 0 else text
        if math.isfinite(value):
            return _hexadecimal(value) + "f"
        bits = int(np.float32(value).view(np.uint32)) if math.isinf(value) else 0x7FFFFFFF
        return self.dialect.float_of_bits.format(f"{bits:#x}")

    def call(self, function: str, operands: Sequence[str], kind: DType, result: DType) -> str:
        """A function of operands of one dtype (of the last ones, for select)."""
        if function == "cast":
            return self.cast(operands[0], kind, result)
        if function == "select":
            return f"({operands[0]} ? {operands[1]} : {operands[2]})"
        if kind not in self.dialect.halves:
            return self._computed(function, operands, kind)
        own = self.dialect.halves[kind].functions.get(function)
        if own is not None:
            return own.format(*operands)
        wide = [self.widened(operand, kind) for operand in operands]
        text = self._computed(function, wide, FLOAT32)
        return text if result == BOOL else self.dialect.halves[kind].narrow.format(text)

    def widened(self, operand: str, kind: DType) -> str:
        """A value of half precision as a float."""
        return self.dialect.halves[kind].widen.format(operand)

    def cast(self, operand: str, source: DType, target: DType) -> str:
        """Floats go to integers towards zero; numbers go to bool by ``!= 0``; integers wrap."""
        if source == target:
            return operand
        if source in self.dialect.halves:
            return self.cast(self.widened(operand, source), FLOAT32, target)
        if target == BOOL:
            return f"({operand} != 0)"
        if target in self.dialect.halves:
            self.types.add(target)
            if source == FLOAT32:
                return self.dialect.halves[target].narrow.format(operand)
            return self._narrowed(operand, source, target)
        through = self._through(source, target)
        return f"({self.type(target)}){through}{operand}"

    def _narrowed(self, operand: str, source: DType, target: DType) -> str:
        """A double or an integer rounded once: integers that a half can hold are exact floats."""
        if source == FLOAT64:
            return self.dialect.halves[target].narrow_double.format(operand)
        return self.dialect.halves[target].narrow.format(f"(float){operand}")

    def _through(self, source: DType, target: DType) -> str:
        """Narrow integers are made of floats through a wider signed one, so that values out of range wrap."""
        if not (source.is_float and target.is_integer) or target in (INT32, INT64, UINT64):
            return ""
        return f"({self.type(INT64 if target == UINT32 else INT32)})"

    def _computed(self, function: str, operands: Sequence[str], kind: DType) -> str:
        if kind.is_float:
            return self._float(function, operands, kind)
        if kind == BOOL:
            return self._bool(function, operands)
        return self._integer(function, operands, kind)

    def _float(self, function: str, operands: Sequence[str], kind: DType) -> str:
        table = self.dialect.double_functions if kind == FLOAT64 else self.dialect.functions
        if function in INFIX:
            return f"({operands[0]} {INFIX[function]} {operands[1]})"
        if function in table:
            return table[function].format(*operands)
        special = _FLOAT.get(function)
        if special is None:
            return self._logical(function, operands)
        return special(self, operands, kind)

    def _integer(self, function: str, operands: Sequence[str], kind: DType) -> str:
        name = self.type(kind)
        if function in WRAPPING and kind.category is Category.INT and kind.bits >= 32:
            wide = self.type(UNSIGNED[kind.bits])
            return f"(({name})(({wide}){operands[0]} {INFIX[function]} ({wide}){operands[1]}))"
        if function in INFIX:
            text = f"({operands[0]} {INFIX[function]} {operands[1]})"
            return text if function not in (*WRAPPING, "bitwise_xor") else f"(({name}){text})"
        if function == "neg":
            return f"(({name})(0 - ({self.type(UINT64)}){operands[0]}))"
        if function == "abs":
            return f"({operands[0]} < 0 ? ({name})(0 - ({self.type(UINT64)}){operands[0]}) : {operands[0]})"
        if function in ("floor", "ceil", "trunc", "round"):
            return operands[0]
        if function in _TESTS:
            return _TESTS[function]
        if function in _INTEGER:
            return self.helper(_INTEGER[function], operands, kind)
        return self._logical(function, operands)

    def _bool(self, function: str, operands: Sequence[str]) -> str:
        operator = {"add": "||", "maximum": "||", "mul": "&&", "minimum": "&&", "sub": "!=", "bitwise_xor": "!="}
        if function in operator:
            return f"({operands[0]} {operator[function]} {operands[1]})"
        if function in INFIX:
            return f"({operands[0]} {INFIX[function]} {operands[1]})"
        if function in ("abs", "sign"):
            return operands[0]
        return _TESTS[function] if function in _TESTS else self._logical(function, operands)

    def _logical(self, function: str, operands: Sequence[str]) -> str:
        truths = [f"({operand} != 0)" for operand in operands]
        match function:
            case "logical_and":
                return f"({truths[0]} && {truths[1]})"
            case "logical_or":
                return f"({truths[0]} || {truths[1]})"
            case "logical_not":
                return f"(!{truths[0]})"
            case _:
                raise CodegenError(f"{function} of these operands has no spelling in {self.dialect.name}")

    def helper(self, name: str, operands: Sequence[str], dtype: DType) -> str:
        """A call of one of our own functions."""
        self.helpers.add((name, dtype))
        return f"{name}_{dtype.name}({', '.join(operands)})"


Special = Callable[[Scalars, Sequence[str], DType], str]
_TESTS = {"is_nan": "false", "is_inf": "false", "is_finite": "true"}
_INTEGER = {
    "maximum": "maximum_of", "minimum": "minimum_of", "sign": "sign_of", "mod": "remainder_of",
    "floor_div": "quotient_of", "floor_mod": "floor_remainder_of", "pow": "power_of",
}  # fmt: skip


def _one_over(scalars: Scalars, operands: Sequence[str], kind: DType) -> str:
    return f"({scalars.real(1.0, kind)} / {operands[0]})"


def _own(name: str) -> Special:
    return lambda scalars, operands, kind: scalars.helper(name, operands, kind)


_FLOAT: dict[str, Special] = {
    "neg": lambda scalars, operands, kind: f"(-{operands[0]})",
    "reciprocal": _one_over,
    "maximum": _own("maximum_of"),
    "minimum": _own("minimum_of"),
    "sign": _own("sign_of"),
    "mod": lambda scalars, operands, kind: scalars.call("fmod", operands, kind, kind),
    "floor_div": _own("floor_quotient_of_floats"),
    "floor_mod": _own("floor_remainder_of_floats"),
    "is_nan": lambda scalars, operands, kind: f"({operands[0]} != {operands[0]})",
    "is_inf": lambda scalars, operands, kind: (
        f"({_magnitude(scalars, operands[0], kind)} == {scalars.real(math.inf, kind)})"
    ),
    "is_finite": lambda scalars, operands, kind: (
        f"({_magnitude(scalars, operands[0], kind)} < {scalars.real(math.inf, kind)})"
    ),
}


def _magnitude(scalars: Scalars, operand: str, kind: DType) -> str:
    return scalars.call("abs", [operand], kind, kind)


def _hexadecimal(value: float) -> str:
    """Short decimal text where that is exact, else hexadecimal."""
    text = repr(value)
    return text if float(text) == value and len(text) <= 8 and value == int(value * 1024) / 1024 else value.hex()
