"""KernelDesc -> document -> composite JSON, readable by :mod:`kernelgen.composite.read` and by AKG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.composite.document import Document, Operation
from kernelgen.composite.link import unlinked
from kernelgen.composite.unknown_extents import UNKNOWN
from kernelgen.composite.vocabulary import ADD_N
from kernelgen.tensor.attrs import AttrValue
from kernelgen.tensor.dims import Sym
from kernelgen.tensor.operators.pieces import CONCAT

VARIADIC = frozenset({ADD_N, CONCAT})
"""Operators that all versions write with their operands in one group."""


def dump_desc(desc: KernelDesc) -> dict[str, Any]:
    """The composite JSON of a description, in the version that it came from; ``load_desc(dump_desc(d)) == d``."""
    return written(unlinked(desc))


def written(desc: Document) -> dict[str, Any]:
    """The composite JSON of a document."""
    target = dict(desc.target_info)
    document: dict[str, Any] = {
        "composite": True,
        "op": desc.name,
        "platform": "AKG",
        "process": desc.process,
        "input_desc": [[_tensor_json(t)] for t in desc.inputs] or None,
        "op_desc": [_op_json(op) for op in desc.ops],
        "output_desc": [_tensor_json(t) for t in desc.outputs],
    }
    if desc.version:
        document["version"] = desc.version
    if target:
        document["target_info"] = target
    if desc.buffer_stitch:
        document["buffer_stitch"] = {"stitch_op": [list(names) for names in desc.buffer_stitch]}
    if desc.parallel_fusion:
        parallel = desc.parallel_fusion
        document["parallel_fusion"] = {
            "fusion_type": parallel.fusion_type,
            "sub_graph": [list(names) for names in parallel.sub_graph],
            "core_num": list(parallel.core_num),
            "type_info": [],
        }
    return document


def _tensor_json(tensor: Tensor) -> dict[str, Any]:
    document: dict[str, Any] = {
        "tensor_name": tensor.name,
        "data_type": tensor.dtype.name,
        "format": tensor.layout,
        "shape": [UNKNOWN if isinstance(dim, Sym) else dim for dim in tensor.shape],
    }
    if any(isinstance(dim, Sym) for dim in tensor.shape):
        document["symbolic_shape"] = [str(dim) for dim in tensor.shape]
    if tensor.value is not None:
        document["value"] = tensor.value
    return document


def _op_json(op: Operation) -> dict[str, Any]:
    operands = [{"name": f"input_{i}", **_tensor_json(t)} for i, t in enumerate(op.args)]
    return {
        "name": op.name,
        "impl_path": "",
        "attr": [_attr_json(name, value) for name, value in op.attrs.items()] or None,
        "input_desc": [operands] if op.op in VARIADIC else [[operand] for operand in operands],
        "output_desc": [{"name": f"output_{i}", **_tensor_json(t)} for i, t in enumerate(op.outs)],
    }


def _attr_json(name: str, value: AttrValue) -> dict[str, Any]:
    kind, plain = _attr_value(value)
    return {"name": name, "data_type": kind, "value": plain}


def _attr_value(value: AttrValue) -> tuple[str, Any]:
    if isinstance(value, Sym):
        return "symbol", str(value)
    if not isinstance(value, tuple):
        return _kind(value), value
    if any(isinstance(item, Sym) for item in value):
        return "listSymbol", [str(item) for item in value]
    return f"list{_kind(value[0]).capitalize() if value else 'Int'}", _unfrozen(value)


def _kind(value: object) -> str:
    return type(value).__name__


def _unfrozen(value: Sequence[AttrValue]) -> list[Any]:
    return [_unfrozen(item) if isinstance(item, tuple) else item for item in value]
