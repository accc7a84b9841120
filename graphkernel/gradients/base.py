"""What a gradient rule is, and the constructors of rules.

The *cotangent* of a result is the gradient of the loss by it. A rule makes the cotangents of an operator's operands from
those of its results, with operators of :mod:`graphkernel.ops`, so that a gradient is a graph like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from graphkernel import ops
from graphkernel.expanders.base import Declined
from graphkernel.expanders.means import summed_to
from graphkernel.ops import Tensor
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.types import Attrs


@dataclass(frozen=True)
class Application:
    """An operator applied to operands, with the cotangents of its results (None where the loss does not see one).

    ``wanted`` says for each operand whether its cotangent is of use.
    """

    operands: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    attrs: Attrs
    cotangents: tuple[Tensor | None, ...]
    wanted: tuple[bool, ...]

    @property
    def dy(self) -> Tensor:
        """The cotangent of the first result."""
        return self.cotangent(0)

    def cotangent(self, place: int) -> Tensor:
        """The cotangent of a result, zeros where the loss does not see it."""
        found = self.cotangents[place]
        return ops.zeros_like(self.results[place]) if found is None else found

    def sees_only(self, *places: int) -> bool:
        """Whether the loss sees no results but these."""
        return all(place in places for place, dy in enumerate(self.cotangents) if dy is not None)


Cotangents = Sequence[Tensor | None]
"""One for each operand; None is zero."""
RuleFunction = Callable[[Application], Cotangents | Declined]
Partial = Callable[..., Any]
Maker = Callable[[], Tensor]


@dataclass(frozen=True)
class Gradient:
    """The gradient rule of the operator called ``name``.

    ``flat`` says why the gradient is zero, ``undefined`` why there is none; otherwise ``function`` makes it. A function that
    declines, or no rule at all, means that the operator's expansion is differentiated. ``partials`` are what it is made of
    by :func:`pointwise`.
    """

    name: str
    function: RuleFunction
    flat: str = ""
    undefined: str = ""
    partials: tuple[Partial | None, ...] = ()

    @property
    def doc(self) -> str:
        """The first line of the function's documentation; partials speak for themselves."""
        return (self.function.__doc__ or "").partition("\n")[0]


def gradient(operator: Operator) -> Callable[[RuleFunction], Gradient]:
    """Declares the rule of an operator."""
    return lambda function: Gradient(operator.name, function)


def pointwise(operator: Operator, *partials: Partial | None) -> Gradient:
    """The rule of an operator whose operands broadcast, one partial for each operand: ``(dy, y, *operands)`` to its cotangent.

    What a partial gives is summed over the axes along which the operand was repeated; None stands for zero.
    """

    def rule(of: Application) -> Cotangents:
        return broadcast(of, *[partial and _bound(partial, of) for partial in partials])

    return Gradient(operator.name, rule, partials=partials)


def broadcast(of: Application, *makers: Maker | None) -> Cotangents:
    """What the makers of the wanted cotangents give, each summed to the shape of its operand."""
    return [
        summed_to(make(), operand.shape) if make is not None and wanted else None
        for make, operand, wanted in zip(makers, of.operands, of.wanted, strict=True)
    ]


def flat(operator: Operator, why: str) -> Gradient:
    """An operator whose results do not follow small changes of its operands: a gradient of zero."""
    return Gradient(operator.name, lambda of: [None] * len(of.operands), flat=why)


def undefined(operator: Operator, why: str) -> Gradient:
    """An operator that has no gradient."""
    return Gradient(operator.name, lambda of: Declined(why), undefined=why)


def _bound(partial: Partial, of: Application) -> Maker:
    return lambda: partial(of.dy, *of.results, *of.operands)
