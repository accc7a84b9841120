"""A hypothesis strategy for small programs that use every kind of operator and stay within sane magnitudes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from graphkernel import ops
from graphkernel.ops import Tensor
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.types import TensorType, dtype, sym

EXTENTS = st.sampled_from([1, 2, 3, 5, 7, 9, 17])
UNARY: tuple[Callable[[Tensor], Tensor], ...] = (
    ops.tanh, ops.neg, ops.abs, ops.sigmoid, ops.relu, ops.square, ops.gelu, ops.softmax, ops.log_softmax,
    lambda x: x * 1.0, lambda x: x + 0.0, lambda x: x / 4.0, lambda x: x * 0.5, lambda x: 1.5 - x,
    lambda x: ops.pow(x, 2.0), lambda x: ops.tanh(ops.reduce_sum(x, -1, keep_dims=True)) + x,
    lambda x: ops.reduce_max(ops.reduce_max(x, 1, keep_dims=True), 0, keep_dims=True) - x,
    lambda x: ops.reshape(ops.reshape(x, (x.shape[0] * x.shape[1],)), x.shape),
    lambda x: ops.transpose(ops.tanh(ops.transpose(x, (1, 0))), (1, 0)),
    lambda x: ops.cast(ops.cast(x, "float64"), "float32"),
    lambda x: ops.select(x > 0, x, ops.ones_like(x)),
)  # fmt: skip
BINARY: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    lambda x, y: ops.tanh(x) * ops.tanh(y), lambda x, y: x + y, lambda x, y: x - y, ops.maximum, ops.minimum,
    lambda x, y: ops.select(ops.logical_not(x < y), x, y),
)  # fmt: skip


@st.composite
def programs(draw: st.DrawFn) -> tuple[Graph, list[np.ndarray[Any, Any]]]:
    """A graph of up to a dozen steps, its first dim symbolic in half of the cases, and arrays for it."""
    rows, columns = draw(EXTENTS), draw(EXTENTS)
    builder = Builder()
    type_ = TensorType((sym("N") if draw(st.booleans()) else rows, columns), dtype("float32"))
    inputs = [builder.parameter(f"x{i}", type_) for i in range(2)]
    values = [Tensor(value, builder) for value in inputs]
    for _ in range(draw(st.integers(1, 12))):
        if draw(st.booleans()):
            values.append(draw(st.sampled_from(UNARY))(draw(st.sampled_from(values))))
        else:
            values.append(draw(st.sampled_from(BINARY))(draw(st.sampled_from(values)), draw(st.sampled_from(values))))
    outputs = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    arrays = [rng.standard_normal((rows, columns)).astype(np.float32) for _ in inputs]
    return Graph("random", tuple(inputs), tuple(x.value for x in outputs)), arrays
