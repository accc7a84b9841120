"""Sums down columns keep the loop along their results inside, whatever is computed of them afterwards."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, tensor

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.nest.nodes import For, LoopKind, Var
from kernelgen.nest.walk import loads_of, statements
from kernelgen.plan import Plan
from kernelgen.stages import lower
from kernelgen.tensor.dims import Dim, sym


def activated(*shape: Dim, axis: int = 1) -> KernelDesc:
    """``tanh`` of sums along an axis."""
    w, x = Writer(), tensor("x", *shape)
    kept = tuple(extent for place, extent in enumerate(shape) if place != axis)
    return w.desc(
        "activated", (x,), w.op("Tanh", w.op("ReduceSum", x, shape=kept, axis=(axis,), keep_dims=False), shape=kept)
    )


def normalised(*shape: Dim) -> KernelDesc:
    """Columns less their greatest."""
    w, x = Writer(), tensor("x", *shape)
    one = (shape[0], 1, shape[2])
    return w.desc("less", (x,), w.op("Sub", x, w.op("ReduceMax", x, shape=one, axis=(1,), keep_dims=True), shape=shape))


def walks_rows(kernel: KernelDesc) -> bool:
    """Whether vectors of the kernel's operand are single loads: along its last dim."""
    nest = lower(kernel, Plan()).nest
    vectors = [part for part in statements(nest.body) if isinstance(part, For) and part.kind is LoopKind.VECTOR]
    places = [
        (loop.var, load.index[-1])
        for loop in vectors
        for inner in statements(loop.body)
        for load in loads_of(inner)
        if load.buffer == nest.buffers[0]
    ]
    assert places
    return all(place == Var(var) for var, place in places)


@pytest.mark.parametrize(
    "desc",
    [
        activated(3, 40, 64), activated(3, 40, 16), activated(sym("n"), sym("t"), sym("c")), activated(2, 3, 40, 64, axis=2),
        activated(40, 64, axis=0), activated(3, 40, 64, axis=2), normalised(3, 40, 64), normalised(3, sym("t"), 64),
    ],
    ids=["known", "one vector", "open", "two outside", "nothing outside", "rows", "read twice", "read twice, open"],
)  # fmt: skip
def test_vectors_lie_along_what_is_read(desc: KernelDesc) -> None:
    assert walks_rows(desc)


def test_fewer_results_than_lanes_are_taken_along_their_terms() -> None:
    assert not walks_rows(activated(3, 40, 8))


def test_what_is_read_the_other_way_round_is_taken_along_its_terms() -> None:
    """The terms of a sum lie together where its operand is transposed first."""
    w, x = Writer(), tensor("x", 3, 64, 40)
    turned = w.op("Transpose", x, shape=(3, 40, 64), perm=(0, 2, 1))
    total = w.op("ReduceSum", turned, shape=(3, 64), axis=(1,), keep_dims=False)
    assert walks_rows(w.desc("turned", (x,), w.op("Tanh", total, shape=(3, 64))))


@pytest.mark.parametrize("extents", [(3, 40, 64), (1, 1, 1), (2, 7, 33), (4, 1, 70), (1, 50, 5)])
def test_sums_of_any_extents_are_right(extents: tuple[int, int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(extents).astype(np.float32)
    for rows in (activated(sym("n"), sym("t"), sym("c")), activated(*extents)):
        (found,) = kernelgen.compile(rows)(x)
        np.testing.assert_allclose(found, np.tanh(x.sum(1, dtype=np.float64)), rtol=1e-5, atol=1e-6)
    for rows in (normalised(sym("n"), sym("t"), sym("c")), normalised(*extents)):
        np.testing.assert_array_equal(kernelgen.compile(rows)(x)[0], x - x.max(1, keepdims=True))
