"""What a fusion pattern sees (areas and their links) and says (which neighbours it wants in one kernel).

A pattern is one small function on an area. It never checks for cycles, limits or costs and never merges: the engine
(:mod:`graphkernel.cluster.grow_areas`) does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol

from graphkernel.cluster.iteration_space import Space
from graphkernel.cluster.split_models import Limits
from kernelgen.system.cached_property import cached_property
from kernelgen.system.named_tuples import NamedTuple
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operator import Kind, Operator
from kernelgen.tensor.types import Dim


class Mode(Enum):
    """What becomes of an area that stays alone."""

    BASIC = "basic"  # goes back to the graph as an ordinary operator: a reshape is a view, not a kernel
    COMPOSITE = "composite"  # becomes a kernel


class Direction(Enum):
    """Whether a pattern draws producers into the area or the area into its users; merging itself is symmetric."""

    FORWARD = "forward"
    BACKWARD = "backward"


class Neighbours(Protocol):
    """Where an area finds the areas around it: :class:`graphkernel.cluster.partition.Partition`."""

    def inputs(self, area: Area) -> tuple[Link, ...]:
        """The areas that make its operands."""
        ...

    def users(self, area: Area) -> tuple[Link, ...]:
        """The areas that use its results."""
        ...

    def user_count(self, area: Area) -> int:
        """How many areas use its results."""
        ...

    def siblings(self, area: Area) -> tuple[Area, ...]:
        """The areas nearby that read an operand that it reads too and are not linked to it."""
        ...

    def home(self, node: Node) -> int | None:
        """The number of the area that holds a node; None for what is no operator."""
        ...


@dataclass(eq=False)  # all is Final, as a node's fields are
class Area:
    """A connected set of operators that will share a kernel; ``number`` names it among the living areas.

    ``ops`` are those that its operators apply, ``kind`` is the greatest kind in it, ``elements`` the number of elements its
    dominant operator makes, ``spaces`` the spaces of its reductions, ``operands`` the values from outside that it reads,
    ``reads`` those that it reads element by element, ``outputs`` the results that other areas or the outside use. Its
    ``neighbours`` hold it, and are not held by it: it tells of them as long as they are there.
    """

    number: Final[int]
    nodes: Final[tuple[Node, ...]]
    ops: Final[frozenset[Operator]]
    kind: Final[Kind]
    elements: Final[Dim]
    spaces: Final[frozenset[Space]]
    operands: Final[frozenset[Value]]
    reads: Final[frozenset[Value]]
    outputs: Final[tuple[Value, ...]]
    is_output: Final[bool]
    mode: Final[Mode]
    neighbours: Final[Neighbours] = field(repr=False)

    @property
    def size(self) -> int:
        """The number of operators."""
        return len(self.nodes)

    @property
    def inputs(self) -> tuple[Link, ...]:
        """The areas that make its operands."""
        return self.neighbours.inputs(self)

    @property
    def users(self) -> tuple[Link, ...]:
        """The areas that use its results."""
        return self.neighbours.users(self)

    @property
    def siblings(self) -> tuple[Area, ...]:
        """The areas nearby that read an operand that it reads too and are not linked to it."""
        return self.neighbours.siblings(self)

    def home(self, node: Node) -> int | None:
        """The number of the area, this or another, that holds a node; None for what is no operator."""
        return self.neighbours.home(node)

    @property
    def has_one_user(self) -> bool:
        """True when a single area uses it and the outside does not."""
        return not self.is_output and self.neighbours.user_count(self) == 1

    @property
    def space(self) -> Space | None:
        """The one space of all its reductions; None when there is none, or several."""
        return next(iter(self.spaces)) if len(self.spaces) == 1 else None

    @cached_property
    def opaque(self) -> tuple[Node, ...]:
        """Its operators of unknown dependence."""
        return tuple([node for node in self.nodes if node.op.kind is Kind.OPAQUE]) if self.kind is Kind.OPAQUE else ()

    def lone(self, *ops: Operator) -> Node | None:
        """Its only operator, when it is one of these."""
        return self.nodes[0] if len(self.nodes) == 1 and self.nodes[0].op in ops else None


class Link(NamedTuple):
    """A neighbouring area, and the spaces over which the user broadcasts the producer's values."""

    area: Area
    spreads: frozenset[Space]

    @property
    def is_injective(self) -> bool:
        """True when each element is read where it is needed once: no value is broadcast."""
        return not self.spreads


Proposal = Callable[[Area, Limits], Iterable[Area]]


@dataclass(frozen=True)
class FusionPattern:
    """A named proposal. ``whole``: all proposed areas merge, or none does.

    For areas of other ``kinds`` it wants nothing, nor for those that hold none of ``ops``, where these are given.
    """

    name: str
    direction: Direction
    propose: Proposal
    whole: bool = False
    kinds: tuple[Kind, ...] = tuple(Kind)
    ops: frozenset[Operator] | None = None

    @property
    def doc(self) -> str:
        """What it fuses."""
        return self.propose.__doc__ or ""

    def grows(self, area: Area) -> bool:
        """Whether it may want something for an ``area``."""
        return area.kind in self.kinds and (self.ops is None or not self.ops.isdisjoint(area.ops))


def fusion(
    direction: Direction,
    *,
    whole: bool = False,
    kinds: tuple[Kind, ...] = tuple(Kind),
    ops: Iterable[Operator] | None = None,
) -> Callable[[Proposal], FusionPattern]:
    """Declares a fusion pattern named like the function; :mod:`graphkernel.cluster.split_models` gives it its turn.

    ``kinds`` are those of the areas that it grows, ``ops`` operators of which these hold one: it is not asked about
    others, which are most.
    """

    def declare(propose: Proposal) -> FusionPattern:
        held = None if ops is None else frozenset(ops)
        return FusionPattern(propose.__name__, direction, propose, whole, kinds, held)

    return declare
