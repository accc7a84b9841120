"""What a row computes once moves to its columns where that is cheap, and stays where it is not, or where others need it."""

from __future__ import annotations

from kernelgen.composite.description import KernelDesc
from kernelgen.nest.nodes import Grid, Nest, Num, Space
from kernelgen.plan import Plan
from kernelgen.stages import lower
from kernelgen.transforms.gpu.sink_row_values import sink
from kernelgen.verify.record import Status
from kernelgen.verify.verify_one import verify
from tests.support.kernel_examples import Writer, constant, tensor


def clipped(function: str = "Mul", *, shows_rows: bool = False) -> KernelDesc:
    """``y = min(x, f(a, 7))`` with a number for each row, which may be an output too."""
    writer, x, a = Writer(), tensor("x", 6, 5000), tensor("a", 6, 1)
    row = writer.op(function, a, constant(7.0), shape=(6, 1))
    row = writer.op("Minimum", row, constant(40.0), shape=(6, 1))
    y = writer.op("Minimum", x, row, shape=(6, 5000))
    return writer.desc("clipped", (x, a), y, *((row,) if shows_rows else ()))


def grids(desc: KernelDesc) -> list[Grid]:
    return [part for part in nest_of(desc).body.statements if isinstance(part, Grid)]


def nest_of(desc: KernelDesc) -> Nest:
    return lower(desc, Plan(), "gpu").nest


def test_columns_have_threads_of_their_own() -> None:
    (grid,) = grids(clipped())
    assert (grid.blocks, grid.threads) == (Num(118), (256, 1))
    assert not [b for b in nest_of(clipped()).buffers if b.space is Space.WORKSPACE]


def test_the_result_is_the_same() -> None:
    for desc in (clipped(), clipped("Pow"), clipped(shows_rows=True)):
        record = verify(desc, "gpu")
        assert record.status is Status.PASSED, record.message


def test_what_costs_more_or_is_an_output_stays() -> None:
    """A block then computes it once for all columns of its row."""
    for desc in (clipped("Pow"), clipped(shows_rows=True)):
        assert all(grid.threads[0] > 1 for grid in grids(desc))


def test_nests_without_such_loops_stay_as_they_are() -> None:
    nest = nest_of(clipped())
    assert sink(nest) == nest
