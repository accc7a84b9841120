"""Passes of a tile program that need no kernel: banks, bindings written out, turns, and who must come after whom."""

from __future__ import annotations

import pytest
from kernel_examples import softmax

from kernelgen.ascendc.builder import Tensor
from kernelgen.ascendc.expressions import BLOCK_INDEX, Expression, Field, Name, Number, ceil_div, smaller
from kernelgen.ascendc.instructions import For, Statement
from kernelgen.driver import compile
from kernelgen.simulators.ascendc.order.global_memory import rivals
from kernelgen.simulators.ascendc.state.byte_regions import Region, region
from kernelgen.targets.ascend.lower.program.bank_alignment import HALF_PERIOD, PERIOD, halves
from kernelgen.targets.ascend.lower.program.loop_facts import least, mixed_buffers, sure_loops, turns_of
from kernelgen.targets.ascend.lower.program.storage import ALONE, place
from kernelgen.targets.ascend.lower.program.writer import Program, Writer
from kernelgen.tensor.dims import sym
from kernelgen.tensor.dtypes import FLOAT32, INT32

ROWS = Field("tiling", "rows")


def addition() -> Program:
    """z = x + y on tiles of 4096 bytes."""
    writer = Writer()
    x, y, z = (writer.tile(name, FLOAT32, 1024) for name in ("x", "y", "z"))
    writer.emit("Add", dst=z, first=x, second=y, count=1024)
    return Program(tuple(writer.tiles.values()), (), tuple(writer.blocks[0]))


def test_sources_of_one_instruction_begin_in_different_halves_of_the_banks() -> None:
    assert halves(addition()) == {"x_0": 0, "y_0": HALF_PERIOD}
    layout = place(addition(), 1 << 20, (ALONE,))
    assert layout is not None
    assert (layout.addresses["x_0"] - layout.addresses["y_0"]) % PERIOD == HALF_PERIOD


def test_banks_yield_where_memory_is_short() -> None:
    layout = place(addition(), 3 * 4096, (ALONE,))
    assert layout is not None
    assert layout.size == 3 * 4096


def copies(*offsets: tuple[str, Expression]) -> tuple[Statement, ...]:
    """A loop of copies, each from or to x at an offset of ``k``."""
    writer = Writer()
    tile, x = writer.tile("t", FLOAT32, 8), Tensor("x", FLOAT32)
    for way, offset in offsets:
        with writer.loop("k", 0, ceil_div(ROWS, 8)) as k:
            at = writer.let("at", INT32, k * 8 + offset)
            if way == "load":
                writer.emit("DataCopy", dst=tile, src=x[at], count=8)
            else:
                writer.emit("DataCopy", dst=x[at], src=tile, count=8)
    return tuple(writer.blocks[0])


def test_offsets_of_loops_that_run_alike_are_alike() -> None:
    zero, one = Number(0), Number(1)
    assert not mixed_buffers(copies(("load", zero), ("store", zero)), ("x",))
    assert mixed_buffers(copies(("load", zero), ("store", one)), ("x",)) == {"x"}
    assert not mixed_buffers(copies(("load", zero), ("load", one)), ("x",))


def test_loops_of_different_depth_are_not_alike() -> None:
    writer = Writer()
    tile, x = writer.tile("t", FLOAT32, 8), Tensor("x", FLOAT32)
    with writer.loop("i", 0, 8) as i, writer.loop("j", 0, 8) as j:
        writer.emit("DataCopy", dst=tile, src=x[i * 64 + j * 8], count=8)
        writer.emit("DataCopy", dst=x[j * 64 + i * 8], src=tile, count=8)
    assert mixed_buffers(tuple(writer.blocks[0]), ("x",)) == {"x"}


def test_a_loop_over_a_size_has_a_turn_and_one_that_is_dealt_may_have_none() -> None:
    assert sure_loops(copies(("load", Number(0)))) == {"k_0"}
    dealt = For("b", BLOCK_INDEX, ROWS, Number(1), ())
    guarded = For("i", Number(0), ROWS - 1, Number(1), ())
    assert not sure_loops((dealt, guarded))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (ceil_div(ROWS, 2048), 1),
        (ROWS * 3 + 2, 5),
        (smaller(ROWS, 8), 1),
        (ROWS - 1, 0),
        (Number(8) - ROWS, None),
        (Name("k"), None),
    ],
)
def test_least_value_where_sizes_are_one_at_least(expression: Expression, value: int | None) -> None:
    assert least(expression) == value


def test_turns_that_are_known() -> None:
    assert turns_of(For("k", Number(1), Number(8), Number(3), ())) == 3
    assert turns_of(For("k", Number(0), ROWS, Number(1), ())) is None


def test_rows_of_an_open_length_are_loaded_while_others_are_stored() -> None:
    text = compile(softmax(sym("M"), sym("N")), "ascend").source
    assert "MTE3_MTE2>(0);\n            DataCopyPad" not in text


@pytest.mark.parametrize(
    ("second", "meet"),
    [
        (region(16, (), 16), True),
        (region(32, (), 16), False),
        (region(0, ((4, 64),), 16), True),
        (region(16, ((4, 64),), 16), True),
        (region(40, ((4, 64),), 16), False),
    ],
)
def test_regions_meet_where_they_share_a_byte(second: Region, meet: bool) -> None:
    first = region(0, ((2, 64),), 32)
    assert first.meets(second) == second.meets(first) == meet


def test_the_latest_access_of_a_pipe_stands_for_its_earlier_ones() -> None:
    whole, low, high = region(0, (), 64), region(0, (), 32), region(32, (), 32)
    one, other = (0, 1), (0, 2)
    touched = [(low, True, one), (low, True, one), (high, False, other), (whole, False, other), (low, True, one)]
    assert set(rivals(touched)) == {(0, 1), (1, 3), (1, 4), (3, 4)}
