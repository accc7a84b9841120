"""Steps that act on other processes: one starts, another waits, and what stands between them runs meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphkernel.communication.communicator import Array, Communicator, Pending
from graphkernel.communication.groups import Communicators, of_group
from graphkernel.runtime.steps.reduced_product import reduced_product
from graphkernel.runtime.steps.steps import Action, Slots
from kernelgen.tensor.types import Attrs

if TYPE_CHECKING:
    from kernelgen.tensor.graph import Node

Start = Callable[[Communicator, Attrs, Sequence[Array], Array], Pending]

STARTS: Mapping[str, Start] = {
    "AllReduce": lambda over, attrs, x, out: over.all_reduce(x[0], out, attrs.str("op", "sum")),
    "AllGather": lambda over, attrs, x, out: over.all_gather(x[0], out),
    "ReduceScatter": lambda over, attrs, x, out: over.reduce_scatter(x[0], out, attrs.str("op", "sum")),
    "Broadcast": lambda over, attrs, x, out: over.broadcast(x[0], out, attrs.int("root_rank", 0)),
    "AllToAll": lambda over, attrs, x, out: over.all_to_all(x[0], out),
    "MatMulAllReduce": reduced_product,
    "Send": lambda over, attrs, x, out: over.send(x[0], attrs.int("dest_rank", 0), attrs.int("sr_tag", 0)),
    "Receive": lambda over, attrs, x, out: over.receive(out, attrs.int("src_rank", 0), attrs.int("sr_tag", 0)),
}
"""How each operator is started: on its data, into its result (the token's array where there is none)."""

OPERANDS: Mapping[str, int] = {"MatMulAllReduce": 2, "Receive": 0}
"""How many operands are data, where it is not one."""


def group_of(node: Node, communicators: Communicators) -> Communicator:
    """The communicator of the group that an operator names. Raises RuntimeFailure where there is none of its size."""
    attrs = node.attrs
    user = f"{node.op.traits.ordered} {node.name}"
    return of_group(communicators, attrs.str("group", "world"), attrs.int("rank_size", 1), user)


class CollectiveStep(NamedTuple):
    """Starts an ordered operator. Its token's slot takes what there is to wait for."""

    node: Node
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    communicators: Communicators = None
    buffered: bool = True

    @property
    def name(self) -> str:
        """The operator's label."""
        return self.node.name

    @property
    def data(self) -> tuple[int, ...]:
        """The slots of the operands that are no token."""
        return self.inputs[: OPERANDS.get(self.node.op.name, 1)]

    def over(self, communicators: Communicators) -> CollectiveStep:
        """The step over these communicators."""
        return self._replace(communicators=communicators)

    def bind(self, slots: Slots, symbols: Mapping[str, int]) -> Action:
        """The action for these symbol values."""
        start, attrs, data = STARTS[self.node.op.name], self.node.attrs, self.data
        result, token = self.outputs[0], self.outputs[-1]

        def call(slots: Slots) -> None:
            over = group_of(self.node, self.communicators)
            operands = [np.ascontiguousarray(slots[slot]) for slot in data]
            slots[token] = _Started(start(over, attrs, operands, slots[result]), operands)

        return call


class _Started(NamedTuple):
    """What is to be waited for, with the operands that it reads until then."""

    pending: Pending
    operands: Sequence[Array]


class WaitStep(NamedTuple):
    """Waits for what a step started; ``inputs`` are its token and all that must stay as it is until then."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...] = ()
    buffered: bool = False

    def bind(self, slots: Slots, symbols: Mapping[str, int]) -> Action:
        """The action, whatever the symbols are."""
        token = self.inputs[0]

        def call(slots: Slots) -> None:
            slots[token].pending.wait()

        return call
