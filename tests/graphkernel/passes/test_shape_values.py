"""Which tensors say shapes, and what extents they hold, as polynomials of symbols."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from graphkernel import ops
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import OPS, Tensor
from graphkernel.passes.shape.shape_values import asked_shapes, shape_value


def extent(x: Tensor) -> Tensor:
    return Tensor(x.builder.emit(OPS["Extent"], value=x.shape[0], dst_type="int64"), x.builder)


KNOWN: tuple[tuple[Callable[[Tensor], Tensor], str], ...] = (
    (ops.shape_of, "[N 4]"),
    (lambda x: ops.cast(ops.shape_of(x), "int32"), "[N 4]"),
    (lambda x: ops.shape_of(x) * np.array([2, 3]) + 1, "[2*N + 1 13]"),
    (lambda x: ops.concat([ops.slice(ops.shape_of(x), (1,), (1,)), ops.shape_of(x)]), "[4 N 4]"),
    (lambda x: ops.reduce_prod(ops.shape_of(x)), "4*N"),
    (lambda x: (ops.shape_of(x) * 6) // 3, "[2*N 8]"),
    (lambda x: ops.gather(ops.shape_of(x), np.array([1, 0])), "[4 N]"),
    (lambda x: ops.split(ops.shape_of(x), 2)[1], "[4]"),
    (extent, "N"),
)

UNKNOWN: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda x: ops.shape_of(x) // 2,  # N / 2 is no polynomial
    lambda x: ops.shape_of(x) // 0,
    lambda x: ops.cast(ops.shape_of(x), "float32"),
    lambda x: ops.cast(ops.reduce_sum(x, 0), "int64"),
    lambda x: ops.shape_of(x) + ops.cast(ops.reduce_sum(x), "int64"),
    lambda x: ops.argmax(x, -1),
    lambda x: ops.gather(ops.shape_of(x), ops.shape_of(x)),
    lambda x: ops.gather(ops.shape_of(x), np.array([2])),
)


@pytest.mark.parametrize(("function", "expected"), KNOWN)
def test_extents_are_known(function: Callable[[Tensor], Tensor], expected: str) -> None:
    (value,) = trace(function, spec(("N", 4))).outputs
    found = shape_value(value)
    assert found is not None
    assert str(found) == expected


@pytest.mark.parametrize("function", UNKNOWN)
def test_other_tensors_say_no_shape(function: Callable[[Tensor], Tensor]) -> None:
    (value,) = trace(function, spec(("N", 4))).outputs
    assert shape_value(value) is None


def test_the_tensors_asked_come_once_in_order() -> None:
    graph = trace(
        lambda x, y: ops.concat([ops.shape_of(y), ops.shape_of(x), ops.shape_of(y)]), spec(("N",)), spec(("M",))
    )
    assert [value.node.name for value in asked_shapes(graph.outputs[0])] == ["y", "x"]
