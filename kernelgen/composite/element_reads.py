"""What the rule of a structural operator reads: found by following it with places that stand for themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kernelgen.composite.scalar_rules import ExprAlgebra
from kernelgen.errors import UnsupportedError
from kernelgen.nest import nodes as n
from kernelgen.tensor.algebra import ElementRule
from kernelgen.tensor.dims import Dim
from kernelgen.tensor.dtypes import INT64
from kernelgen.tensor.operator import Application


@dataclass(frozen=True)
class Read:
    """An operand and where it is read along each dim: at the place of that dim of the result, or, if None, computed."""

    operand: int
    places: tuple[int | None, ...]


@dataclass
class ElementReads(ExprAlgebra):
    """``reads`` of operands, and ``limits``: operands whose numbers are places, with the extent of the dim that they name.

    ``is_direct`` is False where a place is computed from such numbers, not only clamped.
    """

    node: Application
    is_direct: bool = True
    reads: list[Read] = field(default_factory=list[Read])
    limits: list[tuple[int, Dim]] = field(default_factory=list[tuple[int, Dim]])

    def at(self, operand: int, *places: int | None) -> n.Expr:
        """Remembers the read. Raises UnsupportedError for places that are not as many as the operand has dims."""
        tensor = self.node.args[operand]
        if len(places) != len(tensor.shape):
            message = f"{self.node.op.name} reads operand {operand} of {len(tensor.shape)} dims at {len(places)} places"
            raise UnsupportedError("unsupported-layout", message)
        self.reads.append(Read(operand, places))
        return n.Load(n.Buffer(str(operand), tensor.dtype, (), n.Space.INPUT), ())

    def extent(self, operand: int, dim: int) -> Dim:
        """The length of an operand's dim."""
        return self.node.args[operand].shape[dim]

    def number(self, place: int | None) -> n.Expr:
        """Any int64."""
        return n.IndexValue(n.Num(0), INT64)

    def nearest(self, number: n.Expr, extent: Dim) -> None:
        """A computed place; remembers which operands say it."""
        self.is_direct = self.is_direct and isinstance(number, n.Load | n.IndexValue)
        self.limits += [(operand, extent) for operand in _operands(number)]

    def inside(self, number: n.Expr, extent: Dim) -> n.Expr:
        """Any bool."""
        return self.call("greater_equal", number, 0)


def element_reads(node: Application, rule: ElementRule) -> ElementReads:
    """What ``rule`` reads for one element of the result of ``node``. Raises UnsupportedError for several results."""
    if len(node.outs) != 1:
        raise UnsupportedError(
            "unsupported-op", f"{node.op.name} has {len(node.outs)} results; a rule of elements gives one"
        )
    found = ElementReads(node)
    rule(found, *range(len(node.out.shape)), attrs=node.attrs)
    return found


def _operands(number: n.Expr) -> Iterator[int]:
    if isinstance(number, n.Load):
        yield int(number.buffer.name)
    inner: Sequence[n.Expr] = number.args if isinstance(number, n.Call) else ()
    for each in inner:
        yield from _operands(each)
