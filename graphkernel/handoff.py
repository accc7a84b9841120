"""The only door to kernelgen: a kernel body becomes a KernelDesc, and a KernelDesc becomes a graph.

Operator names and attributes are the same on both sides (MindSpore's primitives are AKG's composite vocabulary), so the
handoff is a renaming of values: operands ``input_0, input_1, ...``, results ``output_<result>_<operator>``, and constants
of one element become inline values.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphkernel.errors import FrontendError, GraphKernelError, nearest
from graphkernel.ops import OPS
from graphkernel.passes.named_kernels import basic
from kernelgen.composite.description import KernelDesc, OpDesc, ParallelFusion, TensorDesc
from kernelgen.composite.read import load_desc
from kernelgen.composite.write import dump_desc
from kernelgen.errors import ArgumentError, DescError, UnsupportedError
from kernelgen.plan import Plan
from kernelgen.system.bounded_io import UNFIT, json_value
from kernelgen.system.escape import line
from kernelgen.tensor.graph import PARAMETER, Alias, Builder, Graph, Node, Value, keep
from kernelgen.tensor.operator import Kind, Operator
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.effects import ASSIGN
from kernelgen.tensor.operators.elemwise import ADD, TENSOR_MOVE
from kernelgen.tensor.operators.pieces import STRIDED_SLICE
from kernelgen.tensor.operators.reduce import REDUCE_PROD, REDUCE_SUM
from kernelgen.tensor.operators.shape import BROADCAST_TO, RESHAPE
from kernelgen.tensor.operators.type_rules import OWN_KERNEL
from kernelgen.tensor.types import Attrs, AttrValue, Sym, TensorType, dtype, sym

if TYPE_CHECKING:
    from kernelgen.tuning.database import Tunings

LOGGER = logging.getLogger(__name__)

Compiler = Callable[..., object]
"""``compiler(desc, target=...)``, and ``plan=`` where there is one."""

PROCESS: Mapping[str, str] = {"cpu": "cpu", "gpu": "cuda", "ascend": "aicore"}
FROM_AKG: Mapping[str, str] = {"TensorAdd": ADD.name, "ReducePrd": REDUCE_PROD.name, "EquivFormat": TENSOR_MOVE.name}


EXTENTS = "extents"


def to_desc(kernel: Node | Graph, target: str = "cpu") -> KernelDesc:
    """The description of a fused node or of a body; inputs and outputs in the body's order.

    Where the shapes of the operands do not tell the symbols that the body needs, a last input called ``extents`` does: it
    has no elements, and a dim for each of :func:`untold_symbols` before one of 0.

    An output that is aliased to an input is no output of the kernel: it is stored into that input. An output that is a
    parameter, a constant or another output again is copied. An operator that Ascend has by name is described by its
    parts. Raises ``GraphKernelError`` for what a kernel cannot hold: a nested kernel, or a constant of several elements.
    """
    body = kernel.body if isinstance(kernel, Node) else kernel
    if body is None:
        raise GraphKernelError(f"{kernel!r} is not a kernel; only fused nodes and graphs have a description")
    body = basic(body)
    writer = _Writer()
    inputs = tuple(writer.name(value, f"input_{position}") for position, value in enumerate(body.inputs))
    untold = untold_symbols(body)
    if untold:
        inputs = (*inputs, TensorDesc(EXTENTS, (*map(sym, untold), 0), dtype("uint8")))
    for node in body.operators:
        writer.operator(node)
    stored = {alias.output for alias in body.aliases}
    positions = [position for position in range(len(body.outputs)) if position not in stored]
    outputs: list[TensorDesc] = []
    for position in positions:
        taken = {tensor.name for tensor in (*inputs, *outputs)}
        outputs.append(writer.output(body.outputs[position], taken))
    for alias in body.aliases:
        value = body.outputs[alias.output]
        writer.emit(ASSIGN.name, (inputs[alias.input], writer.read(value)), (value.type,))
    marks = kernel.attrs if isinstance(kernel, Node) else Attrs()
    ops = _with_atomic_sums(writer.ops) if marks.get("composite_type") == "atomic_add" else tuple(writer.ops)
    stitched = _stitched(body) if target == "gpu" else ()
    return KernelDesc(
        body.name,
        inputs,
        tuple(outputs),
        ops,
        PROCESS[target],
        buffer_stitch=tuple((writer.read(value).name,) for value in stitched),
        parallel_fusion=_parallel(marks, dict(zip(positions, outputs, strict=True))),
    )


def description(node: Node, target: str = "cpu") -> dict[str, Any]:
    """The composite JSON of a fused node's kernel. Raises what :func:`to_desc` raises."""
    return dump_desc(to_desc(node, target))


PLAN = "plan"
"""The attribute of a fused node that holds its kernel's plan, as JSON."""


def with_plans(graph: Graph, tunings: Tunings, target: str) -> Graph:
    """The graph whose fused nodes carry the plans that tuning found for their kernels on this machine."""

    def marked(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        plan = tunings.plan(description(node, target), target) if node.body is not None else ""
        attrs = node.attrs.with_(**{PLAN: plan}) if plan else node.attrs
        made = keep(node, args)
        return (made if attrs is node.attrs else _with_attrs(made, attrs)).outs

    return graph.rebuild(marked)


def planned(compiler: Compiler, node: Node) -> Compiler:
    """A compiler that follows the plan that a fused node carries; one that no longer fits is told of and not followed."""
    text = node.attrs.get(PLAN)
    if not isinstance(text, str):
        return compiler

    def compile(desc: KernelDesc, target: str) -> object:
        try:
            return compiler(desc, target=target, plan=Plan.from_json(json_value(text, ArgumentError)))
        except (ArgumentError, UnsupportedError) as error:
            LOGGER.warning("%s: compiled without the plan that tuning found: %s", line(desc.name), line(str(error)))
            return compiler(desc, target=target)

    return compile


def tunings_of(given: Tunings | str | PathLike[str] | None) -> Tunings | None:
    """The findings in a file of ``graphkernel tune``, or those that were read before. Raises ArgumentError."""
    if given is None:
        return None
    from kernelgen.tuning.database import Tunings  # only who has tuned needs it

    return Tunings.of(given)


def _with_attrs(node: Node, attrs: Attrs) -> Node:
    return Node(node.op, node.args, attrs, node.types, node.name, node.body, node.data)


def untold_symbols(body: Graph) -> tuple[str, ...]:
    """The symbols that the body needs and that the shapes of its inputs do not tell whatever their sizes are, sorted.

    ``M + N`` tells N once M is known; ``M * N`` does not, because M may be 0.
    """
    types = (type_ for node in body.nodes for type_ in node.types)
    attributes = (value for node in body.operators for value in node.attrs.values())
    needed = {name for type_ in types for name in type_.symbols} | set(_symbols_in(attributes))
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


def _symbols_in(values: Iterable[AttrValue]) -> Iterator[str]:
    for value in values:
        if isinstance(value, Sym):
            yield from value.symbols
        elif isinstance(value, tuple):
            yield from _symbols_in(value)


def _stitched(body: Graph) -> tuple[Value, ...]:
    """The reductions that later phases of the kernel read: on a gpu they pass through shared memory."""
    return tuple(node.out for node in body.operators if node.op.kind is Kind.REDUCE and body.users[node])


def _parallel(marks: Attrs, outputs: Mapping[int, TensorDesc]) -> ParallelFusion | None:
    """Which results each member of a parallel kernel makes, and in how many blocks, from the marks of parallel_fusion."""
    if marks.get("composite_type") != "parallel_fusion":
        return None
    members: dict[int, list[str]] = {}
    blocks: dict[int, int] = {}
    for position, (member, count) in enumerate(_pairs(marks, "parallel_dim_info")):
        if position in outputs:
            members.setdefault(member, []).append(outputs[position].name)
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


def _with_atomic_sums(ops: Sequence[OpDesc]) -> tuple[OpDesc, ...]:
    """The reductions whose result is assigned to an operand add into it atomically, as AKG's ``enable_atomic_add`` says."""
    assigned = {op.inputs[1].name for op in ops if op.name == ASSIGN.name}
    return tuple(
        replace(op, attrs=op.attrs.with_(enable_atomic_add=True))
        if op.name == REDUCE_SUM.name and op.output.name in assigned
        else op
        for op in ops
    )


def _as_akg(node: Node) -> Attrs:
    """Attributes as AKG reads them. An end of -1 before a step back is "before the first" here and "the last" there."""
    if node.op is not STRIDED_SLICE:
        return node.attrs.without(OWN_KERNEL)
    ends = zip(node.attrs.ints("end"), node.attrs.ints("strides"), node.args[0].type.shape, strict=False)
    before_first = tuple(
        -extent - 1 if end == -1 and step < 0 and isinstance(extent, int) else end for end, step, extent in ends
    )
    return node.attrs.with_(end=before_first)


@dataclass
class _Writer:
    """Operators written so far, and the tensor that stands for each value."""

    ops: list[OpDesc] = field(default_factory=list)
    constants: int = 0
    _tensors: dict[Value, TensorDesc] = field(default_factory=dict)

    def name(self, value: Value, name: str) -> TensorDesc:
        """Gives a value its tensor."""
        self._tensors[value] = _tensor(name, value.type)
        return self._tensors[value]

    def operator(self, node: Node) -> None:
        """One operator of the body, as it is."""
        if node.body is not None:
            raise GraphKernelError(f"kernel {node.name!r} inside a kernel; inline it first")
        if node.op is ASSIGN:  # pure inside a graph; that it is stored is said by the aliases
            self._tensors[node.out] = self.read(node.args[1])
            return
        outputs = self.emit(node.op.name, tuple(map(self.read, node.args)), node.types, _as_akg(node))
        if node.op.brings_rule:
            self.ops[-1] = replace(self.ops[-1], declared=node.op)
        self._tensors.update(zip(node.outs, outputs, strict=True))

    def emit(
        self, name: str, inputs: tuple[TensorDesc, ...], types: tuple[TensorType, ...], attrs: Attrs | None = None
    ) -> tuple[TensorDesc, ...]:
        """Appends an operator; its results are named after its position."""
        outputs = tuple(_tensor(f"output_{index}_{len(self.ops)}", type_) for index, type_ in enumerate(types))
        self.ops.append(OpDesc(name, inputs, outputs, attrs or Attrs()))
        return outputs

    def read(self, value: Value) -> TensorDesc:
        """The tensor of an operand; a constant carries its value."""
        if value in self._tensors:
            return self._tensors[value]
        if value.constant is None or value.constant.size != 1:
            raise GraphKernelError(
                f"{value.node.name} of type {value.type} cannot be inside a kernel; make it an operand"
            )
        tensor = self.name(value, f"constant_{self.constants}")
        self.constants += 1
        self._tensors[value] = replace(tensor, value=value.constant.reshape(()).item())
        return self._tensors[value]

    def output(self, value: Value, taken: set[str]) -> TensorDesc:
        """The tensor of a result, a copy when the value is no result of its own."""
        tensor = self.read(value)
        if tensor.value is None and tensor.name not in taken:
            return tensor
        return self.emit(RESHAPE.name, (tensor,), (value.type,), Attrs.of(shape=value.type.shape))[0]


def _tensor(name: str, type_: TensorType) -> TensorDesc:
    return TensorDesc(name, type_.shape, type_.dtype, type_.layout)


def from_desc(desc: KernelDesc) -> Graph:
    """The graph that a description means; in-place operators become aliases.

    Raises :class:`FrontendError` for an operator that graphkernel does not declare.
    """
    reader = _Reader()
    inputs = tuple(reader.parameter(tensor) for tensor in desc.inputs)
    for position, op in enumerate(desc.ops):
        reader.operator(position, op)
    outputs = [reader.values[tensor.name] for tensor in desc.outputs]
    called = [tensor.name for tensor in desc.outputs]
    aliases: list[Alias] = []
    for position, tensor in enumerate(desc.inputs):
        if tensor.name in reader.stored:
            aliases.append(Alias(len(outputs), position))
            outputs.append(reader.stored[tensor.name])
            called.append(tensor.name)
    return Graph(desc.name, inputs, tuple(outputs), tuple(aliases), tuple(called))


@dataclass
class _Reader:
    """The value that each tensor name stands for now, and what in-place operators stored into inputs."""

    builder: Builder = field(default_factory=Builder)
    values: dict[str, Value] = field(default_factory=dict)
    stored: dict[str, Value] = field(default_factory=dict)

    def parameter(self, tensor: TensorDesc) -> Value:
        """An input of the graph."""
        self.values[tensor.name] = self.builder.parameter(tensor.name, _type(tensor))
        return self.values[tensor.name]

    def operator(self, position: int, op: OpDesc) -> None:
        """One operator of the description."""
        args = tuple(map(self.read, op.inputs))
        if op.name in (ASSIGN.name, "InplaceAssign"):
            self.assign(op, args)
            return
        name = FROM_AKG.get(op.name, op.name)
        declared = op.declared or OPS.get(name)
        if declared is None:
            raise FrontendError(f"operator {position}: {op.name!r} is not declared{nearest(name, OPS)}")
        kept = {key: value for key, value in _attributes(declared, op).items() if key in declared.attribute_names}
        node = self.builder.node(declared, args, Attrs.of(kept), op.outputs[0].name)
        for tensor, value in zip(op.outputs, node.outs, strict=True):
            self.values[tensor.name] = self.fitted(value, _type(tensor))

    def fitted(self, value: Value, wanted: TensorType) -> Value:
        """A result as AKG declares it: a Round may give integers there, and a scalar has the shape ``[1]``."""
        if value.type.dtype != wanted.dtype:
            value = self.builder.emit(CAST, value, dst_type=wanted.dtype.name)
        return value if value.type == wanted else self.builder.emit(RESHAPE, value, shape=wanted.shape)

    def assign(self, op: OpDesc, args: tuple[Value, ...]) -> None:
        """``Assign(target, source)`` gives the source, ``InplaceAssign(target, source, result)`` its third operand."""
        target, source, *result = args
        if source.type != target.type:
            source = self.builder.emit(BROADCAST_TO, source, shape=target.type.shape)
        assigned = self.builder.emit(ASSIGN, target, source) if target.op is PARAMETER else source
        self.stored[op.inputs[0].name] = assigned
        self.values[op.inputs[0].name] = assigned
        for tensor in op.outputs:
            self.values[tensor.name] = result[0] if result else assigned

    def read(self, tensor: TensorDesc) -> Value:
        """The value of an operand; an inline value becomes a constant."""
        if tensor.value is None:
            return self.values[tensor.name]
        if any(dim != 1 for dim in tensor.shape):
            raise FrontendError(f"{tensor.name!r} has the value {tensor.value} and the shape {tensor.shape}")
        return self.builder.constant(np.full((1,) * len(tensor.shape), tensor.value), tensor.dtype)


def _type(tensor: TensorDesc) -> TensorType:
    """Formats are left out: shapes are explicit, and the operators that convert formats are not declared here."""
    return TensorType(tensor.shape, tensor.dtype)


def _attributes(declared: Operator, op: OpDesc) -> Mapping[str, object]:
    """The attributes, with those that follow from the result taken from it: AKG's files may lack or garble them."""
    if declared in (RESHAPE, BROADCAST_TO):
        return {**op.attrs, "shape": op.output.shape}
    if declared is CAST:
        return {"dst_type": op.output.dtype.name}
    return op.attrs


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
