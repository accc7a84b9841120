"""From operators to steps over numbered slots; what the library declines when it is handed a region is left out of regions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphkernel.cluster.liveness import is_view
from graphkernel.cluster.rows import row_axes
from graphkernel.errors import RuntimeFailure
from graphkernel.ops.library.communication import ALL_REDUCE
from graphkernel.ops.library.places import PLACES
from graphkernel.runtime.onnxruntime.region_step import RegionStep
from graphkernel.runtime.plan.known_numbers import known_numbers
from graphkernel.runtime.plan.placement import NUMPY, Placement, in_regions, placements
from graphkernel.runtime.steps.collective import CollectiveStep
from graphkernel.runtime.steps.host import HostLibrary
from graphkernel.runtime.steps.program import Held
from graphkernel.runtime.steps.steps import Kernel, KernelStep, PlacesStep, Step, ViewStep
from kernelgen.system.mapped import let_go
from kernelgen.tensor.definitions import Place, definitions, needed, told_symbols
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.operators.creation import SHAPE
from kernelgen.tensor.operators.indexing import GATHER
from kernelgen.tensor.operators.type_rules import BY_ROWS


@dataclass(frozen=True, eq=False)
class Preparation:
    """What a kernel takes in place of operands that are constant.

    ``taken`` are the positions of the operands that it still takes, before the arrays that ``call`` computes from those at
    ``read``; one behind the last operand is that of extents that no shape tells.
    """

    call: Callable[..., tuple[Any, ...]]
    read: tuple[int, ...]
    taken: tuple[int, ...]


def preparation_of(kernel: Any) -> Preparation | None:  # any compiler's kernel
    """What a kernel takes in place of constants; None for one that takes all of its operands."""
    if getattr(kernel, "preparation", None) is None:
        return None
    return Preparation(kernel.prepare, kernel.prepares, kernel.taken)


@dataclass(frozen=True, eq=False)
class CompiledKernel:
    """A kernel as the planner needs it.

    ``updates`` are the positions of operands that it writes in place, ``untold`` the symbols that it must be told.
    """

    call: Kernel
    updates: tuple[int, ...] = ()
    untold: tuple[str, ...] = ()
    preparation: Preparation | None = None


@dataclass
class Prepared:
    """The arrays that kernels take in place of constants, in slots from ``first`` on; equal ones are computed once."""

    first: int
    held: list[Held] = field(default_factory=list[Held])
    _known: dict[tuple[Preparation, tuple[Value, ...]], tuple[int, ...]] = field(
        default_factory=dict[tuple[Preparation, tuple[Value, ...]], tuple[int, ...]]
    )

    def slots(self, name: str, preparation: Preparation, constants: tuple[Value, ...]) -> tuple[int, ...]:
        """The slots of the arrays that a ``preparation`` computes from these ``constants``, held under the ``name``."""
        key = preparation, constants
        if key not in self._known:
            weights = [value.constant for value in constants if value.constant is not None]
            arrays = preparation.call(*weights)
            for weight in weights:  # a file's stay there until somebody reads them as they are
                let_go(weight)
            begin = self.first + len(self.held)
            self.held += [Held(f"{name}.prepared{k}", begin + k, array) for k, array in enumerate(arrays)]
            self._known[key] = tuple(range(begin, begin + len(arrays)))
        return self._known[key]


@dataclass(eq=False)
class StepMaker:
    """Makes the steps of a graph; ``declined`` are the operators that the library turned out not to run, and why."""

    graph: Graph
    kernels: Mapping[Node, CompiledKernel]
    library: HostLibrary
    slots: Mapping[Value, int]
    declined: dict[Node, str] = field(default_factory=dict[Node, str])
    refused: Mapping[Node, str] = field(default_factory=dict[Node, str])
    is_stale: bool = False
    numbers: frozenset[Node] = field(init=False)
    told: frozenset[str] = field(init=False)
    places: Mapping[str, Place] = field(init=False)
    prepared: Prepared = field(init=False)

    def __post_init__(self) -> None:
        self.numbers = known_numbers(self.graph)
        self.told = told_symbols(self.graph)
        self.places = definitions(self.graph)
        self.prepared = Prepared(len(self.slots))

    def steps(self) -> list[Step]:
        """The steps in order. They are stale when a region was declined meanwhile: the next ones leave out why."""
        known = len(self.declined)
        hands = placements(self.graph, self.numbers, self.library, self.declined, self.places)
        self.refused = {node: hand.why for node, hand in hands.items() if hand.who == NUMPY and node.op is not SHAPE}
        found: list[Step] = []
        for members in in_regions(self.graph, hands):
            found.extend(self._steps_of(members, hands[members[0]], len(found)))
        self.is_stale = len(self.declined) > known
        return found

    def _steps_of(self, members: tuple[Node, ...], hand: Placement, number: int) -> Iterator[Step]:
        first = members[0]
        if first.body is not None:
            step = _kernel_step(first, self.kernels[first], self.slots, self.prepared)
            behind = _sum_of_rows(self.graph, first)
            yield step if behind is None else step._replace(ahead=self.slots[behind.outs[-1]])
        elif not hand.in_region:
            step = _plain_step(first, self.library, self.slots)
            takes_rows = any(_sum_of_rows(self.graph, arg.node) is first for arg in first.args)
            yield step._replace(takes_rows=True) if takes_rows and isinstance(step, CollectiveStep) else step
        else:
            try:
                yield self._region(f"region_{number}", members)
            except RuntimeFailure as failure:
                self.declined.update(self._declined_alone(members) or dict.fromkeys(members, str(failure)))

    def _region(self, name: str, members: tuple[Node, ...]) -> Step:
        step = self.library.region(name, members, self.slots, _leaving(self.graph, members, self.places))
        return _allocating(step, self.told) if isinstance(step, RegionStep) else step

    def _declined_alone(self, members: tuple[Node, ...]) -> dict[Node, str]:
        """The operators of a region that the library does not even run alone."""
        found: dict[Node, str] = {}
        for node in members:
            try:
                self._region(node.name, (node,))
            except RuntimeFailure as failure:
                found[node] = str(failure)
        return found


def _kernel_step(node: Node, kernel: CompiledKernel, slots: Mapping[Value, int], prepared: Prepared) -> KernelStep:
    inputs, outputs = tuple(slots[arg] for arg in node.args), tuple(slots[value] for value in node.outs)
    before, arrays = kernel.preparation, tuple[int, ...]()
    if before is not None:
        arrays = prepared.slots(node.name, before, tuple(node.args[position] for position in before.read))
        inputs = (*(inputs[position] for position in before.taken if position < len(node.args)), *arrays)
    aliases = node.body.aliases if node.body is not None else ()
    stored = tuple((outputs[alias.output], alias.input) for alias in aliases)
    told = frozenset(kernel.updates), stored, kernel.untold, len(arrays), _axes(node, before, len(arrays))
    return KernelStep(node.name, kernel.call, inputs, outputs, *told)


def _axes(node: Node, before: Preparation | None, prepared: int) -> tuple[int | None, ...]:
    """The axis of rows of each input of a kernel that takes any number of them, the last of which were ``prepared``."""
    if node.body is None or not node.attrs.bool(BY_ROWS, False):
        return ()
    axes = row_axes(node.body)
    found = tuple(axes.get(value) for value in node.body.inputs)
    taken = found if before is None else tuple(found[position] for position in before.taken if position < len(found))
    return (*taken, *[None] * prepared)


def _sum_of_rows(graph: Graph, kernel: Node) -> Node | None:
    """The AllReduce that alone reads what a kernel computes row by row; None where there is none."""
    if kernel.body is None or not kernel.attrs.bool(BY_ROWS, False) or len(kernel.outs) != 1:
        return None
    users = graph.users[kernel]
    is_alone = len(users) == 1 and users[0].op is ALL_REDUCE and kernel.out not in graph.outputs
    return users[0] if is_alone else None


def _plain_step(node: Node, library: HostLibrary, slots: Mapping[Value, int]) -> Step:
    if node.op.traits.ordered:
        return CollectiveStep(node, tuple(slots[arg] for arg in node.args), tuple(slots[value] for value in node.outs))
    if node.op is PLACES:
        name, extent = f"{GATHER.name} {node.attrs.str('reader')}", node.attrs.dims("extent")[0]
        return PlacesStep(name, (slots[node.args[0]],), (slots[node.out],), extent)
    if not is_view(node):
        return library.single(node, slots)
    return ViewStep(node.name, (slots[node.args[0]],), (slots[node.out],), node.out.type.shape)


def _allocating(step: RegionStep, told: frozenset[str]) -> RegionStep:
    """The region, whose library allocates the results with extents that the inputs do not tell, and what is no number."""
    results = zip(step.outputs, step.output_types, strict=True)
    unsized = frozenset(slot for slot, type_ in results if type_.dtype.is_opaque or not told.issuperset(type_.symbols))
    return step._replace(unsized=unsized) if unsized else step


def _leaving(graph: Graph, members: Sequence[Node], places: Mapping[str, Place]) -> tuple[Value, ...]:
    """The results that are needed outside of the region, if only for their extents."""
    inside, read = set(members), set(graph.outputs)
    for node in members:
        for user in graph.users[node]:
            if user not in inside:
                read.update(user.args)
    if places:
        for node in graph.operators:
            if node not in inside:
                read.update(needed(node, places))
    return tuple(value for node in members for value in node.outs if value in read)
