"""ONNX models as graphs. Each node goes through its rule in ``onnx_ops``; what is known at import is computed at import.

Inputs, outputs and nodes keep their names, and so do extents: ``dim_param`` becomes a symbol. A node without a rule
becomes the generic ``Onnx`` operator, which runs on onnxruntime. Errors name the node.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphkernel import ops
from graphkernel.errors import FrontendError, TypeRuleError
from graphkernel.frontends.onnx.bodies import branch, closed, has_bodies
from graphkernel.frontends.onnx.builder import ModelBuilder
from graphkernel.frontends.onnx.check import array_of, checked_nodes, named
from graphkernel.frontends.onnx.functions import (
    WIDE,
    NotWholeError,
    is_narrow,
    narrow_results,
    operand_name,
    result_name,
    written_out,
)
from graphkernel.frontends.onnx.generic import constant_attributes, generic_attributes, inferred_types
from graphkernel.frontends.onnx.nodes import Placed, live_nodes, opsets_of
from graphkernel.frontends.onnx.rule_table import Further, no_rule, rule_of
from graphkernel.frontends.onnx.rules.base import Declined, OnHost, OnnxCall, OnnxRule, Operand, Results
from graphkernel.frontends.onnx.rules.extents import MOST_ELEMENTS, Extents, extents_of_array, known_extents
from graphkernel.frontends.onnx.rules.result_shapes import certain_shapes, known_shapes
from graphkernel.frontends.onnx.symbols import Symbols, check_given
from graphkernel.frontends.onnx.types.derived_extents import DependsOnDataError
from graphkernel.frontends.onnx.types.types import data_type, disagreement, tensor_type
from graphkernel.frontends.onnx.weights import read_model
from graphkernel.ops.library.host import ONNX
from graphkernel.ops.tensor.tensor import Tensor
from kernelgen.system.bounded_io import UNFIT
from kernelgen.tensor.evaluation.computed import Allowance
from kernelgen.tensor.graph import Graph, Value
from kernelgen.tensor.types import Sym, TensorType, dtype

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto


def load_onnx(path: str | os.PathLike[str], dims: Mapping[str, int] | None = None, further: Further = no_rule) -> Graph:
    """The graph of an ONNX file; its external data is read from the file's folder. Raises ``FrontendError``.

    ``dims`` gives extents of inputs that the model names a number, ``further`` the rules of operators that are none of ONNX's.
    """
    model, weights = read_model(path)
    with named(str(path)):
        name = identifier(model.graph.name or Path(path).stem)
    try:
        return _imported(model, weights, name, dims, further, f"{path}: ")
    except FrontendError as error:
        raise FrontendError(f"{path}: {error}") from error


def import_onnx(
    model: ModelProto, name: str | None = None, dims: Mapping[str, int] | None = None, further: Further = no_rule
) -> Graph:
    """The graph of a model in memory, called ``name``; ``dims`` and ``further`` as in :func:`load_onnx`.

    Raises ``FrontendError``, which names the node.
    """
    return _imported(model, {}, name, dims, further)


def _imported(
    model: ModelProto,
    weights: Mapping[str, np.ndarray],
    name: str | None,
    dims: Mapping[str, int] | None,
    further: Further,
    file: str = "",
) -> Graph:
    """The graph of a model that comes without some of its initializers, the ``weights``; ``file`` stands before warnings."""
    nodes = live_nodes(checked_nodes(model), (info.name for info in model.graph.output))
    constants: dict[str, np.ndarray] = {}
    for tensor in model.graph.initializer:
        data_type(tensor.data_type, f"initializer {tensor.name}")
        found = weights.get(tensor.name)
        constants[tensor.name] = array_of(tensor, f"initializer {tensor.name}") if found is None else found
    source = _Source(model, nodes, constants, dims or {}, name or identifier(model.graph.name or "main"), further)
    uncut = frozenset[str]()
    while True:
        graph, needed, doubts = source.imported(uncut)
        if not needed:
            _warn(file, doubts)
            return graph
        uncut |= needed


def _warn(file: str, doubts: Sequence[str]) -> None:
    """Tells what the model declares otherwise; onnxruntime runs such models as well."""
    if doubts:
        import logging

        logging.getLogger(__name__).warning("%s%s", file, "; ".join(doubts))


@dataclass(frozen=True, eq=False)
class _Source:
    """What is imported: a model with its nodes in order and its weights as arrays, and what the user says of it."""

    model: ModelProto
    nodes: Sequence[Placed]
    constants: Mapping[str, np.ndarray]
    dims: Mapping[str, int]
    name: str
    further: Further

    def imported(self, uncut: frozenset[str]) -> tuple[Graph, frozenset[str], Sequence[str]]:
        """The graph where these extents are as if nothing were cut, the extents for which that is needed, and doubts."""
        graph = self.model.graph
        declared = {info.name: info.type for info in (*graph.value_info, *graph.output)}
        infos = [info for info in graph.input if info.name not in self.constants]
        symbols = Symbols.of(infos, self.dims, uncut)
        builder = ModelBuilder((placed.node for placed in self.nodes), symbols.derive.told)
        allowance = Allowance.beside(array.nbytes for array in self.constants.values())
        importer = _Importer(opsets_of(self.model), allowance, symbols, declared, builder, further=self.further)
        importer.values.update((name, _known(array)) for name, array in self.constants.items())
        inputs = importer.parameters(infos)
        for placed in self.nodes:
            with named(f"node {placed.position}"):
                importer.node(placed.node, placed.place)
        results = tuple(info.name for info in graph.output)
        outputs, derived = tuple(map(importer.output, results)), (*symbols.numbers, *symbols.derive.entries.values())
        tokens = () if builder.token is None else (builder.token,)
        results = (*results, *("token" for _ in tokens))
        made = Graph(self.name, tuple(inputs), (*outputs, *tokens), (), results, builder.origins, derived)
        return made, frozenset(symbols.derive.needed), importer.doubts


def identifier(name: str) -> str:
    """A name for kernels and files: path separators become dots, other signs underscores."""
    return re.sub(r"[^\w.]", "_", name.strip("/").replace("/", ".")) or "_"


@dataclass(frozen=True, eq=False)
class _Imported:
    """A value: a Tensor, or an array when it is known; and its content as dims when it is a shape tensor."""

    operand: Operand
    extents: Extents | None = None


@dataclass
class _Importer:
    """The values so far, by ONNX name, what may still be computed, and the types that the model declares for some.

    With ``whole`` an operator that would be the host library's raises ``NotWholeError``.
    """

    opsets: dict[str, int]
    allowance: Allowance
    symbols: Symbols
    declared: dict[str, TypeProto]
    builder: ModelBuilder
    values: dict[str, _Imported] = field(default_factory=dict[str, _Imported])
    doubts: list[str] = field(default_factory=list[str])
    whole: bool = False
    further: Further = no_rule

    def parameters(self, infos: Sequence[ValueInfoProto]) -> list[Value]:
        """The inputs of the graph, with the extents that were given numbers."""
        types = [self._input_type(info) for info in infos]
        check_given(self.symbols.given, types)
        made: list[Value] = []
        for info, type_ in zip(infos, types, strict=True):
            made.append(self.builder.parameter(info.name, self.symbols.input_type(type_)))
            self.values[info.name] = _Imported(Tensor(made[-1], self.builder))
        return made

    def _input_type(self, info: ValueInfoProto) -> TensorType:
        with named(f"input {info.name}"):
            name = identifier(info.name).replace(".", "_")
            return tensor_type(
                info.type, f"input {info.name}", lambda dim, axis: self.symbols.named(dim, f"{name}_{axis}")
            )

    def node(self, node: NodeProto, where: str) -> None:
        """One node: its rule, or the generic operator."""
        if has_bodies(node):
            condition = self.values[node.input[0]].operand if node.op_type == "If" else None
            if isinstance(condition, np.ndarray) and condition.size == 1:
                self._inline(branch(node, bool(condition.item())), node.output, where)
                return
            node, weights = closed(node)
            self.values.update((name, _known(array_of(tensor, where))) for name, tensor in weights.items())
        self.builder.enter(node)
        with named(where):
            call = self._call(node, where)
            results = self._results(call, node, where)
            if node.op_type != "Constant":
                self.allowance.take(result.nbytes for result in results if isinstance(result, np.ndarray))
            extents = known_extents(call) if len(results) == 1 and not _has_opaque(call) else None
            for name, result in zip(node.output, results, strict=False):
                if name:
                    self._define(name, _with_extents(result, extents), where)

    def _inline(self, body: GraphProto, results: Sequence[str], where: str) -> None:
        """A body that runs in any case: its nodes, in the scope of the graph around it."""
        around, self.declared = (self.values, self.declared), {info.name: info.type for info in body.value_info}
        self.values = dict(self.values)
        for tensor in body.initializer:
            self.values[tensor.name] = _known(array_of(tensor, f"{where}, {tensor.name}"))
        wanted = [info.name for info, name in zip(body.output, results, strict=False) if name]
        for placed in live_nodes([Placed(node, position) for position, node in enumerate(body.node)], wanted):
            self.node(placed.node, f"{where}, {placed.place}")
        made = [self.values.get(info.name) for info in body.output]
        self.values, self.declared = around
        for name, value in zip(results, made, strict=False):
            if name and value is not None:
                self._define(name, value, where)

    def output(self, name: str) -> Value:
        """A graph output; one that is known at import becomes a constant."""
        return self._tensor(self.values[name].operand).value

    def _define(self, name: str, value: _Imported, where: str) -> None:
        declared = self.declared.get(name)
        if declared is not None and (difference := disagreement(declared, value.operand)):
            if difference.is_wrong:
                raise FrontendError(f"{where}: result {name} is {difference.text}")
            self.doubts.append(f"{where}: result {name} is {difference.text}")
        if any(isinstance(extent, int) and extent < 0 for extent in value.operand.shape):
            raise FrontendError(f"{where}: result {name} would have the shape {tuple(map(str, value.operand.shape))}")
        self.values[name] = value

    def _call(self, node: NodeProto, where: str) -> OnnxCall:
        from onnx import helper

        found = [self.values[name] if name else _Imported(None) for name in node.input]
        attributes = {attribute.name: _attribute(helper.get_attribute_value(attribute)) for attribute in node.attribute}
        results = max((index + 1 for index, name in enumerate(node.output) if name), default=0)
        operands = tuple(self._affordable(entry.operand) for entry in found)
        return OnnxCall(
            node.op_type, self.opsets.get("", 1), operands, tuple(e.extents for e in found), attributes, results,
            len(node.output), self.builder, self.symbols.derive,
        )  # fmt: skip

    def _affordable(self, operand: Operand) -> Operand:
        """An array is a constant of the graph once enough was computed from arrays; those that say shapes stay."""
        large = isinstance(operand, np.ndarray) and operand.size > MOST_ELEMENTS
        return self._tensor(operand) if large and self.allowance.is_spent else operand

    def _results(self, call: OnnxCall, node: NodeProto, where: str) -> tuple[Operand, ...]:
        known = node.op_type == "Identity" or not _has_opaque(call)
        rule = rule_of(node, self.further) if known else None
        found: Results = Declined("no rule")
        if rule is not None:
            found = self._converted(rule, self._recorded(call))
        if isinstance(found, Declined):
            found = self._written_out(call, node, where) or found
        if isinstance(found, Declined | OnHost):
            return self._generic(call, node, where, found)
        return tuple(found) if isinstance(found, tuple | list) else (found,)

    def _written_out(self, call: OnnxCall, node: NodeProto, where: str) -> tuple[Operand, ...] | None:
        """What an operator is as ONNX writes it out, where all of that has rules; narrow floats are rounded at its end."""
        if _has_opaque(call):
            return None
        wide = [_widened(operand) for operand in call.operands]
        types = [None if x is None else TensorType(tuple(x.shape), dtype(x.dtype)) for x in wide]
        written = written_out(node, types, call.opset)
        if written is None:
            return None
        values = {
            operand_name(place): _Imported(operand, content)
            for place, (operand, content) in enumerate(zip(wide, call.extents, strict=True))
        }
        body, opset = written
        inner = _Importer({"": opset}, self.allowance, self.symbols, {}, self.builder, values, whole=True)
        try:
            with self.builder.held(), self.symbols.derive.tried():
                found = inner.body(body, where)
                return _narrowed(found, node, call)
        except (NotWholeError, FrontendError):
            return None

    def body(self, body: GraphProto, where: str) -> dict[str, Operand]:
        """The nodes of an operator that is written out; its results by name."""
        wanted = [info.name for info in body.output]
        for placed in live_nodes([Placed(node, position) for position, node in enumerate(body.node)], wanted):
            self.node(placed.node, f"{where}, {placed.place}")
        return {name: self.values[name].operand for name in wanted}

    def _converted(self, rule: OnnxRule, call: OnnxCall) -> Results:
        """What the rule says; where numbers that are known cannot be computed now, the operators stay."""
        try:
            return rule.convert(call)
        except (
            TypeRuleError,
            DependsOnDataError,
        ) as error:  # ours takes less than ONNX's: the generic one takes it all
            return Declined(str(error))
        except UNFIT:
            if not any(isinstance(operand, np.ndarray) for operand in call.operands):
                raise
            recorded = tuple(None if operand is None else self._tensor(operand) for operand in call.operands)
            found = self._converted(rule, replace(call, operands=recorded))
            if isinstance(found, Declined):
                raise
            return found

    def _recorded(self, call: OnnxCall) -> OnnxCall:
        """Known data whose shape is to hold symbols cannot be computed at import: it becomes a constant of the graph."""
        symbolic = any(
            isinstance(dim, Sym) for content in call.extents[1:] if content is not None for dim in content.flat
        )
        if not symbolic or call.array(0) is None:
            return call
        return replace(call, operands=(self._tensor(call.operands[0]), *call.operands[1:]))

    def _generic(self, call: OnnxCall, node: NodeProto, where: str, reason: Declined | OnHost) -> tuple[Operand, ...]:
        if self.whole:
            raise NotWholeError(node.op_type)
        tensors = [None if operand is None else self._tensor(operand) for operand in call.operands]
        values = [tensor.value for tensor in tensors if tensor is not None]
        extents = self.symbols.unknown(self.builder.behind(values), self.declared)
        if isinstance(reason, OnHost) and extents.are_known(reason.shape) and self.builder.is_told(values[:1]):
            types: list[TensorType | None] = [TensorType(reason.shape, dtype(reason.dtype or call.operands[0].dtype))]
        else:
            data = tuple(operand if isinstance(operand, np.ndarray) else None for operand in call.operands)
            said = f"{where}: {reason.reason}"
            certain, further = ((), tuple) if _has_opaque(call) else (certain_shapes(call), lambda: known_shapes(call))
            types = inferred_types(node, tensors, data, self.opsets, said, certain, further, extents)
        attrs = generic_attributes(node, types, tensors, self.opsets, extents.defined)
        made = iter(self.builder.node(ONNX, values, attrs).outs)
        return tuple(None if type_ is None else Tensor(next(made), self.builder) for type_ in types)

    def _tensor(self, operand: Operand) -> Tensor:
        if isinstance(operand, Tensor):
            return operand
        array = np.asarray(operand)
        if dtype(array.dtype).is_opaque:
            attrs = constant_attributes(array, self.opsets)
            return Tensor(self.builder.node(ONNX, (), attrs).out, self.builder)
        return Tensor(self.builder.constant(array), self.builder)


def _widened(operand: Operand) -> Operand:
    return ops.cast(operand, dtype(WIDE)) if operand is not None and is_narrow(dtype(operand.dtype)) else operand


def _narrowed(found: Mapping[str, Operand], node: NodeProto, call: OnnxCall) -> tuple[Operand, ...]:
    """The results in their places, in the data types that the operands had."""
    types = [None if operand is None else dtype(operand.dtype) for operand in call.operands]
    narrow = narrow_results(node, types, call.opset)
    results = [found.get(result_name(place)) for place in range(len(node.output))]
    return tuple(
        ops.cast(result, narrow[place]) if result is not None and place in narrow else result
        for place, result in enumerate(results)
    )


def _has_opaque(call: OnnxCall) -> bool:
    """Whether an operand is one for operators of the host library alone."""
    return any(operand is not None and dtype(operand.dtype).is_opaque for operand in call.operands)


def _known(array: np.ndarray) -> _Imported:
    """An array that nobody changes any more: constants of the graph hold it, not a copy."""
    array.setflags(write=False)
    return _Imported(array, extents_of_array(array))


def _with_extents(result: Operand, extents: Extents | None) -> _Imported:
    """A shape tensor without symbols is a constant, whatever computes it."""
    if not isinstance(result, Tensor):
        return _known(np.asarray(result))
    if extents is None or any(not isinstance(dim, int) for dim in extents.flat):
        return _Imported(result, extents)
    return _Imported(extents.astype(result.dtype.numpy), extents)


def _attribute(value: Any) -> Any:  # ONNX attributes have many types
    from onnx import TensorProto

    if isinstance(value, TensorProto):
        return array_of(value, "an attribute")
    if isinstance(value, bytes):
        return value.decode()
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else value
