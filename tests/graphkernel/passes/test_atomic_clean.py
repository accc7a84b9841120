from __future__ import annotations

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.handoff import to_desc
from graphkernel.ops import Tensor
from graphkernel.options import Options
from graphkernel.passes.base import Context
from graphkernel.passes.effects.atomic_clean import why_not_spread
from graphkernel.passes.effects.stitch_atomic_clean import stitch_atomic_clean
from kernelgen.tensor.graph import Node


def reduction(shape: tuple[int | str, ...], axis: tuple[int, ...], dtype: str = "float32") -> Node:
    graph = gk.trace(lambda x: ops.reduce_sum(x, axis), gk.spec(shape, dtype))
    return graph.outputs[0].node


@pytest.mark.parametrize(
    ("target", "shape", "axis", "dtype", "spread"),
    [
        ("gpu", (4, 1024), (1,), "float32", True),
        ("gpu", (4, 1023), (1,), "float32", False),
        ("gpu", (32, 32), (0, 1), "float32", True),
        ("gpu", (31, 33), (0, 1), "float32", False),
        ("gpu", (4, 8), (0,), "float16", True),
        ("gpu", ("N", 8), (0,), "float32", True),
        ("gpu", (8, "N"), (1,), "float32", False),
        ("ascend", (4, 8), (0,), "float32", True),
        ("ascend", (4, 8), (0,), "float16", False),
        ("ascend", (1, 4, 8), (1,), "float32", True),
        ("ascend", (31, 8), (1,), "float32", True),
        ("ascend", (32, 8), (1,), "float32", False),
        ("ascend", ("N", 8), (1,), "float32", False),
    ],
)
def test_the_rules_of_both_targets(
    target: str, shape: tuple[int | str, ...], axis: tuple[int, ...], dtype: str, spread: bool
) -> None:
    assert (why_not_spread(reduction(shape, axis, dtype), target) == "") == spread


BY_NAME = "--enable_pass=highlevelopt2.atomic_clean"
AKG = "--kernel_generator=AKG"


def column_sums(x: Tensor) -> Tensor:
    return ops.reduce_sum(ops.square(x), 0)


def test_the_description_is_that_of_akg() -> None:
    graph = gk.optimize(gk.trace(column_sums, gk.spec((64, 40))), target="gpu", flags=BY_NAME)
    cleared, summed = (to_desc(node, "gpu") for node in graph.operators)
    assert cleared.name == "Fused_BroadcastTo_atomic_clean"
    assert summed.name == "Fused_Mul_ReduceSum_atomic_add"
    assert [op.op.name for op in summed.operators] == ["Mul", "ReduceSum", "Assign"]
    assert summed.operators[1].attrs.bool("enable_atomic_add")
    assert summed.operators[2].args == (summed.graph.inputs[1], summed.operators[1].out)
    assert summed.updated_inputs == (1,)
    assert summed.outputs == ()


def test_it_runs_and_cleared_memory_is_not_copied() -> None:
    graph = gk.optimize(gk.trace(column_sums, gk.spec((64, 40))), flags=BY_NAME)
    executable = gk.compile(graph, opt_level=0)
    assert executable.report.fallbacks == ()
    assert all(not getattr(step, "private", ()) for step in executable.plan.steps)
    x = np.random.default_rng(0).standard_normal((64, 40)).astype(np.float32)
    for _ in range(2):
        np.testing.assert_allclose(executable(x)[0], np.square(x).sum(0), rtol=1e-5)


def test_only_ascend_does_it_unasked() -> None:
    graph = gk.trace(column_sums, gk.spec((64, 40)))
    assert "atomic" in str(gk.optimize(graph, target="ascend", flags=AKG))
    assert "atomic" not in str(gk.optimize(graph, opt_level=1, target="ascend", flags=AKG))
    assert "atomic" not in str(gk.optimize(graph, target="cpu"))
    assert "atomic" not in str(gk.optimize(graph, target="gpu"))
    assert "atomic" in str(gk.optimize(graph, target="gpu", flags=BY_NAME))


def test_sums_of_a_gpu_are_one_kernel_whatever_is_summed() -> None:
    graph = gk.parse(
        "kernel K(x: f32[6, 8], i: i32[6]) { t: f32[6, 8] = Exp(x)\n"
        " s: f32[4, 8] = UnsortedSegmentSum(t, i, num_segments=4)\n return s }\n"
        "graph f(x: f32[6, 8], i: i32[6]) { s: f32[4, 8] = K(x, i)\n return s }"
    )
    assert len(gk.optimize(graph, target="gpu", flags="--enable_stitch_fusion=true").operators) == 1


def test_optimizing_it_again_leaves_the_cleared_memory_to_its_kernel() -> None:
    graph = gk.optimize(gk.trace(column_sums, gk.spec((64, 40))), target="ascend", flags=AKG)
    assert gk.optimize(graph, target="ascend", flags=AKG) == graph


def test_a_stitched_kernel_names_the_sums_that_pass_through_shared_memory() -> None:
    graph = gk.parse(
        "kernel K(x: f32[64, 8], d: f32[64, 8]) { r: f32[64, 1] = ReduceSum(x, axis=(1,), keep_dims=True)\n"
        " y: f32[64, 8] = Mul(d, r)\n s: f32[8] = ReduceSum(y, axis=(0,), keep_dims=False)\n return y, s }\n"
        "graph f(x: f32[64, 8], d: f32[64, 8]) { y: f32[64, 8], s: f32[8] = K(x, d)\n return y, s }"
    )
    assert to_desc(graph.operators[0], "gpu").buffer_stitch == (("output_0_0",),)
    assert to_desc(graph.operators[0], "cpu").buffer_stitch == ()
    after = stitch_atomic_clean(graph, Context(Options(target="gpu")))
    desc = to_desc(after.operators[-1], "gpu")
    atomic = [op.out.name for op in desc.operators if op.attrs.get("enable_atomic_add")]
    assert atomic == ["output_0_2"], "the row sum is not added into memory"
    arrays = [np.ones((64, 8), np.float32), np.full((64, 8), 0.5, np.float32)]
    for got, want in zip(gk.compile(after)(*arrays), gk.evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
