"""onnxruntime as host library: whole regions of operators become one ONNX model and one session each."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from graphkernel.cluster.liveness import is_view
from graphkernel.onnx_writing.table import write
from graphkernel.onnx_writing.writer import DEFAULT_OPSET, Unwritable, Writer, result_names
from graphkernel.ops.library.host import ONNX, domains_of
from graphkernel.ops.library.host_bodies import read_by
from graphkernel.ops.library.host_values import cast_at_border, type_proto
from graphkernel.runtime.onnxruntime.biases import with_biases
from graphkernel.runtime.onnxruntime.clips import clipped
from graphkernel.runtime.onnxruntime.epilogues import follows_convolution
from graphkernel.runtime.onnxruntime.initializers import initializer, lies_beside
from graphkernel.runtime.onnxruntime.region_step import RegionStep, operands_of, region_step
from graphkernel.runtime.onnxruntime.sessions import (
    OBJECTS,
    RegionModel,
    Session,
    open_session,
    opened,
    threads_for,
)
from graphkernel.runtime.onnxruntime.unsigned import suits_machine, unsigned
from graphkernel.runtime.steps.host import numpy_step
from graphkernel.runtime.steps.steps import Step
from kernelgen.tensor.elements import CARRIER, ELEMENTS, element_number, is_carried
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.types import TensorType, dtype, is_whole

UNASKED = frozenset({"float32", "float64", "int32", "int64", "bool"})
"""Data types that onnxruntime is not asked about beforehand: it computes nearly all in them, and may decline a region."""


def available() -> bool:
    """Whether onnx and onnxruntime are installed."""
    return all(importlib.util.find_spec(name) is not None for name in ("onnx", "onnxruntime"))


@dataclass(frozen=True)
class OnnxRuntimeHost:
    """Regions on onnxruntime.

    ``threads`` None leaves the number to it; ``optimize=False`` keeps every node as it is; ``opset`` is what our own
    operators are written in. Where it ``runs_all`` of a graph, one session has also what takes Python's objects.
    """

    threads: int | None = None
    optimize: bool = True
    opset: int = DEFAULT_OPSET
    runs_all: bool = False
    name: str = "onnxruntime"
    regions: bool = True

    def group(self, node: Node) -> str | None:
        """The opset: nodes of one opset may stand in one model. None when the node has no ONNX form.

        What takes Python's objects is no reason for others to do without the pool, nor what lies between to be handed on
        by Python; where nothing is between, one session is faster than several.
        """
        objects = not self.runs_all and _takes_objects(node)
        return None if self.why_not(node) else _group(self._opset_of(node), objects)

    def why_not(self, node: Node) -> str:
        """Why the node cannot be written as ONNX, or onnxruntime has it not for these types; empty when it can."""
        try:
            write(Writer(self._opset_of(node)), node, tuple(f"x{index}" for index in range(len(node.args))), "y")
        except Unwritable as reason:
            return str(reason)
        types = {value.type.dtype.name for value in (*node.args, *node.outs)}
        if types <= UNASKED or node.op is ONNX or is_view(node):
            return ""
        model, _ = _model("question", self._opset_of(node), [node], tuple(dict.fromkeys(node.args)), node.outs)
        return _refused(model.content) and f"onnxruntime has no {node.op.name} for {', '.join(sorted(types))}"

    def absorbs(self, graph: Graph, kernel: Node) -> bool:
        """Whether the kernel is the end of a convolution, which is computed within it."""
        return self.optimize and follows_convolution(graph, kernel)

    def region(
        self, name: str, nodes: Sequence[Node], slots: Mapping[Value, int], outputs: Sequence[Value]
    ) -> RegionStep:
        """One session for the nodes. Constants are in its model. Raises ``RuntimeFailure`` when onnxruntime declines."""
        inputs = operands_of(nodes)
        opset = self._opset_of(nodes[0])
        model, names = _model(name, opset, nodes, inputs, tuple(outputs))
        session = self.session(name, model, _group(opset, all(map(_takes_objects, nodes))))
        return region_step(name, session, nodes, names, inputs, outputs, slots)

    def session(self, name: str, model: RegionModel, group: str = "") -> Session:
        """A session, called ``name``, for a ``model`` whose operators are of a ``group``.

        Raises ``RuntimeFailure`` when onnxruntime declines.
        """
        threads = threads_for(group, self.threads)
        return Session(model, partial(opened, name, threads=threads, is_optimized=self.optimize))

    def single(self, node: Node, slots: Mapping[Value, int]) -> Step:
        """On numpy: what is in no region, onnxruntime did not take."""
        return numpy_step(node, slots)

    def _opset_of(self, node: Node) -> int:
        if node.op is not ONNX or node.attrs.str("domain", ""):
            return self.opset
        own = node.attrs.int("opset")
        return self.opset if _is_the_same(node.attrs.str("op_type"), own, self.opset) else own


def group_of(step: RegionStep) -> str:
    """The group of a region's operators."""
    from onnx import ModelProto

    imports = ModelProto.FromString(step.session.model.content).opset_import
    opset = next(entry.version for entry in imports if not entry.domain)
    return _group(opset, all(map(_takes_objects, step.nodes)))


def _group(opset: int, objects: bool) -> str:
    return f"opset {opset}{OBJECTS if objects else ''}"


def _takes_objects(node: Node) -> bool:
    """Whether it takes or gives what is no array of numbers that onnxruntime has."""
    return has_objects(value.type for value in (*node.args, *node.outs))


@cache
def _refused(content: bytes) -> str:
    """What onnxruntime says against a model; nothing when it takes it."""
    try:
        open_session(RegionModel(content, {}), 1, True)
    except Exception as error:  # onnxruntime raises many classes of its own
        return str(error)
    return ""


def has_objects(types: Iterable[TensorType]) -> bool:
    """Whether some are no arrays of numbers that onnxruntime has."""
    opaque = (of.dtype for of in types if of.dtype.is_opaque)
    return any(is_carried(of) or element_number(of) in (None, ELEMENTS["string"][0]) for of in opaque)


def _model(
    name: str, opset: int, nodes: Sequence[Node], inputs: tuple[Value, ...], outputs: tuple[Value, ...]
) -> tuple[RegionModel, dict[Value, str]]:
    """The ONNX model of a region and the name of every value in it."""
    from onnx import helper

    writer = Writer(opset)
    names = {value: f"x{index}" for index, value in enumerate(inputs)}
    border = _Border(writer, has_objects(value.type for value in (*inputs, *outputs)))
    given = {value: border.given(value, names) for value in inputs}
    for position, node in enumerate(nodes):
        _write_node(writer, node, position, names)
    left = {value: border.left(value, names) for value in outputs}
    kept = _fitted(writer, set(left.values()))
    used = {operand for node in kept for operand in read_by(node)}
    constants = {key: array for key, array in writer.constants.items() if key in used}
    graph = helper.make_graph(
        kept, name, [border.info(x, value.type) for value, x in given.items()],
        [border.info(x, value.type) for value, x in left.items()],
        [initializer(array, key) for key, array in constants.items()],
    )  # fmt: skip
    imports = [helper.make_opsetid(*each) for each in (("", opset), *sorted(_domains(nodes).items()))]
    model = helper.make_model(
        graph, opset_imports=imports, ir_version=min(10, helper.find_min_ir_version_for(imports[:1]))
    )
    beside = {key: array for key, array in constants.items() if lies_beside(array)}
    return RegionModel(model.SerializeToString(), beside, border.has_objects), {**given, **left}


def _write_node(writer: Writer, node: Node, position: int, names: dict[Value, str]) -> None:
    """Writes a node under the names of its operands, and adds those of its results."""
    for value in node.args:
        if value not in names and value.constant is not None:
            names[value] = writer.constant(value.constant)
    results = result_names(f"v{position}", len(node.types))
    names.update(zip(node.outs, results, strict=True))
    before = len(writer.nodes)
    write(writer, node, tuple(names[value] for value in node.args), results[0])
    for part, made in enumerate(writer.nodes[before:]):
        made.name = f"{position}.{part}"  # what onnxruntime's errors say


def _fitted(writer: Writer, wanted: set[str]) -> list[Any]:  # onnx messages
    """The nodes that the wanted results need, in the forms that onnxruntime is fastest with."""
    kept = clipped(_needed(writer.nodes, wanted), writer.constants, wanted)
    kept = with_biases(kept, writer.constants, wanted)
    return unsigned(kept, writer.constants, wanted) if suits_machine() else kept


@cache
def _is_the_same(operator: str, own: int, other: int) -> bool:
    """Whether an operator of ONNX is the same in two opsets; of those in its bodies nothing is known here."""
    from onnx import defs

    try:
        schema, known = (defs.get_schema(operator, version, "") for version in (own, other))
    except defs.SchemaError:
        return own == other
    has_bodies = any(each.type == defs.OpSchema.AttrType.GRAPH for each in schema.attributes.values())
    return own == other or (schema.since_version == known.since_version and not has_bodies)


def _domains(nodes: Iterable[Node]) -> dict[str, int]:
    """The opset of each domain but ONNX's own."""
    found: dict[str, int] = {}
    for node in nodes:
        for domain, version in domains_of(node.attrs).items() if node.op is ONNX else ():
            found[domain] = max(found.get(domain, 0), version)
    return found


@dataclass(frozen=True)
class _Border:
    """What a session is given and gives: where it ``has_objects``, numbers that numpy does not know are carried."""

    writer: Writer
    has_objects: bool

    def given(self, value: Value, names: dict[Value, str]) -> str:
        """The name under which an operand is given; in ``names`` that of the operand itself."""
        name = names[value]
        if self._is_carried(value.type):
            names[value] = f"{name}.own"
            self.writer.nodes.append(cast_at_border(name, names[value], value.type.dtype, inwards=True))
        return name

    def left(self, value: Value, names: Mapping[Value, str]) -> str:
        """The name under which a result is left."""
        name = names[value]
        if not self._is_carried(value.type):
            return name
        self.writer.nodes.append(cast_at_border(name, f"{name}.out", value.type.dtype, inwards=False))
        return f"{name}.out"

    def info(self, name: str, type_: TensorType) -> Any:  # an onnx message
        """What the model says of an operand or result."""
        from onnx import helper

        whole, carried = is_whole(type_.dtype), self._is_carried(type_)
        of = dtype("tensor(float)" if whole else CARRIER) if carried else type_.dtype
        known = TensorType(() if whole else type_.shape, of)
        return helper.make_value_info(name, type_proto(known, [d if isinstance(d, int) else None for d in type_.shape]))

    def _is_carried(self, type_: TensorType) -> bool:
        return self.has_objects and is_carried(type_.dtype)


def _needed(nodes: Iterable[Any], wanted: set[str]) -> list[Any]:
    kept: list[Any] = []
    for node in reversed(list(nodes)):
        if wanted.intersection(node.output):
            wanted = wanted.union(read_by(node))
            kept.append(node)
    return kept[::-1]
