"""What onnxruntime makes of one node, without optimization and with every result named.

Nodes run one at a time: a whole float16 model loses the rounding between its operators there. Where onnxruntime has no
kernel for a data type, the node runs in a wider one, and what comes out is rounded once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
from onnx import ModelProto, NodeProto, helper, numpy_helper, shape_inference

Array = np.ndarray[Any, Any]
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
WIDER: Mapping[np.dtype[Any], Any] = {
    BFLOAT16: np.float32, np.dtype(np.float16): np.float32,
    np.dtype(np.int8): np.int32, np.dtype(np.int16): np.int32, np.dtype(np.uint8): np.int32,
    np.dtype(np.uint16): np.int32, np.dtype(np.uint32): np.int64,
}  # fmt: skip
WIDENED = frozenset({
    "Abs", "Add", "ArgMax", "ArgMin", "Ceil", "Clip", "Concat", "Cos", "Div", "Elu", "Equal", "Erf", "Exp", "Expand",
    "Flatten", "Floor", "Gather", "Gelu", "GlobalAveragePool", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish",
    "Identity", "IsInf", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "MatMul", "Max", "Mean", "Min", "Mod", "Mul",
    "Neg", "PRelu", "Pad", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare", "Relu", "Reshape", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Slice", "Softmax",
    "Softplus", "Softsign", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh", "Tile", "Transpose", "Unsqueeze", "Where",
    "LogSoftmax", "Swish", "Mish", "Celu", "DepthToSpace", "SpaceToDepth", "CumSum", "GatherElements", "Trilu", "Gemm",
})  # fmt: skip
"""Operators whose results have the type of their operands, or one that does not depend on it."""
COUNTING = frozenset({"ArgMax", "ArgMin"})
"""Those whose results are indices."""


class Unable(Exception):
    """onnxruntime does not run the node."""


def run_node(
    node: NodeProto, opset: int, operands: Sequence[Array | None], constant: Sequence[bool], check: bool = False
) -> list[Array]:
    """All results, those skipped by an empty name included. Raises ``Unable``."""
    single = single_node(node, opset, operands, constant)
    if check:
        _check(single)
    if node.op_type in ("Cast", "CastLike") and any(x is not None and x.dtype == BFLOAT16 for x in operands):
        return _cast_bfloat16(node, opset, operands, constant)
    if node.op_type == "Cast" and _target(node) == BFLOAT16:
        return _to_bfloat16(operands[0])
    try:
        return _run(single, operands, constant)
    except Unable:
        wide = _widened(node, operands)
        if wide is None:
            raise
        results = _run(single_node(node, opset, wide, constant), wide, constant)
        return results if node.op_type in COUNTING else _narrowed(results, operands)


def single_node(node: NodeProto, opset: int, operands: Sequence[Array | None], constant: Sequence[bool]) -> ModelProto:
    """A model of this node alone: operands ``x0, x1, ...`` (constants as initializers), results ``y0, y1, ...``."""
    alone = NodeProto()
    alone.CopyFrom(node)
    del alone.input[:], alone.output[:]
    alone.input.extend(f"x{i}" if x is not None else "" for i, x in enumerate(operands))
    alone.output.extend(f"y{i}" for i in range(len(node.output)))
    given = [(f"x{i}", x, fixed) for i, (x, fixed) in enumerate(zip(operands, constant, strict=True)) if x is not None]
    infos = [_info(name, x) for name, x, fixed in given if not fixed]
    initializers = [numpy_helper.from_array(x, name) for name, x, fixed in given if fixed]
    results = [helper.make_empty_tensor_value_info(name) for name in alone.output]
    graph = helper.make_graph([alone], "single", infos, results, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def _info(name: str, x: Array) -> Any:  # ValueInfoProto
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)


@cache
def _options() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return options


def _check(single: ModelProto) -> None:
    """Raises ``Unable`` for a node that ONNX itself does not allow."""
    try:
        shape_inference.infer_shapes(single, check_type=True, strict_mode=True)
    except Exception as error:  # onnx raises several classes of its own
        raise Unable(str(error)) from error


def _run(single: ModelProto, operands: Sequence[Array | None], constant: Sequence[bool]) -> list[Array]:
    feeds = {f"x{i}": x for i, x in enumerate(operands) if x is not None and not constant[i]}
    try:
        session = onnxruntime.InferenceSession(
            single.SerializeToString(), _options(), providers=["CPUExecutionProvider"]
        )
        return [np.asarray(result) for result in session.run(None, feeds)]
    except Exception as error:  # onnxruntime raises a dozen classes
        raise Unable(str(error)) from error


def _widened(node: NodeProto, operands: Sequence[Array | None]) -> list[Array | None] | None:
    """Operands in wider types; None when there is nothing to widen, or the meaning would change."""
    types = {x.dtype for x in operands if x is not None}
    if node.op_type not in WIDENED or not types & WIDER.keys():
        return None
    return [None if x is None else x.astype(WIDER.get(x.dtype, x.dtype)) for x in operands]


def _narrowed(results: list[Array], operands: Sequence[Array | None]) -> list[Array]:
    """Results of the wider type in the type of the operand that was widened."""
    back = {np.dtype(WIDER[x.dtype]): x.dtype for x in operands if x is not None and x.dtype in WIDER}
    with np.errstate(all="ignore"):
        return [result.astype(back.get(result.dtype, result.dtype)) for result in results]


def _target(node: NodeProto) -> Any:  # np.dtype
    return helper.tensor_dtype_to_np_dtype(next(a.i for a in node.attribute if a.name == "to"))


def _cast_bfloat16(
    node: NodeProto, opset: int, operands: Sequence[Array | None], constant: Sequence[bool]
) -> list[Array]:
    """Through float32, which holds every bfloat16."""
    x, *others = operands
    assert x is not None
    wide = x.astype(np.float32) if x.dtype == BFLOAT16 else x
    if node.op_type == "CastLike" and others[0] is not None and others[0].dtype == BFLOAT16:
        return _to_bfloat16(wide)
    if node.op_type == "Cast" and _target(node) == BFLOAT16:
        return _to_bfloat16(wide)
    return _run(single_node(node, opset, [wide, *others], constant), [wide, *others], constant)


def _to_bfloat16(x: Array | None) -> list[Array]:
    assert x is not None
    with np.errstate(all="ignore"):
        return [x.astype(np.float32).astype(BFLOAT16)]
