"""Computing a graph in another data type than the one in which its values are stored.

Every value of the stored type may have a twin of the computed type: what it was before it was rounded. Operators that
compute take and give twins; keepers take and give stored values; a Cast stands only where a keeper, an output or an
input meets an operator that computes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.errors import TypeRuleError
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.types import Attrs, DType


class Role(Enum):
    """What an operator does about the two types."""

    COMPUTES = "computes"  # takes and gives the computed type
    KEEPS = "keeps"  # takes and gives the stored type
    FOLLOWS = "follows"  # moves elements: computes when its operand has a twin, keeps otherwise


@dataclass
class _Recast:
    stored: DType
    computed: DType
    role: Callable[[Node], Role]
    twins: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def rewrite(self, node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        kept = keep(node, args)
        if self._undoes_widening(kept):
            return (self.twins[args[0]],)
        if not self._concerns(node) or not self._computes(node, args):
            return kept.outs
        try:
            made = Builder().node(node.op, tuple(map(self._twin, args)), node.attrs, node.name)
        except TypeRuleError:
            return kept.outs  # the operator does not exist in the computed type
        return tuple(
            self._stored(new) if old.type.dtype == self.stored else new
            for old, new in zip(node.outs, made.outs, strict=True)
        )

    def _undoes_widening(self, node: Node) -> bool:
        """True for a Cast that makes of a stored value the narrower one that it was made of."""
        narrower = self.computed.bits < self.stored.bits
        return node.op is CAST and narrower and node.out.type.dtype == self.computed and node.args[0] in self.twins

    def _concerns(self, node: Node) -> bool:
        return bool(node.args) and any(value.type.dtype == self.stored for value in (*node.args, *node.outs))

    def _computes(self, node: Node, args: tuple[Value, ...]) -> bool:
        role = self.role(node)
        if role is Role.FOLLOWS:
            return any(arg in self.twins for arg in args)
        return role is Role.COMPUTES

    def _twin(self, value: Value) -> Value:
        """The value in the computed type; the same Cast for all users."""
        if value.type.dtype != self.stored:
            return value
        if value not in self.twins:
            self.twins[value] = self._converted(value)
        return self.twins[value]

    def _converted(self, value: Value) -> Value:
        if (
            value.op is CAST
            and value.node.args[0].type.dtype == self.computed
            and self.computed.bits < self.stored.bits
        ):
            return value.node.args[0]
        if not value.is_known:
            return _cast(value, self.computed)
        with np.errstate(all="ignore"):
            return Builder(origin=value.node.name).constant(value.constant, self.computed)

    def _stored(self, twin: Value) -> Value:
        """The result as it is stored; nothing remains of the Cast when only operators that compute use it."""
        if twin.type.dtype != self.computed:
            return twin
        rounded = _cast(twin, self.stored)
        self.twins[rounded] = twin
        return rounded


def _cast(value: Value, to: DType) -> Value:
    return Builder(origin=value.node.name).node(CAST, (value,), Attrs.of(dst_type=to.name)).out


def computed_in(graph: Graph, stored: DType, computed: DType, role: Callable[[Node], Role]) -> Graph:
    """The graph with operators on ``stored`` computing in ``computed``; the types of inputs and outputs stay.

    An operator whose type rule refuses the computed type keeps the stored one.
    """
    result = graph.rebuild(_Recast(stored, computed, role).rewrite)
    return result if result is graph else with_unique_labels(result)
