"""Scalar expressions of a kernel: what the scalar unit computes. Integers are int32, division goes towards zero, as in C.

Python's operators build them and fold what is known: ``block * 64 + i``. The nodes themselves never fold, so that the
reader gives back exactly what the text says.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.tensor.dtypes import DType


class Expression:
    """A scalar; the operators below fold constants and drop ``+ 0`` and ``* 1``."""

    def __add__(self, other: Scalar) -> Expression:
        return _fold("+", self, wrap(other))

    def __radd__(self, other: Scalar) -> Expression:
        return _fold("+", wrap(other), self)

    def __sub__(self, other: Scalar) -> Expression:
        return _fold("-", self, wrap(other))

    def __rsub__(self, other: Scalar) -> Expression:
        return _fold("-", wrap(other), self)

    def __mul__(self, other: Scalar) -> Expression:
        return _fold("*", self, wrap(other))

    def __rmul__(self, other: Scalar) -> Expression:
        return _fold("*", wrap(other), self)

    def __floordiv__(self, other: Scalar) -> Expression:
        return _fold("/", self, wrap(other))

    def __mod__(self, other: Scalar) -> Expression:
        return _fold("%", self, wrap(other))

    def __lt__(self, other: Scalar) -> Expression:
        return Binary("<", self, wrap(other))

    def __le__(self, other: Scalar) -> Expression:
        return Binary("<=", self, wrap(other))

    def __gt__(self, other: Scalar) -> Expression:
        return Binary(">", self, wrap(other))

    def __ge__(self, other: Scalar) -> Expression:
        return Binary(">=", self, wrap(other))

    def equals(self, other: Scalar) -> Expression:
        """``self == other`` in the text; Python's own ``==`` compares nodes."""
        return Binary("==", self, wrap(other))


@dataclass(frozen=True)
class Number(Expression):
    """A literal: an int, or a float that prints with its type's full precision."""

    value: int | float


@dataclass(frozen=True)
class Name(Expression):
    """A loop's variable or a let's name."""

    name: str


@dataclass(frozen=True)
class Field(Expression):
    """``tiling.rows``: a field of the tiling struct."""

    struct: str
    field: str


@dataclass(frozen=True)
class Intrinsic(Expression):
    """A call without arguments: GetBlockIdx, GetBlockNum, GetSubBlockIdx."""

    name: str


@dataclass(frozen=True)
class Flag(Expression):
    """``true`` or ``false``."""

    name: str


@dataclass(frozen=True)
class Core(Expression):
    """Whether this is a cube core (ASCEND_IS_AIC) or a vector core (ASCEND_IS_AIV): a whole condition of a branch."""

    name: str


@dataclass(frozen=True)
class Unary(Expression):
    """``-x`` or ``!x``."""

    operator: str
    operand: Expression


@dataclass(frozen=True)
class Binary(Expression):
    """Two operands with an operator of :data:`PRECEDENCE` between them."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Choice(Expression):
    """``condition ? then : otherwise``."""

    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True)
class Convert(Expression):
    """``static_cast<type>(operand)``."""

    dtype: DType
    operand: Expression


@dataclass(frozen=True)
class GetValue(Expression):
    """``tensor.GetValue(index)``: the scalar unit reads one element."""

    tensor: str
    index: Expression


Scalar = Expression | int | float

PRECEDENCE: dict[str, int] = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "<<": 5, ">>": 5, "+": 6, "-": 6,
    "*": 7, "/": 7, "%": 7,
}  # fmt: skip
"""Operator -> how tightly it binds; all associate to the left."""

INTRINSICS = ("GetBlockIdx", "GetBlockNum", "GetSubBlockIdx")
FLAGS = ("true", "false")
CORES = ("ASCEND_IS_AIC", "ASCEND_IS_AIV")
BLOCK_INDEX = Intrinsic("GetBlockIdx")
BLOCK_COUNT = Intrinsic("GetBlockNum")


def wrap(value: Scalar) -> Expression:
    """The value itself, or a literal."""
    return value if isinstance(value, Expression) else Number(value)


def smaller(left: Scalar, right: Scalar) -> Expression:
    """The smaller of two integers."""
    first, second = wrap(left), wrap(right)
    if isinstance(first, Number) and isinstance(second, Number):
        return Number(min(first.value, second.value))
    return Choice(first < second, first, second)


def larger(left: Scalar, right: Scalar) -> Expression:
    """The larger of two integers."""
    first, second = wrap(left), wrap(right)
    if isinstance(first, Number) and isinstance(second, Number):
        return Number(max(first.value, second.value))
    return Choice(first < second, second, first)


def ceil_div(value: Scalar, divisor: int) -> Expression:
    """Division that rounds up, of a value that is not negative."""
    return (wrap(value) + (divisor - 1)) // divisor


def c_divide(left: int, right: int) -> int:
    """Division of integers towards zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _fold(operator: str, left: Expression, right: Expression) -> Expression:
    """The expression, smaller where an operand is a known integer."""
    if isinstance(left, Number) and isinstance(right, Number):
        known = _known(operator, left.value, right.value)
        return Binary(operator, left, right) if known is None else Number(known)
    if operator == "*" and Number(0) in (left, right):
        return Number(0)
    neutral = Number(1 if operator in "*/" else 0)
    if right == neutral and operator != "%":
        return left
    if left == neutral and operator in "+*":
        return right
    return Number(0) if operator == "%" and right == Number(1) else Binary(operator, left, right)


def _known(operator: str, left: float, right: float) -> int | None:
    if not (isinstance(left, int) and isinstance(right, int)):
        return None
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _ if right == 0:
            return None
        case "/":
            return c_divide(left, right)
        case _:
            return left - right * c_divide(left, right)
