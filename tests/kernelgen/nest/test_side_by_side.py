"""Independent launches as one: what is joined, what is not, and that the blocks of each part are its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kernel_examples import Writer, constant, tensor

import kernelgen
from kernelgen import stages
from kernelgen.desc import KernelDesc
from kernelgen.dims import Dim, sym
from kernelgen.dtypes import FLOAT16
from kernelgen.errors import BackendUnavailable, CodegenError
from kernelgen.kernel import Kernel
from kernelgen.nest.nodes import Block, Compare, If, Nest, Num, Statement, Var
from kernelgen.nest.verify import verify
from kernelgen.nest.walk import map_blocks
from kernelgen.plan import Plan
from kernelgen.stages import lower
from kernelgen.targets.gpu.interpret import InterpretedEntry
from kernelgen.targets.gpu.program import Launch, launches
from kernelgen.targets.gpu.target import emit


def two(first: Dim = 1000, second: Dim = 70, third: Dim = 9) -> KernelDesc:
    """A float32 array doubled, a float16 one halved, and a sum over the rows of a third."""
    w = Writer()
    x, h, r = tensor("x", first), tensor("h", second, 5, dtype=FLOAT16), tensor("r", third, 300)
    double = w.op("Mul", x, constant(2.0), shape=(first,))
    half = w.op("Mul", h, constant(0.5, FLOAT16), shape=(second, 5))
    total = w.op("ReduceSum", r, shape=(third, 1), axis=(1,), keep_dims=True)
    return w.desc("two", (x, h, r), double, half, total)


def chained() -> KernelDesc:
    """Two sums over everything, by each of which a second part of the kernel multiplies."""
    w = Writer()
    inputs = (tensor("x", 40000), tensor("y", 40000))
    sums = [w.op("ReduceSum", each, shape=(1,), axis=(0,), keep_dims=True) for each in inputs]
    outputs = [w.op("Mul", each, total, shape=(40000,)) for each, total in zip(inputs, sums, strict=True)]
    return w.desc("chained", inputs, *outputs)


def test_independent_parts_share_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    nest, apart = nest_of(two()), separate(two(), monkeypatch)
    verify(nest)
    (joined,) = launches(nest)
    assert isinstance(joined.blocks, Num)
    assert joined.blocks.value == sum(each.blocks.value for each in apart if isinstance(each.blocks, Num))
    assert joined.threads == max(each.threads for each in apart)


def test_each_part_is_right() -> None:
    kernel = kernelgen.compile(two(), "gpu")
    rng = np.random.default_rng(0)
    x, h, r = (
        rng.normal(size=1000).astype("f4"),
        rng.normal(size=(70, 5)).astype("f2"),
        rng.normal(size=(9, 300)).astype("f4"),
    )
    double, half, total = run(kernel, x, h, r)
    np.testing.assert_array_equal(double, x * 2)
    np.testing.assert_array_equal(half, h / 2)
    np.testing.assert_allclose(total, r.sum(1, keepdims=True), rtol=1e-4, atol=1e-5)


def test_parts_of_unknown_size_are_right() -> None:
    kernel = kernelgen.compile(two(sym("N"), sym("M")), "gpu")
    for n, m in ((1, 1), (300, 700), (1025, 3)):
        x, h, r = np.full(n, 3, "f4"), np.full((m, 5), 3, "f2"), np.ones((9, 300), "f4")
        double, half, _ = run(kernel, x, h, r)
        assert (double == 6).all()
        assert (half == 1.5).all()


def test_launches_that_wait_for_others_stay_behind_them() -> None:
    """The totals of both, then the products of both."""
    sums, products = launches(nest_of(chained()))
    assert isinstance(products.blocks, Num)
    assert (sums.blocks, products.blocks.value % 2) == (Num(1), 0)


def test_a_large_part_keeps_all_its_threads_busy() -> None:
    """Blocks of 256 threads would leave the others idle in the launch of a sum over rows of 512 threads."""
    assert [launch.threads[0] for launch in launches(nest_of(two(4_000_000)))] == [256, 512]


def test_a_block_of_two_parts_is_found() -> None:
    """Each part but the first starts one block too early, where its own number of the block is -1."""
    desc, nest = two(), nest_of(two())
    early = replace(nest, body=map_blocks(nest.body, lambda block: Block(tuple(map(_early, block.statements)))))
    arrays = [np.ones([int(str(dim)) for dim in t.shape], t.dtype.numpy) for t in (*desc.inputs, *desc.outputs)]
    try:
        with pytest.raises(CodegenError, match="out-of-bounds"):
            InterpretedEntry(emit(early), early)(tuple(arrays))
    except BackendUnavailable as error:
        pytest.skip(str(error))


def _early(part: Statement) -> Statement:
    return replace(part, conditions=tuple(map(_sooner, part.conditions))) if isinstance(part, If) else part


def _sooner(condition: Compare) -> Compare:
    start = condition.left
    is_start = condition.right == Var("bx") and isinstance(start, Num)
    return replace(condition, left=Num(start.value - 1)) if is_start and isinstance(start, Num) else condition


def separate(desc: KernelDesc, monkeypatch: pytest.MonkeyPatch) -> tuple[Launch, ...]:
    """The launches without the pass."""
    with monkeypatch.context() as patch:
        patch.setattr(stages, "side_by_side", lambda nest, device: nest)
        return launches(nest_of(desc))


def nest_of(desc: KernelDesc) -> Nest:
    return lower(desc, Plan(), "gpu").nest


def run(kernel: Kernel, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    try:
        return kernel(*arrays)
    except BackendUnavailable as error:
        pytest.skip(str(error))
