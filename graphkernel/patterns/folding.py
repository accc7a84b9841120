"""Computing an operator on constants at compile time, with its numpy meaning."""

from __future__ import annotations

import numpy as np

from graphkernel.ops.library.host import REFERENCE, is_onnx, runner
from graphkernel.ops.library.random import is_random
from kernelgen.tensor.graph import Builder, Node, Value
from kernelgen.tensor.order import is_ordered

SMALL = 1 << 16


def is_foldable(node: Node) -> bool:
    """True when all operands are known and the results are small, or no larger than the largest operand.

    A broadcast of a scalar stays an operator, a transposed weight is computed once.
    """
    if (
        _is_quantized_weight(node)
        or node.body is not None
        or not node.args
        or is_random(node)
        or is_ordered(node)
        or any(not arg.is_known for arg in node.args)
    ):
        return False
    largest = max(arg.type.size for arg in node.args if isinstance(arg.type.size, int))
    return all(
        type_.is_static and isinstance(type_.size, int) and type_.size <= max(SMALL, largest) for type_ in node.types
    )  # no elements are not enough: f32[N, 0] has the size 0


def _is_quantized_weight(node: Node) -> bool:
    """It stays as it is: a quarter of what it stands for. In floats onnxruntime would quantize it anew, and otherwise."""
    return is_onnx(node, "DequantizeLinear") and node.out.type.rank > 1


def folded(node: Node, builder: Builder) -> tuple[Value, ...] | None:
    """The results of a foldable node as constants; None when its meaning refuses these numbers.

    Nor is it folded when the meaning gives another type than the type rule, or is that of onnx's reference evaluator, which
    departs from the standard: what cannot be computed stays an operator.
    """
    if runner(node) == REFERENCE:
        return None
    try:
        with np.errstate(all="ignore"):
            found = node.op.meaning(*(arg.constant for arg in node.args), attrs=node.attrs)
    except Exception:  # numpy's classes, and those of the library that knows the operator
        return None
    arrays = tuple(map(np.asarray, found if isinstance(found, tuple) else (found,)))
    promised = [(type_.shape, type_.dtype.numpy) for type_ in node.types]
    if [(array.shape, array.dtype) for array in arrays] != promised:
        return None
    return tuple(builder.constant(array) for array in arrays)
