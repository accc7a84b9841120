"""From a graph to a plan: steps in order over numbered slots, and how long each buffer lives.

What no kernel computes goes to the host library in maximal convex regions. Every operator has a depth: the number of
changes of hands on the longest path to it. Operators of one hand and one depth form a region: a path that leaves it
and comes back would have gained depth, so no region waits for itself. A view that a region does not hold lies outside of
it like any other step: what reads it comes later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from graphkernel.cluster.liveness import is_view
from graphkernel.errors import RuntimeFailure
from graphkernel.ops.library.host import ONNX
from graphkernel.passes.shape.shape_values import SOURCES, numbers_of_shapes
from graphkernel.runtime.onnxruntime.region_step import RegionStep
from graphkernel.runtime.plan.segments import segments_of
from graphkernel.runtime.steps.host import HostLibrary
from graphkernel.runtime.steps.program import Buffer, Held, Named, Number, Output, Program, Segment
from graphkernel.runtime.steps.steps import Kernel, KernelStep, Step, ViewStep
from kernelgen.tensor.definitions import Place, definitions, in_order, needed
from kernelgen.tensor.graph import LEAVES, Graph, Node, Value
from kernelgen.tensor.types import Sym

KERNEL, NUMPY, NOBODY = "kernel", "numpy", ""
BEFORE, REGION, AFTER = range(
    3
)  # at one depth: views of inputs, then the region, then what may read a view of its results


@dataclass(frozen=True, eq=False)
class CompiledKernel:
    """A kernel as the planner needs it.

    ``updates`` are the positions of operands that it writes in place, ``untold`` the symbols that it must be told.
    """

    call: Kernel
    updates: tuple[int, ...] = ()
    untold: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Plan:
    """Steps in order, where inputs, constants and outputs are, the buffers in between, and what went to numpy and why.

    ``numbers`` are operators without a step: they compute a few numbers from shapes, once for each set of input shapes.
    ``differences`` are extents that some values of the symbols would make negative, each with the name of a node.
    ``segments`` are the steps that are bound together.
    """

    graph: Graph
    steps: tuple[Step, ...]
    slots: Mapping[Value, int]
    inputs: tuple[int, ...]
    constants: tuple[Value, ...]
    numbers: tuple[Node, ...]
    outputs: tuple[Output, ...]
    buffers: tuple[Buffer, ...]
    left_to_numpy: Mapping[Node, str]
    differences: Mapping[Sym, str]
    segments: tuple[Segment, ...]

    @cached_property
    def program(self) -> Program:
        """What running needs of it."""
        graph, slots = self.graph, self.slots
        numbers = tuple(_number(node, slots) for node in self.numbers)
        read = {slot for each in (*self.steps, *self.outputs) for slot in _read(each)}
        read |= {slot for number in numbers for slot, _ in number.operands}  # regions hold their constants themselves
        return Program(
            len(slots), self.steps, _named(graph.input_names, graph.inputs, slots), self.outputs,
            _named(graph.output_names, graph.outputs, slots),
            tuple((alias.input, alias.output) for alias in graph.aliases), graph.derived,
            tuple(Held(value.node.name, slots[value], value.constant) for value in self.constants if slots[value] in read),
            numbers, self.buffers, self.differences, self.segments,
        )  # fmt: skip


def _named(names: Sequence[str], values: Sequence[Value], slots: Mapping[Value, int]) -> tuple[Named, ...]:
    return tuple(Named(name, value.type, slots[value]) for name, value in zip(names, values, strict=True))


def _read(reader: Step | Output) -> tuple[int, ...]:
    return (reader.slot,) if isinstance(reader, Output) else reader.inputs


def _number(node: Node, slots: Mapping[Value, int]) -> Number:
    operands = tuple((slots[value], value.type) for value in node.args)
    return Number(node, operands, tuple(slots[value] for value in node.outs))


def make_plan(graph: Graph, kernels: Mapping[Node, CompiledKernel], library: HostLibrary) -> Plan:
    """The plan of a graph. ``kernels`` holds the compiled kernel of every fused node.

    What the library declines when it is handed a region is left out, and regions are made anew around it.
    """
    slots = {value: index for index, value in enumerate(value for node in graph.nodes for value in node.outs)}
    maker = _Maker(graph, kernels, library, slots)
    steps = maker.steps()
    while maker.is_stale:
        steps = maker.steps()
    steps = _protected(graph, steps, slots)
    roots = _roots(steps)
    segments = segments_of(steps, slots, maker.told, maker.places)
    return Plan(
        graph,
        steps,
        slots,
        tuple(slots[value] for value in graph.inputs),
        tuple(node.out for node in graph.nodes if node.data is not None),
        tuple(node for node in graph.operators if node in maker.numbers),
        _outputs(graph, steps, slots, roots),
        _buffers(graph, steps, slots, roots, segments),
        maker.refused,
        _differences(graph),
        segments,
    )


@dataclass(frozen=True)
class _Hand:
    """Who runs an operator, after how many changes of hands, whether in a region, and if not, why not."""

    who: str
    depth: int
    in_region: bool = False
    why: str = ""

    def differs_from(self, who: str, in_region: bool) -> bool:
        """Whether what this one leaves must be there before the other starts: between the two hands change."""
        return self.who != NOBODY and (self.who, self.in_region) != (who, in_region)


def _assign_hands(
    graph: Graph,
    numbers: frozenset[Node],
    library: HostLibrary,
    declined: Mapping[Node, str],
    places: Mapping[str, Place],
) -> dict[Node, _Hand]:
    """Who runs each operator; nobody runs those whose numbers follow from shapes.

    What is told a symbol comes behind the operator that defines it, one of those of ``places``.
    """
    declined = {**declined, **dict.fromkeys(numbers, "")}
    groups = {
        node: None if is_view(node) or node.body is not None or node in declined else library.group(node)
        for node in graph.operators
    }
    inner = {node: group for node, group in _views_inside(graph, groups, library).items() if node not in declined}
    hands: dict[Node, _Hand] = {}
    for node in in_order(graph, places):
        if node in numbers or node.op in LEAVES:
            continue
        before = [hands[value.node] for value in needed(node, places) if value.node in hands]
        if is_view(node) and node not in inner:
            hands[node] = replace(before[0], in_region=False) if before else _Hand(NOBODY, 0)
            continue
        group = inner.get(node, groups[node])
        who = KERNEL if node.body is not None else NUMPY if group is None else group
        in_region = who not in (KERNEL, NUMPY)
        depth = max((hand.depth + hand.differs_from(who, in_region) for hand in before), default=0)
        why = declined.get(node) or library.why_not(node) if who == NUMPY else ""
        hands[node] = _Hand(who, depth, in_region, why)
    return _with_constants_late(graph, hands)


def _with_constants_late(graph: Graph, hands: Mapping[Node, _Hand]) -> dict[Node, _Hand]:
    """What is computed in regions from constants alone joins the region that first needs it.

    There the library folds it when it opens the session, or reads quantized weights as they are; in the first region it
    would compute all weights of the network anew in each run, and hand them on.
    """
    constant: set[Node] = set()
    for node, hand in hands.items():
        if hand.in_region and all(value.constant is not None or value.node in constant for value in node.args):
            constant.add(node)
    found = dict(hands)
    for node in [node for node in reversed(list(hands)) if node in constant]:
        users = [found[user] for user in graph.users[node] if user in found]
        if users and all(user.in_region and user.who == found[node].who for user in users):
            found[node] = replace(found[node], depth=min(user.depth for user in users))
    return found


def _views_inside(graph: Graph, groups: Mapping[Node, str | None], library: HostLibrary) -> dict[Node, str]:
    """Views between two operators of one group belong to the region; all others cost nothing outside."""
    inside: dict[Node, str] = {}
    for node in graph.operators:
        if not is_view(node):
            continue
        producer = node.args[0].node
        group = inside.get(producer) if is_view(producer) else groups.get(producer)
        if group is not None and group in _groups_after(graph, node, groups) and library.group(node) is not None:
            inside[node] = group
    return inside


def _groups_after(graph: Graph, view: Node, groups: Mapping[Node, str | None]) -> set[str | None]:
    found: set[str | None] = set()
    waiting = [view]
    while waiting:
        for user in graph.users[waiting.pop()]:
            if is_view(user):
                waiting.append(user)
            else:
                found.add(groups[user])
    return found


def _known_numbers(graph: Graph) -> frozenset[Node]:
    """Operators that need shapes only, if those follow from the inputs'; but none of ONNX's own, which may fail."""
    candidates, told = numbers_of_shapes(graph), _told(graph)
    found: set[Node] = set()
    for node in graph.operators:
        if node in candidates and node.op is not ONNX:
            is_source = node.op.name in SOURCES
            if told.issuperset(_asked(node)) if is_source else all(_is_known(arg, found) for arg in node.args):
                found.add(node)
    return frozenset(found)


def _told(graph: Graph) -> frozenset[str]:
    """The symbols that follow from the inputs."""
    own = (name for value in graph.inputs for name in value.type.symbols)
    return frozenset(own).union(entry.name for entry in graph.derived)


def _asked(source: Node) -> tuple[str, ...]:
    """The symbols of the shape, or of the dim, that an operator gives as numbers."""
    if source.args:
        return source.args[0].type.symbols
    value = source.attrs.get("value")
    return value.symbols if isinstance(value, Sym) else ()


def _is_known(value: Value, numbers: set[Node]) -> bool:
    return value.node in numbers or value.constant is not None


def _regions(graph: Graph, hands: Mapping[Node, _Hand]) -> Iterator[tuple[Node, ...]]:
    """The operators in an order that respects their needs; those of one library region together."""
    position = {node: index for index, node in enumerate(hands)}
    regions: dict[tuple[int, str], list[Node]] = {}
    singles: list[tuple[int, int, int, tuple[Node, ...]]] = []
    for node, hand in hands.items():
        if hand.in_region:
            regions.setdefault((hand.depth, hand.who), []).append(node)
        else:
            singles.append((hand.depth, AFTER if hand.who else BEFORE, position[node], (node,)))
    whole = [(depth, REGION, position[nodes[0]], tuple(nodes)) for (depth, _), nodes in regions.items()]
    for *_, members in sorted([*whole, *singles], key=lambda entry: entry[:3]):
        yield members


@dataclass(eq=False)
class _Maker:
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

    def __post_init__(self) -> None:
        self.numbers = _known_numbers(self.graph)
        self.told = _told(self.graph)
        self.places = definitions(self.graph)

    def steps(self) -> list[Step]:
        """The steps in order. They are stale when a region was declined meanwhile: the next ones leave out why."""
        known = len(self.declined)
        hands = _assign_hands(self.graph, self.numbers, self.library, self.declined, self.places)
        self.refused = {node: hand.why for node, hand in hands.items() if hand.who == NUMPY}
        found: list[Step] = []
        for members in _regions(self.graph, hands):
            found.extend(self._steps_of(members, hands[members[0]], len(found)))
        self.is_stale = len(self.declined) > known
        return found

    def _steps_of(self, members: tuple[Node, ...], hand: _Hand, number: int) -> Iterator[Step]:
        first = members[0]
        if first.body is not None:
            yield _kernel_step(first, self.kernels[first], self.slots)
        elif not hand.in_region:
            yield _plain_step(first, self.library, self.slots)
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


def _kernel_step(node: Node, kernel: CompiledKernel, slots: Mapping[Value, int]) -> KernelStep:
    inputs, outputs = tuple(slots[arg] for arg in node.args), tuple(slots[value] for value in node.outs)
    aliases = node.body.aliases if node.body is not None else ()
    stored = tuple((outputs[alias.output], alias.input) for alias in aliases)
    return KernelStep(node.name, kernel.call, inputs, outputs, frozenset(kernel.updates), stored, kernel.untold)


def _plain_step(node: Node, library: HostLibrary, slots: Mapping[Value, int]) -> Step:
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
    inside, outputs = set(members), set(graph.outputs)
    read = {arg for node in members for user in graph.users[node] if user not in inside for arg in user.args}
    if places:
        read |= {value for node in graph.operators if node not in inside for value in needed(node, places)}
    return tuple(value for node in members for value in node.outs if value in read or value in outputs)


def _protected(graph: Graph, steps: Sequence[Step], slots: Mapping[Value, int]) -> tuple[Step, ...]:
    """Kernels update operands in place where that memory is theirs to write and nobody reads the old content later.

    Memory is theirs when a step made it, or when it is an input that the graph says is written. Elsewhere the kernel is
    given a copy.
    """
    written = {slots[graph.inputs[alias.input]] for alias in graph.aliases}
    last_read = {slot: number for number, step in enumerate(steps) for slot in step.inputs}
    last_read.update((slots[value], len(steps)) for value in graph.outputs)
    made: set[int] = set()
    holders: dict[int, set[int]] = {}  # the slots with the content that a piece of memory has at this step
    roots: dict[int, int] = {}
    found: list[Step] = []
    for number, step in enumerate(steps):
        if isinstance(step, KernelStep) and step.private:
            own = frozenset(
                p
                for p in step.private
                if (root := roots.get(step.inputs[p], step.inputs[p])) not in made | written
                or any(
                    last_read[slot] > number
                    for slot in (*holders.get(root, ()), root, step.inputs[p])
                    if slot in last_read
                )
                or _is_read_twice(step, p, roots)
            )
            step = step._replace(private=own)
        for slot, root in _memory(step, roots).items():
            roots[slot] = root
            if root == slot:
                made.add(slot)
            holders[root] = holders.get(root, set()) | {slot} if isinstance(step, ViewStep) else {slot}
        found.append(step)
    return tuple(found)


def _is_read_twice(step: KernelStep, position: int, roots: Mapping[int, int]) -> bool:
    """Whether another operand lies in the memory of this one."""
    memory = [roots.get(slot, slot) for slot in step.inputs]
    return memory.count(memory[position]) > 1


def _memory(step: Step, roots: Mapping[int, int]) -> dict[int, int]:
    """For each slot that a step fills the slot whose memory it is: of an operand, or its own."""
    if isinstance(step, ViewStep):
        return {slot: roots.get(step.inputs[0], step.inputs[0]) for slot in step.outputs}
    memory = {slot: slot for slot in step.outputs}
    if isinstance(step, KernelStep):
        shared = {slot: step.inputs[position] for slot, position in step.stored if position not in step.private}
        memory.update((slot, roots.get(operand, operand)) for slot, operand in shared.items())
    return memory


def _roots(steps: Sequence[Step]) -> dict[int, int]:
    """For each slot that a step fills, the slot whose memory it is: views and updates lie in the memory of their operand."""
    roots: dict[int, int] = {}
    for step in steps:
        roots.update(_memory(step, roots))
    return roots


def _outputs(
    graph: Graph, steps: Sequence[Step], slots: Mapping[Value, int], roots: Mapping[int, int]
) -> tuple[Output, ...]:
    made = {slot for step in steps for slot in step.outputs if roots[slot] == slot}  # not what follows from shapes
    found: list[Output] = []
    for value in graph.outputs:
        root = roots.get(slots[value])
        found.append(Output(slots[value], root not in made))
        made.discard(root if root is not None else -1)  # given away: the next output in this memory is copied
    return tuple(found)


def _buffers(
    graph: Graph,
    steps: Sequence[Step],
    slots: Mapping[Value, int],
    roots: Mapping[int, int],
    segments: Sequence[Segment],
) -> tuple[Buffer, ...]:
    """The memory that buffered steps write into, with the life of all views of it."""
    values = {slot: value for value, slot in slots.items()}
    first = {slot: number for number, step in enumerate(steps) for slot in _buffered(step)}
    last = dict(first)
    for number, step in enumerate(steps):
        last.update({roots.get(slot, slot): number for slot in step.inputs})
    outside = {roots.get(slots[value]) for value in graph.outputs}
    outside |= {slot for slot in first for each in segments if first[slot] < each.first <= last[slot]}
    kernels = {
        number for number, step in enumerate(steps) if isinstance(step, KernelStep) and outside.issuperset(step.made)
    }
    return tuple(
        Buffer(slot, values[slot].node.name, values[slot].type, number, last[slot], slot in outside, number in kernels)
        for slot, number in first.items()
    )


def _buffered(step: Step) -> tuple[int, ...]:
    """The slots that need an array before the step runs."""
    return step.made if isinstance(step, KernelStep | RegionStep) else step.outputs if step.buffered else ()


def _differences(graph: Graph) -> dict[Sym, str]:
    extents = ((dim, node.name) for node in graph.nodes for type_ in node.types for dim in type_.shape)
    return {dim: name for dim, name in extents if isinstance(dim, Sym) and any(factor < 0 for _, factor in dim.terms)}
