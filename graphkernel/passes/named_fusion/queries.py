"""What finders look at: who made a value, in which order operands stand, what number a scalar is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from graphkernel.expanders.base import Declined
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.elemwise import REAL_DIV, SQRT

HALF_TYPES = frozenset({"float16", "bfloat16"})
SCALAR_OPERATORS = frozenset({REAL_DIV, SQRT, CAST})


def made_by(value: Value, *ops: Operator, index: int | None = 0) -> Node | None:
    """The node that makes a value, if it is of one of these operators; ``index`` says which result it must be."""
    fits = value.op in ops and index in (None, value.index)
    return value.node if fits else None


def both_orders(node: Node) -> Iterator[tuple[Value, Value]]:
    """The two operands of a commutative operator, either first."""
    first, second = node.args
    yield first, second
    yield second, first


def scalar(value: Value) -> float | None:
    """The number that a value is, if it is one constant, or RealDiv, Sqrt and Cast of such."""
    if value.constant is not None:
        return float(value.constant.reshape(-1)[0]) if value.constant.size == 1 else None
    if value.op not in SCALAR_OPERATORS or any(scalar(arg) is None for arg in value.node.args):
        return None
    (found,) = evaluate(Graph("scalar", (), (value,)), ())
    return float(found.reshape(-1)[0])


def unwidened(value: Value) -> Value:
    """The value before it was cast to its own type or to float32: what computes in float32 in any case takes it as it was."""
    cast = made_by(value, CAST)
    if cast is None:
        return value
    before = cast.args[0]
    widens = is_half(before) and value.type.dtype.name == "float32"
    return unwidened(before) if widens or before.type == value.type else value


def is_half(value: Value) -> bool:
    """True for float16 and bfloat16."""
    return value.type.dtype.name in HALF_TYPES


def first_failure(conditions: Iterable[tuple[bool, str]]) -> Declined | None:
    """The reason of the first condition that does not hold."""
    return next((Declined(reason) for holds, reason in conditions if not holds), None)


def array_of(value: Value) -> np.ndarray[Any, Any] | None:
    """The content of a constant in float64."""
    return None if value.constant is None else value.constant.astype(np.float64)
