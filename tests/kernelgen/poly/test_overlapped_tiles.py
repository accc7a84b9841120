"""Stencils over tiles: what is computed twice, what is held of temporaries, that numbers stay, and that faults are seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_examples import Writer, constant, tensor

import kernelgen
from kernelgen import stages
from kernelgen.checker import check
from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.errors import ProofError
from kernelgen.nest.nodes import Alloc, Space, Store
from kernelgen.nest.walk import statements
from kernelgen.nest_stages import Stage
from kernelgen.plan import CpuPlan, Plan
from kernelgen.poly.build_scop import to_scop
from kernelgen.poly.grouping.overlapped_tiles import Fitting, Reading, Tile, fit_tiles
from kernelgen.poly.model.scop import Blocks, Scop, Statement
from kernelgen.stages import lower

SMALL = Plan(CpuPlan(tile_room=1))
"""Tiles wherever there are stencils, of as few rows as there may be."""

PITCH = 48
"""Elements from one row of a tile to the next where rows have 17 to 48: an odd number of lines of 16."""

Offsets = Sequence[tuple[int, int]]
CROSS: Offsets = ((0, 1), (1, 0), (1, 1), (1, 2), (2, 1))


@dataclass
class Picture:
    """A kernel that is written beside its meaning: descriptions of tensors with their float64 values."""

    values: dict[str, np.ndarray] = field(default_factory=dict)
    writer: Writer = field(default_factory=Writer)

    def input(self, *shape: int) -> Tensor:
        made = tensor("x", *shape)
        self.values["x"] = np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32).astype(float)
        return made

    def stencil(self, x: Tensor, offsets: Offsets, stride: int = 1) -> Tensor:
        """``tanh(sum of x[stride * i + a, stride * j + b])``: too dear to be computed where it is read."""
        high = [max(axis) for axis in zip(*offsets, strict=True)]
        *outer, rows, columns = self.values[x.name].shape
        shape = (*outer, (rows - high[0] - 1) // stride + 1, (columns - high[1] - 1) // stride + 1)
        parts = [self.shifted(x, shape, offset, stride) for offset in offsets]
        total = parts[0]
        for part in parts[1:]:
            total = self.op("Add", np.add, total, part)
        return self.tanh(total)

    def constant(self, value: float) -> Tensor:
        made = constant(value)
        self.values[made.name] = np.array(value)
        return made

    def tanh(self, x: Tensor) -> Tensor:
        return self.op("Tanh", np.tanh, x)

    def shifted(self, x: Tensor, shape: tuple[int, ...], offset: tuple[int, int], stride: int) -> Tensor:
        value, outer = self.values[x.name], len(shape) - 2
        begin = (*(0 for _ in range(outer)), *offset)
        ends = (b + stride * (e - 1) + 1 for b, e in zip(offset, shape[-2:], strict=True))
        end = (*shape[:outer], *ends)
        steps = (*(1 for _ in range(outer)), stride, stride)
        made = self.writer.op("StridedSlice", x, shape=shape, begin=begin, end=end, strides=steps)
        self.values[made.name] = value[tuple(slice(*part) for part in zip(begin, end, steps, strict=True))]
        return made

    def op(self, name: str, meaning: Callable[..., np.ndarray], *operands: Tensor) -> Tensor:
        value = meaning(*(self.values[each.name] for each in operands))
        made = self.writer.op(name, *operands, shape=value.shape)
        self.values[made.name] = value
        return made

    def square(self, x: Tensor) -> Tensor:
        """``x`` times its transpose."""
        value = self.values[x.name] @ self.values[x.name].T
        made = self.writer.op("MatMul", x, x, shape=value.shape, transpose_a=False, transpose_b=True)
        self.values[made.name] = value
        return made

    def row_sums(self, x: Tensor) -> Tensor:
        value = self.values[x.name].sum(0)
        made = self.writer.op("ReduceSum", x, shape=value.shape, axis=(0,))
        self.values[made.name] = value
        return made

    def desc(self, x: Tensor, *outputs: Tensor) -> KernelDesc:
        return self.writer.desc("stencils", (x,), *outputs)


def held(desc: KernelDesc, plan: Plan = SMALL) -> list[tuple[object, ...]]:
    """The shapes of what a kernel holds for a while; what lives as long as the kernel first."""
    nest = lower(desc, plan).nest
    whole = [buffer.shape for buffer in nest.buffers if buffer.space is Space.WORKSPACE]
    return [*whole, *(part.buffer.shape for part in statements(nest.body) if isinstance(part, Alloc))]


def agrees(picture: Picture, desc: KernelDesc, plan: Plan = SMALL) -> None:
    kernel = kernelgen.compile(desc, "cpu", plan)
    results = kernel(picture.values["x"].astype(np.float32))
    for result, output in zip(results, desc.outputs, strict=True):
        np.testing.assert_allclose(result, picture.values[output.name], rtol=1e-4, atol=1e-5)
    assert check(kernel.lowered.nest, desc).fault is None


def twice(rows: int = 43, columns: int = 21) -> tuple[Picture, KernelDesc]:
    picture = Picture()
    x = picture.input(rows, columns)
    return picture, picture.desc(x, picture.stencil(picture.stencil(x, CROSS), CROSS))


# ---------------------------------------------------------------- what is asked of whom


def test_a_window_widens_a_tile_and_a_stride_scales_it() -> None:
    tile = Tile(8, 0, 8)
    assert Reading(1, 0, 2).of(tile) == Tile(8, 0, 10)
    assert Reading(2, -1, 1).of(tile) == Tile(16, -1, 17)
    assert Reading(1, -1, 1).of(Reading(1, -1, 1).of(tile)) == Tile(8, -2, 12)


def test_who_is_asked_for_rows_that_move_differently_has_no_tile() -> None:
    assert Tile(8, 0, 10).with_(Tile(8, -2, 9)) == Tile(8, -2, 12)
    assert Tile(8, 0, 10).with_(Tile(16, 0, 16)) is None


# ---------------------------------------------------------------- kernels


def test_of_what_is_handed_on_a_tile_is_held() -> None:
    picture, desc = twice()
    assert held(desc) == [(10, PITCH)]
    agrees(picture, desc)


@pytest.mark.parametrize(("columns", "pitch"), [(5, 16), (18, 16), (19, 48), (50, 48), (51, 80), (2048, 2064)])
def test_rows_of_a_tile_begin_with_a_line_and_not_all_in_one_place_of_a_cache(columns: int, pitch: int) -> None:
    """The tile has two columns less than the picture: lines of 16 elements, an odd number of them."""
    assert held(twice(80, columns)[1]) == [(10, pitch)]


def test_without_tiles_all_of_it_is_held() -> None:
    _, desc = twice()
    assert held(desc, Plan(CpuPlan())) == [(41, 19)]


def test_a_chain_of_three_asks_the_first_for_most() -> None:
    picture = Picture()
    x = picture.input(70, 30)
    first = picture.stencil(x, CROSS)
    second = picture.stencil(first, CROSS)
    desc = picture.desc(x, picture.stencil(second, CROSS))
    assert sorted(held(desc), key=str) == [(10, PITCH), (12, PITCH)]
    agrees(picture, desc)


def test_what_leaves_the_kernel_is_stored_once_and_held_with_its_overlap() -> None:
    picture = Picture()
    x = picture.input(50, 20)
    first = picture.stencil(x, CROSS)
    desc = picture.desc(x, first, picture.stencil(first, CROSS))
    assert held(desc) == [(10, PITCH)]
    agrees(picture, desc)


def test_what_leaves_is_stored_where_it_is_computed_and_read_back_by_nobody() -> None:
    """The rows of a tile that no other tile has are stored twice at once, the rest of it for the tile alone."""
    picture = Picture()
    x = picture.input(43, 21)
    first = picture.stencil(x, CROSS)
    desc = picture.desc(x, first, picture.stencil(first, CROSS))
    nest = lower(desc, SMALL).nest
    (held,) = {part.buffer.name for part in statements(nest.body) if isinstance(part, Alloc)}
    copies = [
        part
        for part in statements(nest.body)
        if isinstance(part, Store) and getattr(part.value, "buffer", None) == held
    ]
    assert copies == []
    agrees(picture, desc)


def test_a_tile_behind_the_last_row_computes_nothing() -> None:
    """The first statement has 41 rows in six tiles, the last one 39 in five: its loop in the sixth ends before it begins."""
    picture = Picture()
    x = picture.input(43, 21)
    first = picture.stencil(x, CROSS)
    agrees(picture, picture.desc(x, first, picture.stencil(first, CROSS)))


@pytest.mark.parametrize("is_result", [True, False], ids=["beside a stencil", "alone"])
def test_what_a_product_reads_too_leaves_the_tiles(is_result: bool) -> None:
    """A product shares no loop with stencils: rows that it reads are stored once, like a result."""
    picture = Picture()
    x = picture.input(43, 21)
    first = picture.stencil(x, CROSS)
    second = picture.stencil(first, CROSS)
    of = first if is_result else second
    product = picture.square(of)
    results = (second, product) if is_result else (product,)
    agrees(picture, picture.desc(x, *results))


def test_rows_of_a_pyramid_are_counted_at_each_level() -> None:
    picture = Picture()
    x = picture.input(68, 36)
    half = picture.stencil(x, CROSS, stride=2)
    desc = picture.desc(x, half, picture.stencil(half, CROSS, stride=2))
    assert held(desc) == [(17, PITCH)]
    agrees(picture, desc)


def test_tiles_of_columns_stand_inside_a_loop_over_what_lies_outside() -> None:
    picture = Picture()
    x = picture.input(3, 43, 21)
    desc = picture.desc(x, picture.stencil(picture.stencil(x, CROSS), CROSS))
    assert held(desc) == [(10, PITCH)]
    agrees(picture, desc)


def test_what_fits_a_cache_stays_whole() -> None:
    assert held(twice()[1], Plan(CpuPlan(tile_room=41 * 19 * 4))) == [(41, 19)]


@pytest.mark.parametrize(("threads", "rows"), [(2, 12), (3, 15), (64, 10)])
def test_each_thread_has_as_many_tiles_where_there_are_rows_enough(threads: int, rows: int) -> None:
    picture, desc = twice()
    plan = Plan(CpuPlan(tile_room=1, threads=threads))
    assert held(desc, plan) == [(rows, PITCH)]
    agrees(picture, desc, plan)


def test_who_needs_all_rows_gets_them_all() -> None:
    picture = Picture()
    x = picture.input(43, 21)
    first = picture.stencil(x, CROSS)
    desc = picture.desc(x, picture.stencil(first, CROSS), picture.row_sums(first))
    agrees(picture, desc)


def test_windows_that_ask_for_most_rows_twice_have_no_tiles() -> None:
    picture = Picture()
    x = picture.input(90, 12)
    desc = picture.desc(x, picture.stencil(picture.stencil(x, CROSS), ((0, 0), (20, 0), (40, 0), (60, 0))))
    assert held(desc) == [(88, 10)]
    agrees(picture, desc)


@pytest.mark.parametrize(("target", "rows"), [("gpu", 1100), ("ascend", 260)])
def test_tiles_of_a_device_stay_beside_its_processors(target: str, rows: int) -> None:
    """As many as there are multiprocessors, or half as many as there are cores; the interpreter and the simulator agree."""
    picture, desc = twice(rows, 21)
    kernel = kernelgen.compile(desc, target)
    assert not any(buffer.space is Space.WORKSPACE for buffer in kernel.lowered.nest.buffers)
    (result,) = kernel(picture.values["x"].astype(np.float32))
    np.testing.assert_allclose(result, picture.values[desc.outputs[0].name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fitting", [Fitting(1, 1), Fitting(1 << 20, 99)], ids=["no room", "too few"])
def test_who_has_no_tiles_that_fit_keeps_all_of_it(fitting: Fitting) -> None:
    _, desc = twice(90)
    scop = to_scop(desc)
    assert fit_tiles(scop, fitting) is scop
    assert fit_tiles(scop, Fitting(1 << 20, 8)) is not scop


def test_a_step_in_time_is_one_statement_whatever_earlier_step_it_reads() -> None:
    """The half of a picture is computed where it is read, so that who reads it waits for the picture alone."""
    picture = Picture()
    x = picture.input(60, 40)
    half = picture.op("Mul", np.multiply, x, picture.constant(0.5))
    inner = picture.shifted(half, (58, 38), (1, 1), 1)
    now = picture.op("Add", np.add, picture.stencil(x, CROSS), inner)
    desc = picture.desc(x, picture.stencil(now, CROSS))
    assert held(desc) == [(10, PITCH)]
    agrees(picture, desc)


@pytest.mark.parametrize("stride", [1, 2])
def test_who_pools_squares_computes_what_they_hold_once(stride: int) -> None:
    """Squares that overlap would compute it more often than it is stored; those that do not, need no memory."""
    picture = Picture()
    x = picture.input(66, 40)
    made = picture.stencil(x, CROSS)
    pooled = picture.stencil(made, ((0, 0), (0, 1), (1, 0), (1, 1)), stride=stride)
    desc = picture.desc(x, pooled)
    assert len(held(desc)) == (stride == 1)
    agrees(picture, desc)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_chain_gives_the_numbers(data: st.DataObject) -> None:
    offset = st.tuples(st.integers(0, 3), st.integers(0, 3))
    picture = Picture()
    x = picture.input(*data.draw(st.sampled_from([(40, 33), (97, 20), (2, 45, 24)])))
    made = [x]
    for _ in range(data.draw(st.integers(2, 4))):
        source = data.draw(st.sampled_from(made))
        if min(picture.values[source.name].shape[-2:]) < 9:
            continue
        offsets = data.draw(st.lists(offset, min_size=1, max_size=4, unique=True))
        made.append(picture.stencil(source, offsets, data.draw(st.sampled_from([1, 1, 2]))))
    last = [each for each in made[1:] if data.draw(st.booleans())]
    agrees(picture, picture.desc(x, *dict.fromkeys((*last, made[-1]))))


# ---------------------------------------------------------------- planted faults


def _with_blocks(scop: Scop, change: Callable[[Blocks], Blocks]) -> Scop:
    def one(statement: Statement) -> Statement:
        its = tuple(it if it.blocks is None else replace(it, blocks=change(it.blocks)) for it in statement.iterators)
        return replace(statement, iterators=its)

    return replace(scop, statements=tuple(map(one, scop.statements)))


def a_row_too_few(scop: Scop) -> Scop:
    return _with_blocks(scop, lambda b: b if b.overlapping is None else replace(b, length=b.length - 1))


def a_row_too_late(scop: Scop) -> Scop:
    def late(blocks: Blocks) -> Blocks:
        step, start = blocks.overlapping or (0, 0)
        return blocks if blocks.overlapping is None else replace(blocks, overlapping=(step, start + 1))

    return _with_blocks(scop, late)


def a_tile_too_few(scop: Scop) -> Scop:
    def one(statement: Statement) -> Statement:
        its = tuple(replace(it, extent=it.extent - 1) if it.blocks else it for it in statement.iterators)
        return replace(statement, iterators=its)

    return replace(scop, statements=tuple(map(one, scop.statements)))


def results_first(scop: Scop) -> Scop:
    return replace(scop, statements=scop.statements[::-1])


@pytest.mark.parametrize("fault", [a_row_too_few, a_row_too_late, a_tile_too_few, results_first])
def test_faults_are_rejected(fault: Callable[[Scop], Scop], monkeypatch: pytest.MonkeyPatch) -> None:
    _, desc = twice()
    monkeypatch.setattr(stages, "SCOP_STAGES", (*stages.SCOP_STAGES, Stage(fault, "planted")))
    try:
        nest = lower(desc, SMALL).nest
    except ProofError:
        return
    assert check(nest, desc).fault is not None


def test_the_proof_alone_sees_a_row_that_no_tile_has_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "SCOP_STAGES", (*stages.SCOP_STAGES, Stage(a_row_too_few, "planted")))
    with pytest.raises(ProofError, match="written"):
        lower(twice()[1], SMALL)
