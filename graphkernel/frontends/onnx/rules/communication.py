"""What processes give each other, by two names: onnxruntime's (``com.microsoft``) and MindSpore's (``mindspore``).

onnxruntime's AllReduce does not say over how many processes: over as many as the communicator has.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from graphkernel import ops
from graphkernel.frontends.onnx.rules.base import OnnxCall, OnnxRule, Results, onnx_op
from graphkernel.ops.library import communication
from graphkernel.ops.tensor.in_turn import record_in_turn
from graphkernel.ops.tensor.tensor import Tensor
from kernelgen.tensor.operator import Operator


@onnx_op("com.microsoft::AllReduce")
def all_reduce(call: OnnxCall) -> Results:
    """The sums of all operands, one after the other."""
    return [ops.all_reduce(x, rank_size=0) for x in _tensors(call)]


@onnx_op("com.microsoft::AllGather")
def all_gather(call: OnnxCall) -> Results:
    """Along an axis, which goes to the front and back again."""
    size, axis = call.attribute("group_size", 1), call.attribute("axis", 1)
    gathered = (ops.all_gather(_swapped(x, axis), rank_size=size) for x in _tensors(call))
    return [_swapped(x, axis) for x in gathered]


@onnx_op("com.microsoft::AllToAll")
def all_to_all(call: OnnxCall) -> Results:
    """Along axis 0."""
    return [ops.all_to_all(x, rank_size=call.attribute("group_size", 1)) for x in _tensors(call)]


def _swapped(x: Tensor, axis: int) -> Tensor:
    """The tensor with this axis in front."""
    axes = list(range(x.ndim))
    axes[0], axes[axis] = axes[axis], axes[0]
    return x if axis == 0 else ops.transpose(x, axes)


def _tensors(call: OnnxCall) -> Sequence[Tensor]:
    return [call.tensor(position) for position in range(len(call.operands))]


def _as_ours(operator: Operator, call: OnnxCall) -> Results:
    """Attributes and operands are the operator's. What is sent is the result of Send, as in MindSpore."""
    given: dict[str, Any] = {key: value for key, value in call.attributes.items() if key in operator.attribute_names}
    operands = _tensors(call)
    return record_in_turn(operator, call.builder, operands, given) or (operands[:1] if call.results else ())


MINDSPORE = tuple(
    OnnxRule(f"mindspore::{each.name}", partial(_as_ours, each))
    for each in (
        communication.ALL_REDUCE, communication.ALL_GATHER, communication.REDUCE_SCATTER, communication.BROADCAST,
        communication.ALL_TO_ALL, communication.SEND, communication.RECEIVE,
    )
)  # fmt: skip
ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, ALL_TO_ALL, SEND, RECEIVE = MINDSPORE
