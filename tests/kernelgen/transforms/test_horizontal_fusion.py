"""Independent launches as one: what is joined, what is not, and that the blocks of each part are its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from kernel_examples import Writer, constant, tensor

import kernelgen
from kernelgen import nest_stages
from kernelgen.composite.description import KernelDesc, ParallelFusion, Tensor
from kernelgen.errors import BackendUnavailable, CodegenError, ProofError
from kernelgen.kernel import Kernel
from kernelgen.nest.nodes import Block, Compare, If, Nest, Num, Statement, Var
from kernelgen.nest.verify import verify
from kernelgen.nest.walk import map_blocks
from kernelgen.plan import Plan
from kernelgen.poly.proof.races import prove_races
from kernelgen.stages import lower
from kernelgen.targets.gpu.dialects.program import Launch, launches
from kernelgen.targets.gpu.launch.interpret import InterpretedEntry
from kernelgen.targets.gpu.target import emit
from kernelgen.tensor.dims import Dim, sym
from kernelgen.tensor.dtypes import FLOAT16, FLOAT32, DType


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


Member = Callable[[Writer], tuple[tuple[Tensor, ...], Tensor]]


def doubled(w: Writer) -> tuple[tuple[Tensor, ...], Tensor]:
    x = tensor("d", 700)
    return (x,), w.op("Mul", x, constant(2.0), shape=(700,))


def of_rows(rows: int, columns: int) -> Member:
    def member(w: Writer) -> tuple[tuple[Tensor, ...], Tensor]:
        x = tensor(f"rows{columns}", rows, columns)
        return (x,), w.op("ReduceSum", x, shape=(rows, 1), axis=(1,), keep_dims=True)

    return member


def of_columns(w: Writer) -> tuple[tuple[Tensor, ...], Tensor]:
    x = tensor("c", 100, 70)
    return (x,), w.op("ReduceSum", x, shape=(1, 70), axis=(0,), keep_dims=True)


def turned(w: Writer) -> tuple[tuple[Tensor, ...], Tensor]:
    x = tensor("t", 40, 50)
    return (x,), w.op("Transpose", x, shape=(50, 40), perm=(1, 0))


def multiplied(kind: DType) -> Member:
    def member(w: Writer) -> tuple[tuple[Tensor, ...], Tensor]:
        a, b = tensor(f"a{kind.name}", 40, 48, dtype=kind), tensor(f"b{kind.name}", 48, 56, dtype=kind)
        return (a, b), w.op("Tanh", w.op("MatMul", a, b, shape=(40, 56)), shape=(40, 56))

    return member


MEMBERS: dict[str, Member] = {
    "doubled": doubled, "rows of 5": of_rows(40, 5), "rows of 20": of_rows(33, 20), "rows of 64": of_rows(16, 64),
    "rows of 3000": of_rows(5, 3000), "columns": of_columns, "turned": turned,
    "half products": multiplied(FLOAT16), "products": multiplied(FLOAT32),
}  # fmt: skip


def together(*names: str) -> KernelDesc:
    """Members in one kernel that is to be one launch."""
    w = Writer()
    made = [MEMBERS[name](w) for name in names]
    desc = w.desc("together", tuple(x for inputs, _ in made for x in inputs), *(output for _, output in made))
    groups = tuple((output.name,) for _, output in made)
    return replace(desc, parallel_fusion=ParallelFusion("block_fusion", groups, (1,) * len(groups)))


@pytest.mark.parametrize(
    "pair", [*combinations(MEMBERS, 2), tuple(MEMBERS)[:7], ("columns", "turned", "half products")]
)
def test_members_of_unlike_blocks_are_one_launch_and_right(pair: tuple[str, ...]) -> None:
    desc = together(*pair)
    kernel = kernelgen.compile(desc, "gpu")
    verify(kernel.nest)
    assert kernel.launches == 1
    assert kernel.proof.about("races") or kernel.proof.about("meeting") or "doubled" in pair
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(-1, 1, [int(str(d)) for d in t.shape]).astype(t.dtype.numpy) for t in desc.inputs]
    expected = kernelgen.reference(desc)(*inputs)
    for found, wanted, of in zip(run(kernel, *inputs), expected, desc.outputs, strict=True):
        exact = 2e-2 if of.dtype is FLOAT16 else 1e-4
        np.testing.assert_allclose(found.astype("f4"), wanted.astype("f4"), rtol=exact, atol=exact)


def test_members_whose_idle_threads_would_fill_the_device_stay_apart() -> None:
    w = Writer()
    made = [of_rows(200_000, 64)(w), of_rows(16, 4000)(w)]
    desc = w.desc("large", tuple(x for inputs, _ in made for x in inputs), *(output for _, output in made))
    desc = replace(desc, parallel_fusion=ParallelFusion("block_fusion", tuple((o.name,) for _, o in made), (1, 1)))
    assert kernelgen.compile(desc, "gpu").launches == 2


def test_an_idle_thread_that_stores_is_found() -> None:
    """Without the conditions that keep others from storing, two threads write the partial results of a warp."""
    nest = nest_of(together("rows of 3000", "rows of 64"))
    body = map_blocks(nest.body, lambda block: Block(tuple(map(_unguarded, block.statements))))
    with pytest.raises(ProofError, match=r"races.*two threads of one block"):
        prove_races(replace(nest, body=body))


def _unguarded(part: Statement) -> Statement:
    own = (Compare("<", Var("tx"), Num(64)),)
    return part.body if isinstance(part, If) and part.conditions == own else part


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
        patch.setattr(nest_stages, "side_by_side", lambda nest, device: nest)
        return launches(nest_of(desc))


def nest_of(desc: KernelDesc) -> Nest:
    return lower(desc, Plan(), "gpu").nest


def run(kernel: Kernel, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    try:
        return kernel(*arrays)
    except BackendUnavailable as error:
        pytest.skip(str(error))
