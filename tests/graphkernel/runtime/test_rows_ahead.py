"""Kernels that are summed over ranks: their rows are sent as they are done, and cut as those of other ranks are."""

from __future__ import annotations

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.cluster.rows import row_axes
from graphkernel.communication.in_memory import run_ranks
from graphkernel.runtime.plan.verify_plan import verify_plan
from graphkernel.runtime.steps.steps import KernelStep
from tests.ranks.logged import Logged

pytestmark = pytest.mark.usefixtures("shared_kernels")

DRAW = np.random.default_rng(0)
WEIGHT = DRAW.standard_normal((2, 512, 512)).astype(np.float32) / 16
BIAS = DRAW.standard_normal(512).astype(np.float32)
SHAPES = ((600, 512), (1, 600, 512), (3, 256, 512), (512, 512))


def layer(weight):
    """A feed-forward block with this rank's weight: a product that is summed, and a norm of what comes."""

    def net(x):
        y = ops.relu(ops.all_reduce(ops.tanh(x) @ weight, rank_size=2) + BIAS)
        return y, y * ops.rsqrt(ops.reduce_mean(y * y, axis=-1, keep_dims=True) + 1e-5)

    return net


def wanted(x):
    y = np.maximum(sum(np.tanh(x[rank]) @ WEIGHT[rank] for rank in range(2)) + BIAS, 0)
    return y, y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-5)


def sums(log):
    return sum(line.startswith("all_reduce") for line in log)


def assert_close(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("flags", ["", "--enable_debug_mode=true"])
def test_rows_of_a_kernel_are_sent_as_they_are_done(shape, flags):
    x = DRAW.standard_normal((2, *shape)).astype(np.float32)

    def rank(communicator):
        logged = Logged(communicator)
        graph = gk.trace(layer(WEIGHT[communicator.rank]), gk.spec(shape))
        executable = gk.compile(graph, flags=flags, communicator=logged)
        verify_plan(executable.plan)
        ahead = [step.ahead for step in executable.plan.steps if isinstance(step, KernelStep)]
        assert len(ahead) - ahead.count(None) == 1
        executable(x[communicator.rank])
        logged.log.clear()
        return executable(x[communicator.rank]), logged.log

    for found, log in run_ranks(2, rank):
        assert_close(found, wanted(x))
        assert sums(log) > 1


@pytest.mark.parametrize("flags", ["--enable_allreduce_prologue_fusion=false", "--disable_cluster_ops=MatMul"])
def test_ranks_that_compute_elsewhere_cut_alike(flags):
    """One rank has a kernel, the other one a library or no chunks at all."""
    x = DRAW.standard_normal((2, 600, 512)).astype(np.float32)

    def rank(communicator):
        graph = gk.trace(layer(WEIGHT[communicator.rank]), gk.spec((600, 512)))
        return gk.compile(graph, flags=flags if communicator.rank else "", communicator=communicator)(
            x[communicator.rank]
        )

    for found in run_ranks(2, rank):
        assert_close(found, wanted(x))


def test_a_package_sends_rows_too(tmp_path):
    x = DRAW.standard_normal((2, 600, 512)).astype(np.float32)

    def rank(communicator):
        path = tmp_path / f"{communicator.rank}.gkx"
        gk.compile(gk.trace(layer(WEIGHT[communicator.rank]), gk.spec((600, 512)))).save(path)
        logged = Logged(communicator)
        executable = gk.load_compiled(path, communicator=logged)
        verify_plan(executable.plan)
        return executable(x[communicator.rank]), logged.log

    for found, log in run_ranks(2, rank):
        assert_close(found, wanted(x))
        assert sums(log) > 1


def test_a_product_that_somebody_else_reads_is_computed_at_once():
    def net(x):
        y = x @ WEIGHT[0]
        return ops.all_reduce(y, rank_size=2), y

    assert "by_rows" not in str(gk.optimize(gk.trace(net, gk.spec((600, 512)))))
    small = gk.trace(lambda x: ops.all_reduce(x @ WEIGHT[0], rank_size=2), gk.spec((8, 512)))
    assert "by_rows" not in str(gk.optimize(small))


X, W, V = ("f32[6, 4]", "f32[4, 4]", "f32[4]")
KERNELS = {
    f"x: {X}, w: {W}, b: {V}| t: {X} = MatMul(x, w)\n u: {X} = Add(t, b)": {"x": 0},
    f"x: {X}, w: f32[6, 1]| t: {X} = Mul(x, w)": {"x": 0, "w": 0},
    f"x: {X}, w: f32[1, 4]| t: {X} = Mul(x, w)": {"x": 0},
    f"x: f32[1, 6, 4], w: {W}, b: {X}| t: f32[1, 6, 4] = BatchMatMul(x, w)\n u: f32[1, 6, 4] = Add(t, b)": {
        "x": 1,
        "b": 0,
    },
    f"x: {X}| t: f32[6, 1] = ReduceSum(x, axis=(1,), keep_dims=True)\n u: {X} = Sub(x, t)": {"x": 0},
    f"x: {X}| t: f32[1, 4] = ReduceSum(x, axis=(0,), keep_dims=True)\n u: {X} = Sub(x, t)": {},
    "x: f32[4, 4]| t: f32[4, 4] = MatMul(x, x)": {},
    "x: f32[4, 4]| t: f32[4, 4] = Exp(x)\n u: f32[4, 4] = MatMul(x, t)": {},
    "x: f32[4, 4], w: f32[4, 4]| t: f32[4, 4] = MatMul(x, w)": {"x": 0},
    "x: f32[4, 6], w: f32[4, 4]| t: f32[6, 4] = MatMul(x, w, transpose_a=True)": {},
    f"x: {X}, w: {W}| t: {X} = MatMul(x, w)\n u: f32[4, 6] = Transpose(t, perm=(1, 0))": {},
    "x: f32[1, 4]| t: f32[1, 4] = Exp(x)": {},
    "x: f32[6]| t: f32[6] = Exp(x)": {},
}


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.partition("| ")[2])
def test_which_values_have_rows(kernel):
    inputs, _, statements = kernel.partition("|")
    last = statements.strip().split("\n")[-1].split(":")[0].strip()
    body = gk.parse(f"graph f({inputs}) {{\n{statements}\n return {last}\n}}")
    axes = row_axes(body)
    assert {value.node.name: axis for value, axis in axes.items() if value in body.inputs} == KERNELS[kernel]
