"""The language of rules: ``@rule(safety=...) def name(x: Term, ...): return rewrite(left, right)``.

The rule is named by its function; its variables are the parameters. ``Term`` matches any value, ``Const`` a constant,
``Attributes`` the attributes of an operator. Terms are written with ``+ - * /``, ``abs``, unary minus and the functions
of :mod:`graphkernel.patterns.terms`; a number is a literal. Variables that occur twice must be the same value.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from graphkernel.errors import CatalogueError
from graphkernel.patterns.ranges import Range
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.elemwise import ABS, ADD, MUL, NEG, REAL_DIV, SUB
from kernelgen.tensor.types import Attrs, DType

if TYPE_CHECKING:
    from graphkernel.patterns.match import Match


class Safety(IntEnum):
    """What an equation promises about finite, infinite and NaN operands alike.

    EXACT: the right side has the same bits as the left, or is the correctly rounded value of what the left only
    approximates (``pow(x, 2)`` becomes ``x * x``). ROUNDING: it may round differently, or flip the sign of a zero.
    DOMAIN: it also needs a fact, such as ``x >= 0`` or that nothing overflows.
    """

    EXACT = 1
    ROUNDING = 2
    DOMAIN = 3


Binary: TypeAlias = "Callable[[Term, Term | float], Term]"


def _both_sides(op: Operator) -> tuple[Binary, Binary]:
    """Python's methods for an operator: with the term on its left, and on its right."""
    return lambda own, other: Apply(op, (own, term(other))), lambda own, other: Apply(op, (term(other), own))


class Term:
    """One side of an equation, or a part of it."""

    __add__, __radd__ = _both_sides(ADD)
    __sub__, __rsub__ = _both_sides(SUB)
    __mul__, __rmul__ = _both_sides(MUL)
    __truediv__, __rtruediv__ = _both_sides(REAL_DIV)

    def __neg__(self) -> Term:
        return Apply(NEG, (self,))

    def __abs__(self) -> Term:
        return Apply(ABS, (self,))


@dataclass(frozen=True)
class Variable(Term):
    """Stands for any value, or, as :class:`Const`, for constants only."""

    name: str
    constant: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Const(Variable):
    """Stands for constants only. What the right side computes from them is folded."""

    constant: bool = True


@dataclass(frozen=True)
class Literal(Term):
    """A constant all of whose elements are this number; zeros are told apart by sign."""

    number: float

    def matches(self, array: np.ndarray) -> bool:
        """True when every element is the number."""
        same_sign = (
            self.number != 0 or array.dtype.kind in "biu" or bool((np.signbit(array) == np.signbit(self.number)).all())
        )
        return array.size > 0 and bool((array == self.number).all()) and same_sign

    def __str__(self) -> str:
        return f"{self.number:g}"


@dataclass(frozen=True)
class Attributes:
    """A variable for the attributes of an operator."""

    name: str


Computed = Callable[["Match"], Attrs]


@dataclass(frozen=True)
class Apply(Term):
    """An operator applied to terms. ``attributes`` binds them on the left and gives them on the right."""

    op: Operator
    args: tuple[Term, ...]
    attributes: Attributes | Computed | None = None

    def __str__(self) -> str:
        return f"{self.op.name}({', '.join(map(str, self.args))})"


@dataclass(frozen=True)
class Rewrite:
    """An equation: ``left`` becomes ``right`` where ``when`` holds."""

    left: Apply
    right: Term
    when: Callable[[Match], bool] | None = None

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"


@dataclass(frozen=True)
class Given:
    """What a rule promises when its variables are known to be within ranges."""

    promise: Safety
    ranges: Mapping[str, Range]


def given(promise: Safety, **ranges: Range) -> Given:
    """``given(Safety.ROUNDING, x=NON_NEGATIVE)``: the better promise where x is proved not to be negative."""
    return Given(promise, ranges)


@dataclass(frozen=True, eq=False)
class Rule:
    """A named equation with its promises: ``integers`` holds where no matched value is a float, ``safety`` elsewhere.

    ``given`` is a better promise that needs a fact; it counts where range analysis proves the fact.
    """

    name: str
    equation: Rewrite
    safety: Safety
    integers: Safety
    given: Given | None = None
    variables: Mapping[str, Variable | Attributes] = field(default_factory=dict[str, "Variable | Attributes"])
    doc: str = ""

    @property
    def best(self) -> Safety:
        """The best of its promises."""
        return min(self.safety, self.integers, self.given.promise if self.given is not None else self.safety)

    def safety_for(self, dtypes: Iterator[DType]) -> Safety:
        """The promise for a match whose values have these data types."""
        return self.safety if any(d.is_float for d in dtypes) else self.integers

    def __str__(self) -> str:
        return f"{self.name}: {self.equation}"


def rewrite(left: Term, right: Term | float, when: Callable[[Match], bool] | None = None) -> Rewrite:
    """The equation ``left = right``; ``when`` is a condition on the :class:`~graphkernel.patterns.match.Match`.

    Raises CatalogueError where the left side is no operator.
    """
    if not isinstance(left, Apply):
        raise CatalogueError(f"the left side of a rule must be an operator, not {left}")
    return Rewrite(left, term(right), when)


def rule(
    *, safety: Safety, integers: Safety | None = None, given: Given | None = None
) -> Callable[[Callable[..., Rewrite]], Rule]:
    """Declares a rule named by its function.

    ``integers`` is the promise on integers and bools where it is a better one, ``given`` the one for values in a range.
    """

    def declare(function: Callable[..., Rewrite]) -> Rule:
        variables = {
            name: _variable(name, parameter) for name, parameter in inspect.signature(function).parameters.items()
        }
        equation = function(**variables)
        doc = function.__doc__ or ""
        return Rule(function.__name__, equation, safety, integers or safety, given, variables, doc)

    return declare


def _variable(name: str, parameter: inspect.Parameter) -> Variable | Attributes:
    annotation = str(getattr(parameter.annotation, "__name__", parameter.annotation)).rpartition(".")[2]
    kinds: dict[str, type[Variable | Attributes]] = {"Term": Variable, "Const": Const, "Attributes": Attributes}
    if annotation not in kinds:
        raise CatalogueError(f"rule variable {name!r} is annotated {annotation!r}; use Term, Const or Attributes")
    return kinds[annotation](name)


def term(operand: Term | float) -> Term:
    """A number as a literal, a term as it is."""
    return operand if isinstance(operand, Term) else Literal(operand)


def subterms(root: Term) -> Iterator[Term]:
    """The term and all its parts, outermost first."""
    yield root
    if isinstance(root, Apply):
        for arg in root.args:
            yield from subterms(arg)
