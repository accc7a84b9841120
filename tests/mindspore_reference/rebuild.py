"""The net of a record as a graph. Nodes keep their number (``%3`` is ``n3``), so that both sides can be compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphkernel.errors import GraphKernelError
from graphkernel.frontends.trace import spec
from graphkernel.ops import OPS
from kernelgen.tensor.graph import Alias, Builder, Graph, Value
from kernelgen.tensor.operator import Kind, Operator
from kernelgen.tensor.types import Attrs, TensorType
from tests.mindspore_reference.literals import is_literal, literal, tensor, types

Record = Mapping[str, Any]
Attributes = dict[str, object]

MONADS = frozenset({"UpdateState", "Depend", "Load", "MakeTuple", "TupleGetItem", "Return"})

# The inputs of an operator behind its tensors, in the order of the primitive. None: there is nothing of the kind here.
POSITIONAL: Mapping[str, tuple[str | None, ...]] = {
    "ArgMaxWithValue": ("axis", "keep_dims"),
    "ArgMinWithValue": ("axis", "keep_dims"),
    "Argmax": ("axis",),
    "Argmin": ("axis",),
    "BatchMatMul": ("transpose_a", "transpose_b"),
    "BiasAdd": ("data_format",),
    "BiasAddGrad": ("data_format",),
    "BroadcastTo": ("shape",),
    "Concat": ("axis",),
    "CumSum": ("axis", "exclusive", "reverse"),
    "Elu": ("alpha",),
    "ExpandDims": ("axis",),
    "Gather": ("axis", "batch_dims"),
    "LayerNorm": ("begin_norm_axis", "begin_params_axis", "epsilon"),
    "LayerNormGrad": ("begin_norm_axis", "begin_params_axis"),
    "LeakyReLU": ("alpha",),
    "LogSoftmax": ("axis",),
    "LogSoftmaxGrad": ("axis",),
    "MatMul": ("transpose_a", "transpose_b"),
    "OneHot": ("axis",),
    "ReduceAll": ("axis", "keep_dims"),
    "ReduceAny": ("axis", "keep_dims"),
    "ReduceMax": ("axis", "keep_dims"),
    "ReduceMean": ("axis", "keep_dims"),
    "ReduceMin": ("axis", "keep_dims"),
    "ReduceProd": ("axis", "keep_dims"),
    "ReduceSum": ("axis", "keep_dims", None),
    "Reshape": ("shape",),
    "RmsNorm": ("epsilon",),
    "Slice": ("begin", "size"),
    "Softmax": ("axis",),
    "Split": ("axis", "output_num"),
    "Squeeze": ("axis",),
    "Stack": ("axis",),
    "StridedSlice": (
        "begin", "end", "strides", "begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask",
    ),
    "Tile": ("multiples",),
    "Transpose": ("perm",),
}  # fmt: skip
NAMES: Mapping[str, Mapping[int, str]] = {"data_format": {0: "NCHW", 1: "NHWC"}}
# Which result is written into which operand.
IN_PLACE: Mapping[str, Mapping[int, int]] = {
    "Adam": {0: 0, 1: 1, 2: 2},
    "AdamWeightDecay": {0: 0, 1: 1, 2: 2},
    "ApplyMomentum": {0: 0, 1: 1},
    "Assign": {0: 0},
    "AssignAdd": {0: 0},
    "AssignSub": {0: 0},
}


@dataclass
class _Rebuilding:
    builder: Builder = field(default_factory=Builder)
    values: dict[str, tuple[Value, ...]] = field(default_factory=dict[str, tuple[Value, ...]])
    effects: dict[str, Value] = field(default_factory=dict[str, Value])  # parameter -> what it holds by now

    def operand(self, text: str) -> tuple[Value, ...]:
        """The values that an operand names; none for a monad or a literal."""
        if parameter := re.match(r"%para\d+_", text):
            name = next((name for name in self.values if name.startswith(parameter[0])), "")
            return (self.effects.get(name, self.values[name][0]),) if name else ()
        if text in self.values:
            return self.values[text]
        content = tensor(text, seed=len(self.values))
        return () if content is None else (self.builder.constant(content, None),)

    def target(self, text: str) -> str:
        """The parameter that an operand stands for, perhaps through a Load."""
        parameter = re.match(r"%para\d+_", text)
        return next((name for name in self.values if parameter and name.startswith(parameter[0])), "")

    def add(self, node: Record) -> None:
        """One node in the order of execution."""
        operands = [self.operand(text) for text in node["inputs"]]
        if node["op"] == "TupleGetItem":
            self.values[node["id"]] = (operands[0][int(str(literal(node["inputs"][1])))],)
        elif node["op"] in ("MakeTuple", "Return"):
            self.values[node.get("id", "return")] = tuple(value for values in operands for value in values)
        elif node["op"] in MONADS:
            self.values[node["id"]] = operands[0] if operands else ()
        else:
            made = self.operator(node, [value for values in operands for value in values])
            self.values[node["id"]] = made
            for result, operand in IN_PLACE.get(node["op"], {}).items():
                if result < len(made) and (name := self.target(node["inputs"][operand])):
                    self.effects[name] = made[result]

    def operator(self, node: Record, tensors: list[Value]) -> tuple[Value, ...]:
        """The operator as it is declared here; one that is not, or not so, is unknown and stays outside of kernels."""
        label = f"n{node['id'].lstrip('%')}"
        wanted = tuple(TensorType(_dims(shape, tensors), _dtype(of)) for of, shape in types(node["output"] or {}))
        op = OPS.get(node["op"])
        if op is not None:
            try:
                made = self.builder.node(op, tensors[: op.arity], Attrs.of(attributes(op, node)), label)
            except GraphKernelError:
                return self.builder.node(unknown(node["op"], wanted), tensors, name=label).outs
            if not wanted or _alike(made.types, wanted):
                return made.outs
        return self.builder.node(unknown(node["op"], wanted), tensors, name=label).outs


def rebuild(record: Record, name: str) -> Graph:
    """The graph of a record's ``graph`` field; what is written into parameters becomes outputs that alias them."""
    work = _Rebuilding()
    for parameter in record["parameters"]:
        label = parameter["id"].lstrip("%")
        given = spec(_symbolic(parameter["shape"]), parameter["dtype"].lower())
        work.values[parameter["id"]] = (work.builder.parameter(label, given),)
    inputs = tuple(work.values[parameter["id"]][0] for parameter in record["parameters"])
    for node in record["nodes"]:
        work.add(node)
    outputs = list(dict.fromkeys(work.values["return"]))
    outputs += [value for value in work.effects.values() if value not in outputs]
    aliases = tuple(
        Alias(outputs.index(value), inputs.index(work.values[name][0])) for name, value in work.effects.items()
    )
    return Graph(name, inputs, tuple(outputs), aliases)


def attributes(op: Operator, node: Record) -> Attributes:
    """The attributes that the operator has here, from the inputs behind the tensors and the primitive's attributes."""
    written = (node.get("attrs") or {}).items()
    given: list[tuple[str | None, str]] = [(key, text) for key, text in written if is_literal(text)]
    given += zip(POSITIONAL.get(node["op"], ()), filter(is_literal, node["inputs"]), strict=False)
    found: Attributes = {}
    for key, text in given:
        value = literal(text)
        if key in op.attribute_names and value is not None:
            found[key] = NAMES.get(key, {}).get(value, value) if isinstance(value, int) else value
    if "dst_type" in op.attribute_names:
        found["dst_type"] = node["output"]["dtype"].lower()
    if "shape" in op.attribute_names and "shape" in (node["output"] or {}):
        found["shape"] = tuple(node["output"]["shape"])
    return found


def unknown(name: str, results: tuple[TensorType, ...]) -> Operator:
    """An operator of which only the result types are known: no kernel holds it, and nothing computes it."""

    def infer(operands: tuple[TensorType, ...], attrs: Attrs) -> tuple[TensorType, ...]:
        return results

    def meaning(*arrays: np.ndarray, attrs: Attrs) -> tuple[np.ndarray, ...]:
        shapes = [tuple(extent if isinstance(extent, int) else 2 for extent in type_.shape) for type_ in results]
        return tuple(np.ones(shape, type_.dtype.numpy) for shape, type_ in zip(shapes, results, strict=True))

    return Operator(name, Kind.OPAQUE, None, infer, meaning)


def _symbolic(shape: list[int]) -> list[int | str]:
    """An extent that the record does not know is a symbol; those at the same place counted from the end are equal."""
    return [f"D{len(shape) - position}" if extent < 0 else extent for position, extent in enumerate(shape)]


def _dims(shape: tuple[int, ...], tensors: list[Value]) -> tuple[Any, ...]:
    """The extents of a result; one that is not known is that of the first operand at the same place."""
    known = tensors[0].type.shape if tensors else ()
    return tuple(
        known[position] if extent < 0 and position < len(known) else extent for position, extent in enumerate(shape)
    )


def _alike(made: tuple[TensorType, ...], wanted: tuple[TensorType, ...]) -> bool:
    """Data types may differ: a record tells those from before the casts that its back end put in."""
    return [type_.rank for type_ in made[: len(wanted)]] == [type_.rank for type_ in wanted]


def _dtype(name: str) -> Any:
    return spec((), name).dtype
