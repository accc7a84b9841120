"""The only door to kernelgen: the body of a fused node is what it compiles, and AKG's composite JSON becomes a graph.

The body is given the names that AKG gives: operands ``input_0, input_1, ...``, results ``output_<result>_<operator>``. So
equal bodies are equal kernels, whatever their nodes are called.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphkernel.cluster.own_products import prepared_operands
from graphkernel.cluster.rows import Axes, row_axes
from graphkernel.errors import FrontendError, GraphKernelError, nearest
from graphkernel.ops import OPS
from graphkernel.passes.named_kernels import basic
from kernelgen.composite.description import KernelDesc, ParallelFusion
from kernelgen.composite.read import load_desc
from kernelgen.composite.specialize import specialize, with_types
from kernelgen.composite.vocabulary import is_declared, operator_named
from kernelgen.composite.write import dump_desc
from kernelgen.errors import ArgumentError, DescError, UnsupportedError
from kernelgen.plan import Plan
from kernelgen.system.bounded_io import UNFIT, json_value
from kernelgen.system.escape import line
from kernelgen.tensor.attrs import symbols_in
from kernelgen.tensor.graph import PARAMETER, Alias, Builder, Graph, Node, Value, keep
from kernelgen.tensor.operator import Kind, Operator
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.effects import ASSIGN
from kernelgen.tensor.operators.pieces import STRIDED_SLICE
from kernelgen.tensor.operators.reduce import REDUCE_SUM
from kernelgen.tensor.operators.shape import BROADCAST_TO, RESHAPE
from kernelgen.tensor.operators.type_rules import BY_ROWS, OWN_KERNEL
from kernelgen.tensor.types import Attrs, Sym, TensorType, dtype, sym

if TYPE_CHECKING:
    from kernelgen.tuning.database import Subject, Tunings

LOGGER = logging.getLogger(__name__)

Compiler = Callable[..., object]
"""``compiler(desc, target=...)``, and ``plan=`` where there is one."""

PROCESS: Mapping[str, str] = {"cpu": "cpu", "gpu": "cuda", "ascend": "aicore"}
EXTENTS = "extents"


def to_desc(kernel: Node | Graph, target: str = "cpu") -> KernelDesc:
    """The kernel of a fused node or of a body; inputs and outputs in the body's order.

    Where the shapes of the operands do not tell the symbols that the body needs, a last input called ``extents`` does: it
    has no elements, and a dim for each of :func:`untold_symbols` before one of 0.

    An output that is aliased to an input is no output of the kernel: it is stored into that input, after all else. An output
    that is a parameter, a constant or another output again is copied. An operator that Ascend has by name is taken apart.
    Raises ``GraphKernelError`` for what a kernel cannot hold: a nested kernel, or a constant of several elements.
    """
    body = kernel.body if isinstance(kernel, Node) else kernel
    if body is None:
        raise GraphKernelError(f"{kernel!r} is not a kernel; only fused nodes and graphs have a description")
    body = basic(body)
    marks = kernel.attrs if isinstance(kernel, Node) else Attrs()
    named = _Named(_assigned(body) if marks.get("composite_type") == "atomic_add" else frozenset())
    inputs = named.inputs(body)
    for node in body.operators:
        named.operator(node)
    results = named.results(body, inputs)
    graph = named.graph(body, inputs, results.values())
    stitched = _stitched(body) if target == "gpu" else ()
    desc = KernelDesc(
        graph,
        tuple(named.steps),
        PROCESS[target],
        buffer_stitch=tuple((named.result(named.read(value)),) for value in stitched),
        parallel_fusion=_parallel(marks, {position: named.result(value) for position, value in results.items()}),
    )
    if not marks.bool(BY_ROWS, False):
        return desc
    return _for_any_rows(desc, {named.read(value): axis for value, axis in row_axes(body).items()})


def _for_any_rows(desc: KernelDesc, axes: Axes) -> KernelDesc:
    """The kernel for as many rows as its operands have along ``axes``, see :mod:`graphkernel.cluster.rows`."""

    def of_rows(value: Value) -> TensorType:
        shape, axis = value.type.shape, axes.get(value)
        return value.type if axis is None else value.type.of_shape((*shape[:axis], sym("rows"), *shape[axis + 1 :]))

    return with_types(desc, of_rows)


def description(node: Node, target: str = "cpu") -> dict[str, Any]:
    """The composite JSON of a fused node's kernel. Raises what :func:`to_desc` raises."""
    return dump_desc(to_desc(node, target))


PLAN = "plan"
"""The attribute of a fused node that holds its kernel's plan, as JSON."""


def with_plans(graph: Graph, tunings: Tunings, target: str) -> Graph:
    """The graph whose fused nodes carry the plans that tuning found for their kernels on this machine."""

    def marked(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        plan = tunings.plan(tuned_as(node, target), target) if node.body is not None else ""
        attrs = node.attrs.with_(**{PLAN: plan}) if plan else node.attrs
        made = keep(node, args)
        return (made if attrs is node.attrs else replace(made, attrs=attrs)).outs

    return graph.rebuild(marked)


def tuned_as(node: Node, target: str = "cpu") -> Subject:
    """The kernel of a fused node as tuning knows it. Raises what :func:`to_desc` raises."""
    from kernelgen.tuning.database import Subject  # only who tunes needs it

    return Subject(description(node, target), prepared_operands(node) if target == "cpu" else ())


def planned(compiler: Compiler, node: Node) -> Compiler:
    """A compiler that follows the plan that a fused node carries; one that no longer fits is told of and not followed."""
    text = node.attrs.get(PLAN)
    if not isinstance(text, str):
        return compiler

    def compile(desc: KernelDesc, target: str) -> object:
        try:
            return compiler(desc, target=target, plan=Plan.from_json(json_value(text, ArgumentError)))
        except (ArgumentError, UnsupportedError) as error:
            LOGGER.warning("%s: tuned plan unused: %s; tune again into a new file", line(desc.name), line(str(error)))
            return compiler(desc, target=target)

    return compile


def tunings_of(given: Tunings | str | PathLike[str] | None) -> Tunings | None:
    """The findings in a file of ``graphkernel tune``, or those that were read before. Raises ArgumentError."""
    if given is None:
        return None
    from kernelgen.tuning.database import Tunings  # only who has tuned needs it

    return Tunings.of(given)


def key_of(desc: KernelDesc) -> str:
    """What equal kernels have in common, whatever they are called: text, because 1 == True == 1.0 and 0.0 == -0.0."""
    return f"{replace(desc.graph, name='')}{desc.process} {desc.buffer_stitch} {desc.parallel_fusion}"


def with_plain_sizes(desc: KernelDesc) -> KernelDesc:
    """The kernel with its sizes numbered as they appear: kernels that differ in what sizes are called are one."""
    dims = (dim for each in (*desc.inputs, *desc.outputs) for dim in each.shape)
    within = (value for node in desc.operators for value in (*node.attrs.values(), *(out.shape for out in node.outs)))
    names = dict.fromkeys(symbols_in((*dims, *within)))
    return specialize(desc, {name: sym(f"s{number}") for number, name in enumerate(names)})


def _assigned(body: Graph) -> frozenset[Node]:
    """What computes the values that are stored into inputs."""
    return frozenset(_source(body.outputs[alias.output]).node for alias in body.aliases)


def _source(value: Value) -> Value:
    """What an Assign stores: it is pure inside a graph, and the aliases say that it stores."""
    while value.op is ASSIGN:
        value = value.node.args[1]
    return value


def untold_symbols(body: Graph) -> tuple[str, ...]:
    """The symbols that the body needs and that the shapes of its inputs do not tell whatever their sizes are, sorted.

    ``M + N`` tells N once M is known; ``M * N`` does not, because M may be 0.
    """
    types = (type_ for node in body.nodes for type_ in node.types)
    attributes = (value for node in body.operators for value in node.attrs.values())
    needed = {name for type_ in types for name in type_.symbols} | set(symbols_in(attributes))
    extents = [dim for value in body.inputs for dim in value.type.shape if isinstance(dim, Sym)]
    told: set[str] = set()
    before = -1
    while before < len(told):
        before = len(told)
        told.update(name for dim in extents for name in (_told_by(dim, told),) if name is not None)
    return tuple(sorted(needed - told))


def _told_by(dim: Sym, told: Collection[str]) -> str | None:
    """The symbol that an extent tells when the others are known."""
    unknown = [name for name in dim.symbols if name not in told]
    if len(unknown) != 1 or any(unknown[0] in names and len(names) > 1 for names, _ in dim.terms):
        return None
    return unknown[0]


def _stitched(body: Graph) -> tuple[Value, ...]:
    """The reductions that later phases of the kernel read: on a gpu they pass through shared memory."""
    return tuple(node.out for node in body.operators if node.op.kind is Kind.REDUCE and body.users[node])


def _parallel(marks: Attrs, outputs: Mapping[int, str]) -> ParallelFusion | None:
    """Which results each member of a parallel kernel makes, and in how many blocks, from the marks of parallel_fusion."""
    if marks.get("composite_type") != "parallel_fusion":
        return None
    members: dict[int, list[str]] = {}
    blocks: dict[int, int] = {}
    for position, (member, count) in enumerate(_pairs(marks, "parallel_dim_info")):
        if position in outputs:
            members.setdefault(member, []).append(outputs[position])
            blocks[member] = count
    numbers = sorted(members)
    groups = tuple(tuple(members[number]) for number in numbers)
    return ParallelFusion(marks.str("parallel_fusion_type"), groups, tuple(blocks[number] for number in numbers))


def _pairs(marks: Attrs, name: str) -> Iterator[tuple[int, int]]:
    """An attribute that is a tuple of pairs of integers."""
    found = marks[name]
    for entry in found if isinstance(found, tuple) else ():
        first, second = Attrs.of(pair=entry).ints("pair")
        yield first, second


def _as_akg(node: Node) -> Attrs:
    """Attributes as AKG reads them. An end of -1 before a step back is "before the first" here and "the last" there."""
    if node.op is not STRIDED_SLICE:
        return node.attrs.without(OWN_KERNEL)
    ends = zip(node.attrs.ints("end"), node.attrs.ints("strides"), node.args[0].type.shape, strict=False)
    before_first = tuple(
        -extent - 1 if end == -1 and step < 0 and isinstance(extent, int) else end for end, step, extent in ends
    )
    return node.attrs.with_(end=before_first)


def _parameter(name: str, type_: TensorType) -> Value:
    return Node(PARAMETER, (), Attrs(), (type_,), name).out


@dataclass
class _Named:
    """The operators of a body under the names that AKG gives them, and what stands for each value; ``atomic`` sums add."""

    atomic: frozenset[Node]
    steps: list[Node] = field(default_factory=list[Node])
    constants: int = 0
    _values: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def inputs(self, body: Graph) -> tuple[Value, ...]:
        """The inputs under their names, and behind them what tells the symbols that their shapes do not."""
        inputs = [_parameter(f"input_{position}", value.type) for position, value in enumerate(body.inputs)]
        self._values.update(zip(body.inputs, inputs, strict=True))
        untold = untold_symbols(body)
        more = [_parameter(EXTENTS, TensorType((*map(sym, untold), 0), dtype("uint8")))] if untold else []
        return (*inputs, *more)

    def operator(self, node: Node) -> None:
        """One operator of the body, as it is."""
        if node.body is not None:
            raise GraphKernelError(f"kernel {node.name!r} inside a kernel; inline it first")
        if node.op is ASSIGN:
            self._values[node.out] = self.read(node.args[1])
            return
        attrs = _as_akg(node)
        if node.op is REDUCE_SUM and node in self.atomic:
            attrs = attrs.with_(enable_atomic_add=True)  # as AKG's writer marks what adds into an operand
        op = node.op if node.op.brings_rule else operator_named(node.op.name)
        made = self.emit(op, tuple(map(self.read, node.args)), attrs, node.types)
        self._values.update(zip(node.outs, made.outs, strict=True))

    def emit(
        self, op: Operator, args: tuple[Value, ...], attrs: Attrs, types: tuple[TensorType, ...] | None = None
    ) -> Node:
        """Appends an operator, of the last operand's type if no other is given; it is named after its position."""
        made = Node(op, args, attrs, types or (args[-1].type,), f"output_0_{len(self.steps)}")
        self.steps.append(made)
        return made

    def read(self, value: Value) -> Value:
        """What stands for an operand; constants are numbered."""
        if value in self._values:
            return self._values[value]
        if not value.is_known or value.type.size != 1:
            raise GraphKernelError(
                f"{value.node.name} of type {value.type} cannot be inside a kernel; make it an operand"
            )
        self._values[value] = replace(value.node, name=f"constant_{self.constants}").out
        self.constants += 1
        return self._values[value]

    def results(self, body: Graph, inputs: tuple[Value, ...]) -> dict[int, Value]:
        """What stands for each output that is stored into none of the ``inputs`` of the ``body``, by its position."""
        found: dict[int, Value] = {}
        for position in sorted({*range(len(body.outputs))} - {alias.output for alias in body.aliases}):
            found[position] = self._own(body.outputs[position], {*inputs, *found.values()})
        return found

    def graph(self, body: Graph, inputs: tuple[Value, ...], results: Collection[Value]) -> Graph:
        """The ``body`` of named ``inputs`` and ``results``, and of what is stored into inputs after all else."""
        names = [self.result(value) for value in results] + [inputs[alias.input].node.name for alias in body.aliases]
        stores = [(inputs[alias.input], self.read(body.outputs[alias.output])) for alias in body.aliases]
        stored = [self.emit(ASSIGN, store, Attrs()).out for store in stores]
        aliases = tuple(Alias(len(results) + place, alias.input) for place, alias in enumerate(body.aliases))
        return Graph(body.name, inputs, (*results, *stored), aliases, tuple(names))

    def _own(self, value: Value, taken: set[Value]) -> Value:
        """What stands for a result, a copy when the value is no result of its own."""
        found = self.read(value)
        if not found.is_known and found not in taken:
            return found
        return self.emit(RESHAPE, (found,), Attrs.of(shape=value.type.shape)).out

    def result(self, value: Value) -> str:
        """What AKG calls a result."""
        return f"output_{value.index}{value.node.name.removeprefix('output_0')}"


def from_desc(desc: KernelDesc) -> Graph:
    """The graph of a kernel in which every operator is as it is declared, and gives what its type rule says.

    Raises :class:`FrontendError` for an operator that graphkernel does not declare.
    """
    reader = _Reader()
    inputs = tuple(map(reader.parameter, desc.graph.inputs))
    for position, node in enumerate(desc.operators):
        reader.operator(position, node)
    outputs = tuple(map(reader.read, desc.graph.outputs))
    return Graph(desc.name, inputs, outputs, desc.graph.aliases, desc.graph.output_names)


@dataclass
class _Reader:
    """What stands for each value of a kernel."""

    builder: Builder = field(default_factory=Builder)
    values: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def parameter(self, value: Value) -> Value:
        """An input of the graph."""
        self.values[value] = self.builder.parameter(value.node.name, _plain(value))
        return self.values[value]

    def operator(self, position: int, node: Node) -> None:
        """One operator of the kernel."""
        args = tuple(map(self.read, node.args))
        if node.op is ASSIGN:
            target, source = args
            if source.type != target.type:
                source = self.builder.emit(BROADCAST_TO, source, shape=target.type.shape)
            self.values[node.out] = self.builder.emit(ASSIGN, target, source)
            return
        declared = node.op if is_declared(node.op) else OPS.get(node.op.name)
        if declared is None:
            raise FrontendError(f"operator {position}: {node.op.name!r} is not declared{nearest(node.op.name, OPS)}")
        kept = {key: value for key, value in _attributes(declared, node).items() if key in declared.attribute_names}
        made = self.builder.node(declared, args, Attrs.of(kept), node.name)
        for old, new in zip(node.outs, made.outs, strict=True):
            self.values[old] = self.fitted(new, _plain(old))

    def fitted(self, value: Value, wanted: TensorType) -> Value:
        """A result as AKG declares it: a Round may give integers there, and a scalar has the shape ``[1]``."""
        if value.type.dtype != wanted.dtype:
            value = self.builder.emit(CAST, value, dst_type=wanted.dtype.name)
        return value if value.type == wanted else self.builder.emit(RESHAPE, value, shape=wanted.shape)

    def read(self, value: Value) -> Value:
        """What stands for an operand."""
        return self.builder.constant(value.constant) if value.is_known else self.values[value]


def _plain(value: Value) -> TensorType:
    """Formats are left out: shapes are explicit, and the operators that convert formats are not declared here."""
    return TensorType(value.shape, value.dtype)


def _attributes(declared: Operator, node: Node) -> Mapping[str, object]:
    """The attributes, with those that follow from the result taken from it: AKG's files may lack or garble them."""
    if declared in (RESHAPE, BROADCAST_TO):
        return {**node.attrs, "shape": node.out.shape}
    if declared is CAST:
        return {"dst_type": node.out.dtype.name}
    return node.attrs


def load_composite(path: str | PathLike[str], operators: Iterable[Operator] = ()) -> Graph:
    """The graph of a composite JSON file, which may hold ``operators`` beside AKG's.

    Raises ``FrontendError``, which names the JSON path of what is wrong.
    """
    try:
        desc = load_desc(Path(path), operators)
    except DescError as error:
        raise FrontendError(f"{path}: {error}") from error
    try:
        return from_desc(desc)
    except (FrontendError, *UNFIT) as error:
        raise FrontendError(f"{path}: {error}") from error
