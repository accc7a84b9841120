"""Operators with an effect. Inside the graph they are pure; the effect is an alias of the graph.

``Assign(parameter, value)`` gives the value; that it lands in the parameter's buffer is said by ``Graph.aliases``.
"""

from __future__ import annotations

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import Kind, Traits
from kernelgen.tensor.operators.families import Array, declare, rounded
from kernelgen.tensor.operators.type_rules import broadcasting, number
from kernelgen.tensor.types import Attrs, TensorType

Types = tuple[TensorType, ...]


def _assign_type(types: Types, attrs: Attrs) -> Types:
    target, value = types
    if target != value:
        raise TypeRuleError(f"the value must have the type of the target, {target}, got {value}")
    return (value,)


def _assign(target: Array, value: Array, *, attrs: Attrs) -> Array:
    """Writes the value into an input of the graph. Use the result where the new content is meant."""
    return value


def _assign_add_type(types: Types, attrs: Attrs) -> Types:
    target = types[0]
    if broadcasting(number)(types, attrs) != (target,):
        raise TypeRuleError(f"the sum must have the type of the target, {target}")
    return (target,)


def _assign_add(target: Array, value: Array, *, attrs: Attrs) -> Array:
    """Adds a value to an input of the graph, in place. Use the result where the new content is meant."""
    return rounded(np.add)(target, value)


ASSIGN = declare("Assign", Kind.VIRTUAL, 2, _assign_type, _assign, traits=Traits(writes=((0, 0),)))
ASSIGN_ADD = declare(
    "AssignAdd", Kind.ELEMWISE, 2, _assign_add_type, _assign_add, composite=True, traits=Traits(writes=((0, 0),))
)
