"""What an operator is: a name, a kind, a type rule and a numpy meaning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kernelgen.tensor.types import Attrs, TensorType


class Kind(IntEnum):
    """The ladder of dependence kinds; fusion patterns compare them with ``<`` and ``max``.

    Source: the pattern types of MindSpore's split model.
    """

    VIRTUAL = 0  # binds names or buffers only: Assign, results of several
    RESHAPE = 1  # same elements in the same order
    ELEMWISE = 2  # one input element per output element
    BROADCAST = 3  # an input element feeds several output elements
    REDUCE = 4  # several input elements feed one output element
    OPAQUE = 5  # anything else


InferRule = Callable[[tuple[TensorType, ...], Attrs], tuple[TensorType, ...]]
Meaning = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Operator:
    """One primitive operator; the name is MindSpore's.

    ``infer(operand types, attrs)`` gives the result types and raises ``TypeRuleError`` on a misfit.
    ``meaning(*arrays, attrs)`` is the numpy semantics: one array, or a tuple of arrays when there are several results.
    ``arity`` is None for a variadic operator. ``composite`` marks operators that kernels cannot compute themselves:
    an expander may rewrite them, otherwise the host library runs them. ``attributes`` names what ``attrs`` may hold,
    ``indices`` are the places of operands that count or address elements, whatever data type these have.
    """

    name: str
    kind: Kind
    arity: int | None
    infer: InferRule
    meaning: Meaning
    commutative: bool = False
    composite: bool = False
    doc: str = ""
    attributes: tuple[str, ...] = ()
    indices: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"Operator({self.name})"
