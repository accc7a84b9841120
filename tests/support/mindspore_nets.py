"""The nets of ``../shared/mindspore_reference`` as graphs, with what MindSpore made of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphkernel.frontends.trace import spec
from graphkernel.ir.graph import Builder, Graph, Value
from graphkernel.ir.types import Attrs
from graphkernel.ops import OPS

FOLDER = Path(__file__).parents[3] / "shared" / "mindspore_reference" / "nets"
BOOKKEEPING = frozenset({"Depend", "Load", "MakeTuple", "TupleGetItem", "UpdateState"})

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Net:
    """A net, its flags, and the launches that MindSpore ends with: kernels and operators outside of them."""

    graph: Graph
    flags: str
    kernels: tuple[tuple[str, ...], ...]
    outside: tuple[str, ...]


def read(path: Path) -> Net | str:
    """The net of a record, or why it is not one that we can build."""
    record = json.loads(path.read_text())
    if record["final_kernels"] is None or record["ops_outside_kernels"] is None:
        return "the record stops before the end"
    if any(dim < 0 for parameter in record["graph"]["parameters"] for dim in parameter["shape"]):
        return "the record does not say which dynamic extents are equal"
    values: dict[str, Value] = {}
    builder = Builder()
    for parameter in record["graph"]["parameters"]:
        given = spec(parameter["shape"], parameter["dtype"].lower())
        values[parameter["id"]] = builder.parameter(parameter["id"].lstrip("%"), given)
    inputs = tuple(values.values())
    outputs: tuple[Value, ...] = ()
    for node in record["graph"]["nodes"]:
        if node["op"] in ("MakeTuple", "Return"):
            known = tuple(values[name] for name in node["inputs"] if name in values)
            outputs = known or outputs
            continue
        if node["op"] not in ATTRIBUTES and not (node["op"] in OPS and not OPS[node["op"]].attributes):
            return f"{node['op']} is not translated"
        try:
            values[node["id"]] = _operator(builder, values, node)
        except LookupError as error:
            return str(error)
    flags = record["flags"].replace("--dump_as_text=true", "").replace("--enable_parallel_fusion=true", "")
    kernels = tuple(tuple(kernel["ops"]) for kernel in record["final_kernels"])
    outside = tuple(name for name in record["ops_outside_kernels"] if name not in BOOKKEEPING)
    return Net(Graph(path.stem, inputs, outputs), flags, kernels, outside)


def _operator(builder: Builder, values: Mapping[str, Value], node: Record) -> Value:
    op = OPS[node["op"]]
    operands = [_operand(builder, values, text) for text in node["inputs"][: op.arity]]
    attrs = ATTRIBUTES[node["op"]](node) if node["op"] in ATTRIBUTES else {}
    return builder.node(op, operands, Attrs.of(attrs)).outs[0]


def _operand(builder: Builder, values: Mapping[str, Value], text: str) -> Value:
    """A node, a scalar, or a parameter, whose label in a record may differ from its declaration but for its number."""
    if text in values:
        return values[text]
    if parameter := re.match(r"%para(\d+)_", text):
        return next(value for name, value in values.items() if name.startswith(parameter[0]))
    if constant := re.fullmatch(r"Tensor\(shape=\[\], dtype=(\w+), value=(.+)\)", text):
        return builder.constant(float(constant[2]), constant[1].lower())
    raise LookupError(f"operand {text} is not translated")


def _integers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"I64\((-?\d+)\)", text))


def _reduction(node: Record) -> dict[str, object]:
    return {"axis": _integers(node["inputs"][1]), "keep_dims": node["inputs"][2] == "Bool(1)"}


def _shape(node: Record) -> dict[str, object]:
    return {"shape": node["output"]["shape"]}


ATTRIBUTES: Mapping[str, Callable[[Record], dict[str, object]]] = {
    **dict.fromkeys(("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean"), _reduction),
    **dict.fromkeys(("Reshape", "BroadcastTo"), _shape),
    "BiasAdd": lambda node: {},
    "Cast": lambda node: {"dst_type": node["output"]["dtype"].lower()},
    "LogSoftmax": lambda node: {"axis": -1},
    "MatMul": lambda node: {},
    "Softmax": lambda node: {"axis": -1},
    "Transpose": lambda node: {"perm": _integers(node["inputs"][1])},
}
