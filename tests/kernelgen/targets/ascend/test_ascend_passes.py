"""The passes of a tile program, each on a few lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelgen.ascendc.builder import Tensor
from kernelgen.ascendc.expressions import Name, Number
from kernelgen.ascendc.instructions import AIV_ONLY, GlobalTensor, Kernel
from kernelgen.ascendc.printer import print_kernel
from kernelgen.errors import UnsupportedError
from kernelgen.machines.ascend.machines import ASCEND_910B
from kernelgen.targets.ascend.lower.lanes.casting import cast_path
from kernelgen.targets.ascend.lower.order.program_layout import Layout
from kernelgen.targets.ascend.lower.order.synchronise import synchronise
from kernelgen.targets.ascend.lower.program.copy_order import order_copies
from kernelgen.targets.ascend.lower.program.dead_tiles import without_unread
from kernelgen.targets.ascend.lower.program.double_buffer import double_buffer
from kernelgen.targets.ascend.lower.program.storage import ALL, ALONE, place
from kernelgen.targets.ascend.lower.program.writer import Program, Writer
from kernelgen.tensor.dtypes import FLOAT32, FLOAT64, INT8, INT32

GM = {name: GlobalTensor(f"{name}_gm", FLOAT32, f"{name}_p", Number(4096)) for name in ("x", "y", "z")}


def copy_in(writer: Writer, tile: Tensor, name: str, at: object = 0) -> None:
    source = Tensor(f"{name}_gm", FLOAT32)[at if isinstance(at, Name) else Number(0)]
    writer.emit("DataCopyPad", dst=tile, src=source, params=(1, 512, 0, 0, 0), padding=("false", 0, 0, 0))


def copy_out(writer: Writer, tile: Tensor, name: str) -> None:
    writer.emit("DataCopyPad", dst=Tensor(f"{name}_gm", FLOAT32), src=tile, params=(1, 512, 0, 0, 0))


def chain(writer: Writer) -> Program:
    """x -> exp -> y; z -> exp -> z, one after the other in a loop."""
    with writer.loop("k", 0, Name("turns")):
        for source, target in (("x", "y"), ("z", "z")):
            tile, power = (writer.tile(kind, FLOAT32, 128) for kind in ("in", "t"))
            copy_in(writer, tile, source)
            writer.emit("Exp", dst=power, src=tile, count=128)
            copy_out(writer, power, target)
    return Program(tuple(writer.tiles.values()), tuple(GM.values()), tuple(writer.blocks[0]))


def lines(program: Program) -> list[str]:
    """What the body does, a word a line."""
    text = print_kernel(Kernel("k", (), None, AIV_ONLY, program.body))
    return [line.strip().partition("(")[0] for line in text.splitlines()[5:-1]]


def test_loads_come_first_and_stores_last_but_none_passes_its_own_buffer() -> None:
    program = order_copies(chain(Writer()))
    assert [line for line in lines(program) if line in ("DataCopyPad", "Exp")] == [
        "DataCopyPad",
        "DataCopyPad",
        "Exp",
        "Exp",
        "DataCopyPad",
        "DataCopyPad",
    ]
    writer = Writer()
    tile = writer.tile("in", FLOAT32, 128)
    copy_out(writer, tile, "x")
    copy_in(writer, tile, "x")
    kept = Program(tuple(writer.tiles.values()), tuple(GM.values()), tuple(writer.blocks[0]))
    assert order_copies(kept).body == kept.body


def test_what_fills_tiles_for_nobody_is_gone_and_so_is_what_it_read() -> None:
    """In loops and branches too; a tile that is also joined with itself has a reader."""
    writer = Writer()
    tiles = [writer.tile(kind, FLOAT32, 128) for kind in ("in", "t", "t", "sum")]
    with writer.loop("k", 0, Name("turns")):
        copy_in(writer, tiles[0], "x")
        copy_out(writer, tiles[0], "y")
        writer.emit("Exp", dst=tiles[1], src=tiles[0], count=128)
        with writer.when(Name("k") >= 1):
            writer.emit("Exp", dst=tiles[2], src=tiles[1], count=128)
        writer.emit("Max", dst=tiles[3], first=tiles[3], second=tiles[0], count=128)
    program = Program(tuple(writer.tiles.values()), tuple(GM.values()), tuple(writer.blocks[0]))
    found = without_unread(program)
    assert [line for line in lines(found) if line in ("DataCopyPad", "Exp", "Max")] == [
        "DataCopyPad",
        "DataCopyPad",
        "Max",
    ]
    assert without_unread(found) is found


def test_copied_tiles_have_two_copies_and_the_turn_says_which() -> None:
    program = double_buffer(chain(Writer()))
    assert {tile.name: tile.copies for tile in program.tiles} == {"in_0": 2, "in_1": 2, "t_0": 2, "t_1": 2}
    assert "int32_t half_k_0 = k_0 % 2;" in print_kernel(Kernel("k", (), None, AIV_ONLY, program.body))


def test_storage_shares_memory_of_tiles_whose_lives_do_not_meet() -> None:
    program = chain(Writer())
    alone, shared = place(program, 1 << 20, (ALONE,)), place(program, 1024, (ALL,))
    assert alone is not None
    assert shared is not None
    assert (alone.size, shared.size) == (2048, 1024)
    assert place(program, 1024, (ALONE,)) is None


def test_flags_stand_between_pipes_and_before_the_next_turn() -> None:
    writer = Writer()
    with writer.loop("k", 0, 4):
        tile = writer.tile("in", FLOAT32, 128)
        copy_in(writer, tile, "x")
        writer.emit("Exp", dst=tile, src=tile, count=128)
    program = Program(tuple(writer.tiles.values()), tuple(GM.values()), tuple(writer.blocks[0]))
    layout = Layout(dict(writer.tiles), {"in_0": 0}, {tensor.name: tensor for tensor in GM.values()}, {})
    ordered = Program((), (), synchronise(program.body, layout, ASCEND_910B))
    assert lines(ordered) == [
        "SetFlag<HardEvent::V_MTE2>", "for ", "WaitFlag<HardEvent::V_MTE2>", "DataCopyPad", "SetFlag<HardEvent::MTE2_V>",
        "WaitFlag<HardEvent::MTE2_V>", "Exp", "SetFlag<HardEvent::V_MTE2>", "}", "WaitFlag<HardEvent::V_MTE2>",
    ]  # fmt: skip


def test_where_no_id_is_left_barriers_stand_in_the_loop_and_behind_it() -> None:
    writer = Writer()
    with writer.loop("k", 0, Name("turns")):
        tile, power = (writer.tile(kind, FLOAT32, 128) for kind in ("in", "t"))
        copy_in(writer, tile, "y")
        writer.emit("Exp", dst=power, src=tile, count=128)
        copy_out(writer, power, "y")
    copy_in(writer, writer.tile("last", FLOAT32, 128), "y")
    layout = Layout(
        dict(writer.tiles),
        {name: 512 * n for n, name in enumerate(writer.tiles)},
        {one.name: one for one in GM.values()},
        {},
    )
    ordered = Program((), (), synchronise(tuple(writer.blocks[0]), layout, replace(ASCEND_910B, event_ids=0)))
    everything = "PipeBarrier<PIPE_ALL>"
    assert lines(ordered) == [
        "for ", everything, "DataCopyPad", everything, "Exp", everything, "DataCopyPad", "}", everything, "DataCopyPad",
    ]  # fmt: skip


def test_casts_go_through_what_the_machine_has() -> None:
    assert [step.name for step, _ in cast_path(ASCEND_910B, INT8, FLOAT32)] == ["float16", "float32"]
    assert cast_path(ASCEND_910B, FLOAT32, INT32) == ((INT32, "CAST_TRUNC"),)
    with pytest.raises(UnsupportedError, match="no casts lead"):
        cast_path(ASCEND_910B, FLOAT32, FLOAT64)
