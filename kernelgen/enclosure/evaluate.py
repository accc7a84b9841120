"""A description on intervals, operator by operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kernelgen.composite.bind_sizes import bind
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.specialize import specialize
from kernelgen.composite.vocabulary import is_declared
from kernelgen.enclosure.arithmetic import square
from kernelgen.enclosure.conversions import converted
from kernelgen.enclosure.declared import by_scalar_rule
from kernelgen.enclosure.interval import Array, Interval
from kernelgen.enclosure.moves import moved
from kernelgen.enclosure.table import RULES, Rules
from kernelgen.errors import UnsupportedError
from kernelgen.semantics.reference import shaped
from kernelgen.tensor.dtypes import Category, DType
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.elemwise import MUL


def enclose(desc: KernelDesc, inputs: Sequence[Array], rules: Rules = RULES) -> list[Interval]:
    """Ranges of the outputs of ``desc``, then of the inputs that are updated in place, for these ``inputs``.

    ``rules`` say how operators round. Raises UnsupportedError for an operator without a rule.
    """
    desc = specialize(desc, bind(desc, [array.shape for array in inputs]))
    values = enclosed_values(desc, inputs, keep_all=False, rules=rules)
    return [_operand(value, values) for value in (*desc.results, *desc.updates.values())]


def enclosed_values(
    desc: KernelDesc, inputs: Sequence[Array], keep_all: bool = True, rules: Rules = RULES
) -> dict[Value, Interval]:
    """The range of every value of ``desc``, for these ``inputs``; a description without symbols.

    Without ``keep_all`` a value that nobody reads any more is dropped. ``rules`` say how operators round.
    """
    values = {value: exactly(array, value) for value, array in zip(desc.graph.inputs, inputs, strict=True)}
    last_use = {v: place for place, node in enumerate(desc.operators) for v in (*node.args, *node.outs)}
    kept = set(desc.graph.outputs)
    with np.errstate(all="ignore"):
        for place, node in enumerate(desc.operators):
            run(node, values, rules)
            for value in {*node.args, *node.outs} - kept:
                if not keep_all and last_use[value] == place:
                    values.pop(value, None)
    return values


def exactly(array: Array, tensor: Value) -> Interval:
    """The numbers of an array, in the described shape."""
    return Interval.exact(_wide(np.asarray(array), tensor.dtype).reshape(sizes(tensor)))


def sizes(tensor: Value) -> tuple[int, ...]:
    """The extents of a tensor without symbols."""
    return tuple(int(dim) for dim in tensor.shape)  # pyright: ignore[reportArgumentType]  # specialised


def _wide(array: Array, kind: DType) -> Array:
    if kind.is_float:
        return array.astype(np.float64)
    return array.astype(np.complex128) if kind.category is Category.COMPLEX else array


def run(node: Node, values: dict[Value, Interval], rules: Rules) -> None:
    """Adds to ``values`` the ranges of the results of ``node``, by the ``rules`` of operators."""
    operands = [_operand(value, values) for value in node.args]
    for value, found in zip(node.outs, _results(node, operands, rules), strict=True):
        values[value] = _fitted(found, node.args, value)


def _results(node: Node, operands: Sequence[Interval], rules: Rules) -> tuple[Interval, ...]:
    if node.op is MUL and node.args[0] == node.args[1] and node.args[0].dtype.is_float:
        return (square(operands[0], node.args[0].dtype),)
    if is_declared(node.op) and node.op.scalar is not None:
        return (by_scalar_rule(node, operands),)
    rule = moved if is_declared(node.op) and node.op.traits.moves else rules.get(node.op)
    if rule is None:
        raise UnsupportedError("unsupported-op", f"operator {node.op.name!r} has no error bound")
    found = rule(operands, node)
    return found if isinstance(found, tuple) else (found,)


def _operand(value: Value, values: Mapping[Value, Interval]) -> Interval:
    if value.constant is None:
        return values[value]
    return Interval.exact(_wide(value.constant, value.dtype).reshape(sizes(value)))


def _fitted(value: Interval, operands: Sequence[Value], tensor: Value) -> Interval:
    """The value in the data type and shape of a tensor; operators of its own data type have rounded to it already."""
    found = converted(value, tensor.dtype, any(operand.dtype != tensor.dtype for operand in operands))
    return found.map(lambda bound: shaped(np.asarray(bound), tensor))
