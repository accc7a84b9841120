"""The rule of an ONNX node: ours for ONNX's own operators, those of users' packages for other domains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from graphkernel.catalogue import collect
from graphkernel.frontends.onnx.rules.base import OnnxRule, same
from graphkernel.ops.catalogue import OPS

if TYPE_CHECKING:
    from onnx import NodeProto

Further = Callable[[str], OnnxRule | None]
"""From ``domain::name`` to the rule of an operator that is none of ONNX's."""


@cache
def rules() -> Mapping[str, OnnxRule]:
    """All rules of ONNX's operators, by name: those of the room, and of operators without attributes whose records name
    one of ONNX that means the same."""
    named = (same(op) for op in OPS.values() if op.onnx and not op.attributes)
    return {rule.name: rule for rule in (*named, *collect("graphkernel.frontends.onnx.rules", OnnxRule))}


def no_rule(name: str) -> OnnxRule | None:
    """Where there are no further rules."""
    return None


def rule_of(node: NodeProto, further: Further) -> OnnxRule | None:
    """The rule of a node, ``further`` giving those of other domains; None where there is none."""
    if node.domain in ("", "ai.onnx"):
        return rules().get(node.op_type)
    name = f"{node.domain}::{node.op_type}"
    return rules().get(name) or further(name)
