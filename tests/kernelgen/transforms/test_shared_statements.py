"""One statement object may stand at two places of a nest: passes tell the places apart."""

from __future__ import annotations

from nests import I, J, block, buffer, call, loop, output

from kernelgen.machines.gpu.device import HOPPER
from kernelgen.nest.neutral import neutral_element
from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    Block,
    Buffer,
    For,
    Grid,
    Load,
    LoopKind,
    Nest,
    Num,
    Space,
    Store,
    Var,
)
from kernelgen.nest.walk import located, statements
from kernelgen.tensor.dtypes import FLOAT32
from kernelgen.transforms.common.reuse_output_storage import share
from kernelgen.transforms.gpu.cache_rows import rows
from kernelgen.transforms.gpu.split_column_reduction import sliced

X, Y = buffer("x", 64, 512), output("y", 64, 512)
E = buffer("e", 64, 512, space=Space.WORKSPACE)
TOTAL = output("total", 64)
ELEMENT = Load(X, (I, J))


def test_a_statement_has_as_many_places_as_it_stands_at() -> None:
    store = Store(Y, (I, J), ELEMENT)
    body = block(loop(I, 64, loop(J, 512, store), loop(J, 512, store)))
    assert list(located(body)) == [((0, 0, 0), store), ((0, 1, 0), store)]


def test_a_temporary_that_one_statement_reads_before_and_behind_the_output_is_no_part_of_it() -> None:
    reads = Accumulate(TOTAL, (I,), "add", Load(E, (I, J)))
    body = loop(
        I,
        64,
        loop(J, 512, Store(E, (I, J), ELEMENT)),
        loop(J, 512, reads, Store(Y, (I, J), ELEMENT)),
        loop(J, 512, reads),
    )
    before = Nest("case", (), (X, Y, TOTAL, E), block(body))
    assert share(before) == before


def test_a_thread_loop_that_stands_twice_fills_a_row_and_keeps_the_output() -> None:
    total = Buffer("m", FLOAT32, (), Space.LOCAL)
    writes = threads(Store(Y, (I, J), call("exp", ELEMENT)))
    reads = threads(Accumulate(total, (), "add", Load(Y, (I, J))))
    body = block(For("i", Num(0), Num(64), block(Alloc(total), writes, reads, writes), LoopKind.BLOCK))
    after = rows(Nest("case", (), (X, Y), block(Grid("case_0", Num(1), (128, 1), body))), HOPPER)
    stored = [part.buffer.name for part in statements(after.body) if isinstance(part, Store)]
    loaded = [part.value for part in statements(after.body) if isinstance(part, Accumulate)]
    assert stored == ["y_row0", "y"]
    assert [value.buffer.name for value in loaded if isinstance(value, Load)] == ["y_row0"]


def threads(*parts: Store | Accumulate) -> For:
    return For("j", Num(0), Num(512), Block(parts), LoopKind.THREAD, threads=128)


def test_rows_of_threads_share_no_sum_that_one_loop_adds_to_twice() -> None:
    total = Buffer("p", FLOAT32, (), Space.PRIVATE)
    terms = For("k", Num(0), Num(4096), block(Accumulate(total, (), "add", Load(buffer("c", 4096, 64), (Var("k"), I)))))

    def grid(*loops: For) -> Grid:
        start, end = Store(total, (), neutral_element("add", FLOAT32)), Store(TOTAL, (I,), Load(total, ()))
        body = block(Alloc(total), start, *loops, end)
        return Grid("case_0", Num(1), (1, 1), block(For("i", Num(0), Num(64), body, LoopKind.BLOCK)))

    assert sliced(grid(terms), HOPPER) is not None
    assert sliced(grid(terms, terms), HOPPER) is None
