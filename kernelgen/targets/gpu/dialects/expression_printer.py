"""Prints scalar expressions and indices of a nest; indices become integer expressions that C reads the same way."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.ranges import Range, range_of
from kernelgen.targets.gpu.dialects.dialect import Dialect
from kernelgen.targets.gpu.dialects.names import spelled
from kernelgen.targets.gpu.dialects.scalars import Scalars
from kernelgen.tensor.dtypes import INT32, INT64, DType

NARROW = 2**31 - 2**20
"""Elements of a buffer and iterations of a grid, up to which indices are 32-bit integers; the rest is room for guards."""


@dataclass(frozen=True)
class ExpressionPrinter:
    """Prints expressions; ``ranges`` holds what is known of the variables in scope, ``places`` where shared arrays lie.

    ``integer`` is the type of indices in the language.
    """

    scalars: Scalars
    integer: str
    places: dict[str, n.Index]
    symbols: tuple[str, ...]
    ranges: dict[str, Range] = field(default_factory=dict[str, Range])

    @property
    def dialect(self) -> Dialect:
        """The language."""
        return self.scalars.dialect

    def expression(self, expr: n.Expr) -> str:
        """A scalar expression."""
        match expr:
            case n.Literal():
                return self.scalars.literal(expr)
            case n.Ref(name):
                return spelled(name)
            case n.Load(buffer, index):
                return self.element(buffer, index)
            case n.IndexValue(index, dtype):
                return self.cast_of_index(index, dtype)
            case n.Call(function, args, dtype):
                return self.scalars.call(function, list(map(self.expression, args)), args[-1].dtype, dtype)

    def cast_of_index(self, index: n.Index, dtype: DType) -> str:
        """An index as a scalar."""
        text = f"({self.index(index)})"
        return self.scalars.cast(text, INT32 if self.integer == "int" else INT64, dtype)

    def element(self, buffer: n.Buffer, index: tuple[n.Index, ...]) -> str:
        """``x[row * 64 + column]``; a variable where the array is private or shared and of rank 0."""
        name = spelled(buffer.name)
        if not buffer.shape and buffer.space in (n.Space.PRIVATE, n.Space.SHARED) and buffer.name not in self.places:
            return name
        total: n.Index = n.Num(0)
        scale: n.Index = n.Num(1)
        for place, dim in zip(reversed(index), reversed(buffer.shape), strict=True):
            total = ix.add(ix.multiply(place, scale), total)
            scale = ix.multiply(scale, ix.from_dim(dim))
        return f"{name}[{self.index(total)}]"

    def condition(self, condition: n.Compare) -> str:
        """A comparison of indices."""
        return f"{self.index(condition.left)} {condition.op} {self.index(condition.right)}"

    def index(self, index: n.Index) -> str:
        """An integer expression; division and remainder round down."""
        match index:
            case n.Num(value):
                return f"{value}LL" if abs(value) > NARROW else str(value)
            case n.Var(name):
                return spelled(name) if name in self.symbols else name
            case n.ValueIndex(value):
                return f"({self.integer}){self.expression(value)}"
            case n.IndexBinary(n.IndexOp.MIN | n.IndexOp.MAX as op, left, right):
                a, b = self.index(left), self.index(right)
                return f"({a} {'<' if op is n.IndexOp.MIN else '>'} {b} ? {a} : {b})"
            case n.IndexBinary(n.IndexOp.DIV | n.IndexOp.MOD as op, left, right) if not self.is_nonnegative(left):
                name = "floor_quotient" if op is n.IndexOp.DIV else "floor_modulo"
                return f"({self.integer}){self.scalars.helper(name, [self.index(left), self.index(right)], INT64)}"
            case n.IndexBinary(n.IndexOp.ADD, left, n.Num(value)) if value < 0:
                return f"{self.index(left)} - {-value}"
            case n.IndexBinary(n.IndexOp.ADD, left, right):
                return f"{self.index(left)} + {self.index(right)}"
            case n.IndexBinary(n.IndexOp.SUB, left, right):
                return f"{self.index(left)} - {self.factor(right)}"
            case n.IndexBinary(op, left, right):
                return f"{self.factor(left)} {op.value} {self.factor(right)}"

    def factor(self, index: n.Index) -> str:
        """An operand of a product."""
        text = self.index(index)
        return f"({text})" if isinstance(index, n.IndexBinary) else text

    def is_nonnegative(self, index: n.Index) -> bool:
        """Whether the index is certainly not below 0."""
        return range_of(index, self.ranges).is_nonnegative
