"""Steps that act on other processes: one starts, another waits, and what stands between them runs meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from graphkernel.communication.agreement import agree
from graphkernel.communication.chunks import chunks_of
from graphkernel.communication.communicator import Array, Communicator, Pending
from graphkernel.communication.groups import Communicators, of_group
from graphkernel.runtime.steps.reduced_product import InChunks, reduced_product, reduced_rows
from graphkernel.runtime.steps.steps import Action, Slots, Step, known_extents
from kernelgen.tensor.types import Attrs

if TYPE_CHECKING:
    from kernelgen.tensor.graph import Node

Agreed = dict[tuple[str, ...], tuple[int, ...]]
"""What ranks told each other, and into how many parts each of it is cut."""

Start = Callable[[Communicator, Attrs, Sequence[Array], Array, int], Pending]

STARTS: Mapping[str, Start] = {
    "AllReduce": lambda over, attrs, x, out, parts: over.all_reduce(x[0], out, attrs.str("op", "sum")),
    "AllGather": lambda over, attrs, x, out, parts: over.all_gather(x[0], out),
    "ReduceScatter": lambda over, attrs, x, out, parts: over.reduce_scatter(x[0], out, attrs.str("op", "sum")),
    "Broadcast": lambda over, attrs, x, out, parts: over.broadcast(x[0], out, attrs.int("root_rank", 0)),
    "AllToAll": lambda over, attrs, x, out, parts: over.all_to_all(x[0], out),
    "MatMulAllReduce": reduced_product,
    "Send": lambda over, attrs, x, out, parts: over.send(x[0], attrs.int("dest_rank", 0), attrs.int("sr_tag", 0)),
    "Receive": lambda over, attrs, x, out, parts: over.receive(out, attrs.int("src_rank", 0), attrs.int("sr_tag", 0)),
}
"""How each operator is started: on its data, into its result (the token's array where there is none), in so many parts."""

OPERANDS: Mapping[str, int] = {"MatMulAllReduce": 2, "Receive": 0}
"""How many operands are data, where it is not one."""

MESSAGES = frozenset({"Send", "Receive"})
"""What two ranks do, and not all of a group."""


def group_of(node: Node, communicators: Communicators) -> Communicator:
    """The communicator of the group that an operator names. Raises RuntimeFailure where there is none of its size."""
    attrs = node.attrs
    user = f"{node.op.traits.ordered} {node.name}"
    return of_group(communicators, attrs.str("group", "world"), attrs.int("rank_size", 1), user)


@dataclass(frozen=True, eq=False)
class Together:
    """What the ranks of a group do together in a program, in order, and on what they agreed so far: with these extents, into
    how many parts each is cut."""

    steps: Sequence[CollectiveStep]
    agreed: Agreed = field(default_factory=dict[tuple[str, ...], tuple[int, ...]])

    def of(self, symbols: Mapping[str, int]) -> tuple[tuple[str, ...], tuple[int, ...], Agreed]:
        """For these extents what must be the same on all ranks, into how many parts this one would cut each, and what is
        agreed."""
        told = tuple(_told(step.node, symbols) for step in self.steps)
        return told, tuple(_wanted(step, symbols) for step in self.steps), self.agreed


def _told(node: Node, symbols: Mapping[str, int]) -> str:
    of, attrs = node.types[0], node.attrs
    extents = ", ".join("?" if extent is None else str(extent) for extent in known_extents(of.shape, symbols))
    how = {"Broadcast": f" from rank {attrs.int('root_rank', 0)}"}.get(node.op.name, "")
    how = f" {attrs.str('op', 'sum')}" if "Reduce" in node.op.name else how
    return f"{node.op.traits.ordered}{how} of {of.dtype}[{extents}]"


def _wanted(step: CollectiveStep, symbols: Mapping[str, int]) -> int:
    of = step.node.types[0]
    shape = known_extents(of.shape, symbols)
    if None in shape or not (step.takes_rows or step.node.op.name == "MatMulAllReduce"):
        return 1
    return chunks_of(cast("tuple[int, ...]", shape), of.dtype.numpy.itemsize)


class CollectiveStep(NamedTuple):
    """Starts an ordered operator. Its token's slot takes what there is to wait for.

    It is the ``number``-th of what the ranks of its group do ``together``, about which they agree before the first of it.
    One that ``takes_rows`` is given its operand by a kernel that left itself in the token's slot, some rows at a time.
    """

    node: Node
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    communicators: Communicators = None
    together: Together | None = None
    number: int = 0
    takes_rows: bool = False
    buffered: bool = True

    @property
    def name(self) -> str:
        """The operator's label."""
        return self.node.name

    @property
    def data(self) -> tuple[int, ...]:
        """The slots of the operands that are no token."""
        return self.inputs[: OPERANDS.get(self.node.op.name, 1)]

    def bind(self, slots: Slots, symbols: Mapping[str, int]) -> Action:
        """The action for these symbol values."""
        start, attrs, data = STARTS[self.node.op.name], self.node.attrs, self.data
        result, token, together = self.outputs[0], self.outputs[-1], self.together
        told, wanted, agreed = ((), (), None) if together is None else together.of(symbols)
        takes_rows = self.takes_rows

        def call(slots: Slots) -> None:
            over = group_of(self.node, self.communicators)
            operands = [_contiguous(slots[slot]) for slot in data]
            if agreed is not None and told not in agreed:
                agreed[told] = agree(over, told, wanted, slots[result])
            parts = 1 if agreed is None else agreed[told][self.number]
            if takes_rows:
                pending = reduced_rows(over, attrs.str("op", "sum"), slots[token], operands[0], slots[result], parts)
            else:
                pending = start(over, attrs, operands, slots[result], parts)
            slots[token] = _Started(pending, operands)

        return call


def spoken_over(steps: Sequence[Step], communicators: Communicators) -> tuple[Step, ...]:
    """The steps over these communicators, and what they do together: all but messages, of which two ranks alone know."""
    numbers: dict[Node, int] = {}
    groups: dict[str, list[CollectiveStep]] = {}
    for step in steps:
        if isinstance(step, CollectiveStep) and step.node.op.name not in MESSAGES:
            members = groups.setdefault(step.node.attrs.str("group", "world"), [])
            numbers[step.node] = len(members)
            members.append(step)
    known = {step.node: each for each in map(Together, groups.values()) for step in each.steps}

    def over(step: CollectiveStep) -> CollectiveStep:
        node = step.node
        return step._replace(communicators=communicators, together=known.get(node), number=numbers.get(node, 0))

    return tuple(over(step) if isinstance(step, CollectiveStep) else step for step in steps)


def _contiguous(array: Any) -> Any:
    """The array, or a copy without gaps; of a device it stays there."""
    return array if array.flags.c_contiguous else array.copy(order="C")


class _Started(NamedTuple):
    """What is to be waited for, with the operands that it reads until then."""

    pending: Pending
    operands: Sequence[Array]

    def rows(self) -> Iterator[slice]:
        """The rows that come, as they come."""
        if isinstance(self.pending, InChunks):
            yield from self.pending.rows()
        else:
            self.pending.wait()
            yield slice(None)


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
