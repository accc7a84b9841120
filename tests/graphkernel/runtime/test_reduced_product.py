"""A product that is added up over ranks in chunks of rows: the same numbers, all started before the first is waited for."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.communication.alone import Alone
from graphkernel.communication.chunks import Costs, chunks_of
from graphkernel.communication.in_memory import run_ranks
from graphkernel.errors import VerifyError
from graphkernel.runtime.plan.verify_plan import verify_plan
from graphkernel.runtime.steps.reduced_product import reduced_product
from graphkernel.runtime.steps.steps import KernelStep
from kernelgen.tensor.types import Attrs
from tests.ranks.logged import Logged

DRAW = np.random.default_rng(0)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32])
def test_chunks_are_the_product(dtype, count):
    x, w = (DRAW.integers(-4, 4, shape).astype(dtype) for shape in ((7, 5), (5, 6)))
    for transpose_a in (False, True):
        for transpose_b in (False, True):
            out = np.zeros((7, 6), dtype)
            given = (x.T.copy() if transpose_a else x, w.T.copy() if transpose_b else w)
            attrs = Attrs.of(transpose_a=transpose_a, transpose_b=transpose_b)
            logged = Logged(Alone())
            reduced_product(logged, attrs, given, out, count).wait()
            np.testing.assert_array_equal(out, x @ w)
            assert len(logged.log) == (-(-7 // -(-7 // count)) if count < 7 else 7)


BATCHES = (
    ((2, 7, 5), (5, 6)), ((1, 7, 5), (5, 6)), ((2, 7, 5), (2, 5, 6)), ((0, 5), (5, 6)), ((7, 0), (0, 6)), ((2, 3, 0), (0, 6)),
)  # fmt: skip


@pytest.mark.parametrize("shapes", BATCHES)
@pytest.mark.parametrize("count", [1, 3])
def test_batches_and_nothing(shapes, count):
    x, w = (DRAW.standard_normal(shape).astype(np.float32) for shape in shapes)
    out = np.ones((x @ w).shape, np.float32)
    reduced_product(Alone(), Attrs(), (x, w), out, count).wait()
    np.testing.assert_allclose(out, x @ w, rtol=1e-5)


def test_a_slow_link_and_a_slow_start_decide_about_chunks():
    assert chunks_of((2048, 1024), 4, Costs(chunk=1.0)) == 1
    assert chunks_of((2048, 1024), 4, Costs(bandwidth=1e6)) == 16
    assert 1 < chunks_of((1, 2048, 1024), 4) == chunks_of((2048, 1024), 4) < 16
    assert chunks_of((1, 1), 4) == chunks_of((0, 5), 4) == chunks_of((), 4) == 1
    assert chunks_of((3, 1 << 30), 4) == chunks_of((3, 1 << 10, 1 << 20), 4) == 3


def test_ranks_that_hold_unlike_parts_of_the_inner_axis_cut_alike():
    """The one has a matrix product, the other an outer one, which is no MatMulAllReduce, and both add up the same rows."""
    rows, inner, columns = 900, (1, 700), 640
    x, w = (DRAW.standard_normal(shape).astype(np.float32) for shape in ((rows, sum(inner)), (sum(inner), columns)))

    def rank(communicator):
        mine = slice(0, inner[0]) if communicator.rank == 0 else slice(inner[0], None)
        part, weight = x[:, mine].copy(), w[mine].copy()
        graph = gk.trace(lambda x, w: ops.all_reduce(x @ w, rank_size=2), gk.spec(part.shape), gk.spec(weight.shape))
        return gk.compile(graph, communicator=communicator)(part, weight)[0]

    for found in run_ranks(2, rank):
        np.testing.assert_allclose(found, x @ w, rtol=1e-4, atol=1e-3)


def program(x, w, b):
    return ops.relu(ops.all_reduce(x @ w, rank_size=2) + b)


@pytest.mark.parametrize("level", [0, 2])
def test_two_ranks_send_chunks_of_one_product(level):
    x, w = (DRAW.standard_normal((2, *shape)).astype(np.float32) for shape in ((600, 128), (128, 512)))
    graph = gk.trace(program, gk.spec((600, 128)), gk.spec((128, 512)), gk.spec((512,)))

    def rank(communicator):
        logged = Logged(communicator)
        executable = gk.compile(graph, level, communicator=logged)
        verify_plan(executable.plan)
        return executable(x[communicator.rank], w[communicator.rank], np.ones(512, np.float32))[0], logged.log

    for found, log in run_ranks(2, rank):
        np.testing.assert_allclose(found, np.maximum(x[0] @ w[0] + x[1] @ w[1] + 1, 0), rtol=1e-4, atol=1e-4)
        assert (sum(line.startswith("all_reduce") for line in log) > 1) == (level == 2)


def test_one_process_has_nobody_to_wait_for():
    graph = gk.trace(lambda x, w: ops.all_reduce(x @ w), gk.spec((8, 8)), gk.spec((8, 8)))
    assert "MatMulAllReduce" not in str(gk.optimize(graph))
    without = gk.trace(lambda x, w: ops.all_reduce(x @ w, rank_size=2), gk.spec((8, 8)), gk.spec((8, 8)))
    assert "MatMulAllReduce" in str(gk.optimize(without))
    assert "MatMulAllReduce" not in str(gk.optimize(without, flags="--enable_allreduce_prologue_fusion=false"))


def tail(x, w, bias, residual):
    """A bias and a residual, and a norm of each row."""
    y = ops.all_reduce(x @ w, rank_size=2) + bias
    z = residual + ops.relu(y)
    return z, z * ops.rsqrt(ops.reduce_mean(z * z, axis=-1, keep_dims=True) + 1e-5)


def mixed(x, w, bias, residual):
    """A maximum over rows needs all of them."""
    y = ops.relu(ops.all_reduce(x @ w, rank_size=2) + bias)
    return y - ops.reduce_max(y, axis=0, keep_dims=True), residual


SHAPES = ((600, 64), (64, 512), (512,), (600, 512))


def traced(function, shapes=SHAPES):
    return gk.trace(function, *map(gk.spec, shapes))


class Awaited(Logged):
    """Writes down when rows of a sum were waited for."""

    def all_reduce(self, x, out, op):
        pending, log = super().all_reduce(x, out, op), self.log

        class Told:
            def wait(self):
                log.append("wait")
                pending.wait()

        return Told()


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_tail_takes_rows_as_they_come(tmp_path, monkeypatch, is_packed):
    arrays = [DRAW.standard_normal((2, *shape)).astype(np.float32) for shape in SHAPES]
    arrays[2][1], arrays[3][1] = arrays[2][0], arrays[3][0]
    graph = traced(tail)
    wanted = np.add(*(arrays[0] @ arrays[1])) + arrays[2][0]
    z = arrays[3][0] + np.maximum(wanted, 0)

    def rank(communicator):
        logged = Awaited(communicator)
        executable = gk.compile(graph, communicator=logged)
        verify_plan(executable.plan)
        assert [getattr(step, "awaited", None) is not None for step in executable.program.steps].count(True) == 1
        if is_packed:
            path = tmp_path / f"{communicator.rank}.gkx"
            executable.save(path)
            executable = gk.load_compiled(path, communicator=logged)
            assert [getattr(step, "awaited", None) is not None for step in executable.program.steps].count(True) == 1
        results = executable(*(array[communicator.rank] for array in arrays))
        again = executable(*(array[communicator.rank] for array in arrays))
        for one, other in zip(results, again, strict=True):
            np.testing.assert_array_equal(one, other)
        return results, [line.split()[0] for line in logged.log]

    for (first, second), log in run_ranks(2, rank):
        np.testing.assert_allclose(first, z, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(second, z / np.sqrt((z * z).mean(1, keepdims=True) + 1e-5), rtol=1e-3, atol=1e-3)
        assert log.count("wait") == log.count("all_reduce") > 2


def test_what_needs_all_rows_waits_for_them():
    assert "by_rows" in str(gk.optimize(traced(tail)))
    assert "by_rows" not in str(gk.optimize(traced(tail), flags="--enable_allreduce_epilogue_fusion=false"))
    assert "by_rows" not in str(gk.optimize(traced(tail), target="gpu"))
    assert "by_rows" not in str(gk.optimize(traced(mixed)))
    per_column = ((600, 64), (64, 512), (512,), (600, 1))
    assert "by_rows" in str(
        gk.optimize(traced(lambda x, w, b, r: ops.all_reduce(x @ w, rank_size=2) * r + b, per_column))
    )
    text = str(gk.optimize(traced(tail)))
    assert str(gk.parse(text)) == text


def test_a_kernel_that_does_not_wait_for_the_rows_that_it_reads_is_noticed():
    plan = gk.compile(traced(tail)).plan
    steps = [step._replace(awaited=None) if isinstance(step, KernelStep) else step for step in plan.steps]
    with pytest.raises(VerifyError, match="before it was waited for"):
        verify_plan(replace(plan, steps=tuple(steps)))
