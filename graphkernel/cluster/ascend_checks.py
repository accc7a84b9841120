"""What Ascend kernels can take of each operator: data types, ranks, sizes and attributes, as a table.

Source: the checks that MindSpore makes before its Ascend generator (DVM) sees an operator. What ours can do more is left
out: a reshape inside our kernels is a change of indices, wherever it stands; slices have any rank, place and step;
products any number of rows, known or not, and any rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from graphkernel.ops.library.communication import ALL_REDUCE
from graphkernel.ops.library.grouped_products import GROUPED_MATMUL
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators import select
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.effects import ASSIGN
from kernelgen.tensor.operators.elemwise import ABS, ADD, IS_FINITE, MAXIMUM, MINIMUM, MUL, NEG, SUB
from kernelgen.tensor.operators.layout import TRANS_DATA
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL
from kernelgen.tensor.operators.pieces import SLICE, STRIDED_SLICE
from kernelgen.tensor.operators.shape import BROADCAST_TO, TRANSPOSE
from kernelgen.tensor.operators.status import ELEM_ANY
from kernelgen.tensor.order import is_token
from kernelgen.tensor.types import DEFAULT_LAYOUT

FLOATS = frozenset({"float16", "bfloat16", "float32"})
NUMBERS = FLOATS | {"int32"}
BOOLS = frozenset({"bool"})
LARGEST_DIM = 65535 - 255  # of a matrix product; what is left is lost to the alignment of addresses


@dataclass(frozen=True)
class Refusal:
    """Why Ascend kernels do not take an operator: a reason code of :mod:`graphkernel.decisions` and the particulars."""

    code: str
    message: str


Check = Callable[[Node], str]
"""What is wrong with an operator; an empty text when nothing is."""


@dataclass(frozen=True)
class Takes:
    """Data types of the operands and of the result, whether they must all be the same, and further checks."""

    operands: frozenset[str] = FLOATS
    results: frozenset[str] = FLOATS
    alike: bool = True
    checks: tuple[Check, ...] = ()


def refusal(node: Node) -> Refusal | None:
    """The first thing that keeps an operator out of Ascend kernels; None when nothing does."""
    takes = TABLE.get(node.op) or _by_rule(node.op)
    wrong = _wrong_types(node, takes)
    if wrong:
        return Refusal("not-fused-dtype", f"{node.op.name} on ascend: {wrong}")
    for check in (_one_layout, *takes.checks):
        if wrong := check(node):
            return Refusal("not-fused-shape", f"{node.op.name} on ascend: {wrong}")
    return None


def _by_rule(operator: Operator) -> Takes:
    """Of an operator that is not in the table: floats of one data type, unless it brings a rule of its own."""
    if operator.element is not None:
        return Takes(NUMBERS, NUMBERS, alike=False)  # its elements, and the numbers that address them
    return Takes(FLOATS, FLOATS | BOOLS, alike=False) if operator.scalar is not None else Takes()


def _wrong_types(node: Node, takes: Takes) -> str:
    operands = [arg.type.dtype.name for arg in node.args if not is_token(arg)]
    results = [value.type.dtype.name for value in node.outs if not is_token(value)]
    for role, found, allowed in (("operand", operands, takes.operands), ("result", results, takes.results)):
        for name in found:
            if name not in allowed:
                return f"its {role} is {name}, not {_either(allowed)}"
    if takes.alike and len({*operands, *results}) > 1:
        return f"its data types differ: {', '.join((*operands, *results))}"
    return ""


def _either(names: Iterable[str]) -> str:
    return " or ".join(sorted(names))


def _one_layout(node: Node) -> str:
    layouts = sorted({value.type.layout for value in (*node.args, *node.outs)})
    is_mixed = len(layouts) > 1 and node.op is not TRANS_DATA
    is_symbolic = layouts != [DEFAULT_LAYOUT] and not all(type_.is_static for type_ in node.types)
    return f"layouts {', '.join(layouts)} are mixed or have symbolic extents" if is_mixed or is_symbolic else ""


def _product(node: Node) -> str:
    """Rows of memory known and at most LARGEST_DIM long: a copy into fractals steps over one by a field of 16 bits."""
    for value in (*node.outs, *node.args):
        width = value.type.shape[-1]
        if not isinstance(width, int):
            return "the rows of a matrix have a symbolic length"
        if width > LARGEST_DIM:
            return f"a matrix is wider than {LARGEST_DIM}"
    return ""


def _grouped(node: Node) -> str:
    split, group = node.attrs.int("split_item", 0), node.attrs.int("group_type", -1)
    return "" if split == 3 and group in (0, 2) else f"split_item {split} and group_type {group} are not 3 and 0 or 2"


def _several(node: Node) -> str:
    return "one element needs no kernel" if node.types[0].size == 1 else ""


_HALF = frozenset({"float16", "bfloat16"})
_PLAIN = frozenset({"float16", "float32"})
_CAST = frozenset({*NUMBERS, "bool"})
_NUMBERS = Takes(NUMBERS, NUMBERS)
_COMPARES = Takes(NUMBERS, BOOLS, alike=False)
_MATRICES = Takes(_HALF, _HALF, checks=(_product,))

TABLE: Mapping[Operator, Takes] = {
    **dict.fromkeys((ADD, SUB, MUL, MAXIMUM, MINIMUM, NEG, ABS, ASSIGN, BROADCAST_TO), _NUMBERS),
    **dict.fromkeys(
        (select.EQUAL, select.NOT_EQUAL, select.GREATER, select.GREATER_EQUAL, select.LESS, select.LESS_EQUAL),
        _COMPARES,
    ),
    **dict.fromkeys((select.LOGICAL_AND, select.LOGICAL_OR, select.LOGICAL_NOT), Takes(BOOLS, BOOLS)),
    **dict.fromkeys((SLICE, STRIDED_SLICE), _NUMBERS),
    **dict.fromkeys((MATMUL, BATCH_MATMUL), _MATRICES),
    ALL_REDUCE: Takes(_PLAIN, _PLAIN, checks=(_several,)),
    CAST: Takes(_CAST, _CAST, alike=False),
    ELEM_ANY: Takes(NUMBERS | BOOLS, FLOATS, alike=False),
    GROUPED_MATMUL: Takes(_HALF | {"int64", "int32"}, _HALF, alike=False, checks=(_grouped,)),
    IS_FINITE: Takes(FLOATS, BOOLS, alike=False),
    select.SELECT: Takes(FLOATS | BOOLS, FLOATS, alike=False),
    TRANS_DATA: Takes(_PLAIN, _PLAIN),
    TRANSPOSE: Takes(_PLAIN, _PLAIN),
}
"""Operators that are not named take floats of one data type."""
