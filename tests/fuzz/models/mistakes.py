"""Where onnxruntime is known to answer otherwise than the operator's definition says, or where there is none.

Each entry is a class of nodes with a reason, never a list of seeds. A node that disagrees alone, and for which an entry
holds, takes our result; the rest of the model is judged from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto, helper

from tests.fuzz.models.contents import is_float, largest, smallest_normal
from tests.fuzz.models.oracle import Array

Operands = Sequence[Array | None]
Holds = Callable[[NodeProto, Operands], bool]


@dataclass(frozen=True)
class Mistake:
    """Why both may differ, for which operators, and on which operands."""

    reason: str
    operators: frozenset[str]
    holds: Holds


def reason_of(node: NodeProto, operands: Operands) -> str | None:
    """Why the node's results may differ; None when they may not."""
    return next((m.reason for m in MISTAKES if node.op_type in m.operators and m.holds(node, operands)), None)


def _attributes(node: NodeProto) -> Mapping[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def _floats(operands: Operands) -> list[Array]:
    return [x.astype(np.float64) for x in operands if x is not None and is_float(x.dtype)]


def _has_nan(node: NodeProto, operands: Operands) -> bool:
    return any(bool(np.isnan(x).any()) for x in _floats(operands))


def _has_odd(node: NodeProto, operands: Operands) -> bool:
    return any(not bool(np.isfinite(x).all()) for x in _floats(operands))


def _is_huge(node: NodeProto, operands: Operands) -> bool:
    """Squares, sums or exponentials may leave the range."""
    return any(
        bool(
            (np.abs(x.astype(np.float64)) > np.sqrt(largest(x.dtype))).any()
            or not np.isfinite(x.astype(np.float64)).all()
        )
        for x in operands
        if x is not None and is_float(x.dtype)
    )


def _is_empty(node: NodeProto, operands: Operands) -> bool:
    return any(x is not None and x.size == 0 for x in operands)


def _is_integer(node: NodeProto, operands: Operands) -> bool:
    return operands[0] is not None and operands[0].dtype.kind in "iu"


def _overflows(node: NodeProto, operands: Operands) -> bool:
    x = operands[0]
    return (
        x is not None
        and x.dtype.kind in "iu"
        and bool((np.abs(x.astype(np.float64)) > np.iinfo(x.dtype).max / 1e3).any())
    )


def _divides_by_zero(node: NodeProto, operands: Operands) -> bool:
    a, b = operands
    if a is None or b is None or a.dtype.kind not in "iu":
        return False
    least = a.dtype.kind == "i" and bool((a == np.iinfo(a.dtype).min).any() and (b == -1).any())
    return bool((b == 0).any()) or least


def _odd_power(node: NodeProto, operands: Operands) -> bool:
    """An integer result that has no value: of a negative exponent, or beyond the range."""
    base, exponent = operands
    if base is None or exponent is None or base.dtype.kind not in "iu":
        return False
    with np.errstate(all="ignore"):
        wide = np.power(base.astype(np.float64), exponent.astype(np.float64))
    outside = ~np.isfinite(wide) | (np.abs(wide) > np.iinfo(base.dtype).max)
    return bool(outside.any() or (exponent.astype(np.float64) < 0).any())


def _leaves_the_range(node: NodeProto, operands: Operands) -> bool:
    """A float that the integer type cannot hold, which C leaves open."""
    x = operands[0]
    to = _attributes(node).get("to")
    of = np.dtype(helper.tensor_dtype_to_np_dtype(to)) if to else operands[1].dtype if operands[1] is not None else None
    if x is None or of is None or of.kind not in "iu" or not is_float(x.dtype):
        return False
    info, wide = np.iinfo(of), x.astype(np.float64)
    return bool((~np.isfinite(wide) | (wide < info.min) | (wide > info.max)).any())


def _backwards_from_before(node: NodeProto, operands: Operands) -> bool:
    """A negative step: the definition clamps bounds that onnxruntime and numpy read otherwise."""
    steps = operands[4] if len(operands) > 4 else None
    return steps is not None and bool((steps < 0).any())


def _rounds_up(node: NodeProto, operands: Operands) -> bool:
    given = _attributes(node)
    return bool(given.get("ceil_mode")) or (b"SAME" in given.get("auto_pad", b"") and "dilations" in given)


def _has_denormal(node: NodeProto, operands: Operands) -> bool:
    return any(
        bool(((np.abs(x.astype(np.float64)) < smallest_normal(x.dtype)) & (x != 0)).any())
        for x in operands
        if x is not None and is_float(x.dtype)
    )


def _is_in_a_tail(node: NodeProto, operands: Operands) -> bool:
    return any(bool((np.abs(x) > 15).any()) for x in _floats(operands))


def _is_double(node: NodeProto, operands: Operands) -> bool:
    return operands[0] is not None and operands[0].dtype == np.float64


def _saturates(node: NodeProto, operands: Operands) -> bool:
    """A quotient by the scale that 32 bits cannot hold."""
    x, scale = operands[:2]
    if x is None or scale is None:
        return False
    most = np.abs(x.astype(np.float64)).max(initial=0.0) / max(
        float(np.abs(scale.astype(np.float64)).min(initial=1.0)), 1e-300
    )
    return not most < 2.0**31


def _shift_too_far(node: NodeProto, operands: Operands) -> bool:
    x, by = operands
    return x is not None and by is not None and bool((by >= 8 * x.dtype.itemsize).any())


def _without_bound(node: NodeProto, operands: Operands) -> bool:
    missing = len(operands) < 3 or operands[1] is None or operands[2] is None
    return missing and _has_odd(node, operands)


REDUCTIONS = frozenset({
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare", "ReduceL1", "ReduceL2",
    "ReduceLogSum", "ReduceLogSumExp",
})  # fmt: skip
ORDERS = frozenset({
    "ArgMax", "ArgMin", "ReduceMax", "ReduceMin", "TopK", "Max", "Min", "Clip", "MaxPool", "GlobalMaxPool", "Relu", "Hardmax",
    "HardSigmoid", "HardSwish", "LeakyRelu", "PRelu", "Sign", "Selu", "Elu", "Celu", "ThresholdedRelu", "Shrink",
})  # fmt: skip
POOLS = frozenset({"MaxPool", "AveragePool", "LpPool"})
SUMS = REDUCTIONS | frozenset({
    "Attention", "AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "CumProd", "CumSum", "Einsum", "Gemm",
    "GlobalAveragePool", "GlobalLpPool", "GroupNormalization", "InstanceNormalization", "LRN", "LayerNormalization",
    "LogSoftmax", "LpNormalization", "LpPool", "MatMul", "MeanVarianceNormalization", "RMSNormalization", "Softmax",
    "GridSample", "Resize", "RoiAlign", "Upsample",
})  # fmt: skip
FUNCTIONS = frozenset({
    "Sigmoid", "Tanh", "Erf", "Gelu", "Softplus", "Softsign", "Mish", "Swish", "HardSwish", "Exp", "Pow", "Elu", "Selu",
    "Celu", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Sin", "Cos", "Tan", "Mod",
})  # fmt: skip

TAILS = frozenset({"Gelu", "Mish", "Sigmoid", "Softplus", "Swish"})
BODIES = frozenset({"Gelu", "HardSwish", "Celu", "Mish", "Shrink"})

MISTAKES: tuple[Mistake, ...] = (
    Mistake("the order of NaN is open, and onnxruntime's differs between kernels", ORDERS, _has_nan),
    Mistake("onnxruntime clips infinities where a bound is missing", frozenset({"Clip"}), _without_bound),
    Mistake("sums over infinities, NaN or squares beyond the range come in another order", SUMS, _is_huge),
    Mistake("onnxruntime bounds arguments of functions, so that infinities and NaN come out otherwise", FUNCTIONS, _is_huge),
    Mistake("onnxruntime's functions lose the digits of denormals", FUNCTIONS, _has_denormal),
    Mistake("onnxruntime's sigmoid and softplus are coarse in their tails", TAILS, _is_in_a_tail),
    Mistake("onnxruntime's result over an empty axis is not the neutral element", REDUCTIONS, _is_empty),
    Mistake("onnxruntime's sums of integers saturate, or go through floats", REDUCTIONS, _overflows),
    Mistake("integers divided by zero have no value", frozenset({"Div", "Mod"}), _divides_by_zero),
    Mistake("a power that the integer type cannot hold", frozenset({"Pow"}), _odd_power),
    Mistake("a float that the integer type cannot hold", frozenset({"Cast", "CastLike"}), _leaves_the_range),
    Mistake("what is quantized does not fit 32 bits on the way", frozenset({"QuantizeLinear"}), _saturates),
    Mistake("a shift by the width or more", frozenset({"BitShift"}), _shift_too_far),
    Mistake("onnxruntime reads the bounds of a backward slice as numpy does", frozenset({"Slice"}), _backwards_from_before),
    Mistake("onnxruntime runs a body of ONNX whose constants have the digits of float32", BODIES, _is_double),
    Mistake("windows that start in the padding, or SAME with dilations", POOLS, _rounds_up),
)  # fmt: skip


def leaves_its_axis(node: NodeProto, operands: Operands) -> bool:
    """Whether a Slice says more than its axis has: of a symbolic axis we trust that it does not."""
    x, given = operands[0], _attributes(node)
    if node.op_type != "Slice" or x is None:
        return False
    starts, ends, axes = (given.get(n, _listed(operands, i)) for i, n in enumerate(("starts", "ends", "axes"), start=1))
    bounds = [(x.shape[axis], *part) for axis, *part in zip(axes or range(len(starts)), starts, ends, strict=False)]
    return any(
        _outside(n, start) or _outside(n, end) or _normal(n, start) > _normal(n, end) for n, start, end in bounds
    )


def _listed(operands: Operands, position: int) -> list[int]:
    found = operands[position] if len(operands) > position else None
    return [] if found is None else found.tolist()


def _normal(extent: int, bound: int) -> int:
    return bound + extent if bound < 0 else bound


def _outside(extent: int, bound: int) -> bool:
    return bound < 2**31 - 1 and not 0 <= _normal(extent, bound) <= extent
