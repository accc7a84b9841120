"""What an expander is, and how one is applied to a node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from graphkernel import ops
from graphkernel.ir.graph import Builder, Node, Value
from graphkernel.ir.types import DType, TensorType, dtype
from graphkernel.ops import Tensor

FLOAT32 = dtype("float32")


@dataclass(frozen=True)
class Declined:
    """An expander does not apply, and why."""

    reason: str


Expansion = Tensor | tuple[Tensor, ...] | Declined
ExpanderFunction = Callable[..., Expansion]


@dataclass(frozen=True)
class Expander:
    """How the operator called ``name`` is made of others: ``function(*operands, attrs=...)``.

    With ``wide`` narrow float operands are cast to float32 before and the results back after, as the operators' own
    meanings compute; without, the function sees them as they are.
    """

    name: str
    function: ExpanderFunction
    wide: bool = True

    @property
    def doc(self) -> str:
        """The formula."""
        return self.function.__doc__ or ""


def expander(operator: str, *, wide: bool = True) -> Callable[[ExpanderFunction], Expander]:
    """Declares the expander of an operator, named as MindSpore names it."""
    return lambda function: Expander(operator, function, wide)


def expand(entry: Expander, node: Node, args: tuple[Value, ...], builder: Builder) -> tuple[Value, ...] | Declined:
    """The results of ``node`` over ``args`` by other operators, of exactly the node's types; or why not."""
    operands = tuple(Tensor(value, builder) for value in args)
    if entry.wide:
        operands = tuple(ops.cast(x, FLOAT32) if is_narrow(x.dtype) else x for x in operands)
    found = entry.function(*operands, attrs=node.attrs)
    if isinstance(found, Declined):
        return found
    results = tuple(_rounded(x, type_) for x, type_ in zip(_as_tuple(found), node.types, strict=True))
    for result, type_ in zip(results, node.types, strict=True):
        if result.type != type_:
            return Declined(f"the expansion is {result.type}, the operator gives {type_}")
    return tuple(result.value for result in results)


def is_narrow(d: DType) -> bool:
    """True for float16 and bfloat16."""
    return d.is_float and d.bits < FLOAT32.bits


def _as_tuple(found: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return found if isinstance(found, tuple) else (found,)


def _rounded(x: Tensor, type_: TensorType) -> Tensor:
    """The result in the narrow type that the operator has."""
    return ops.cast(x, type_.dtype) if is_narrow(type_.dtype) and x.dtype == FLOAT32 else x
