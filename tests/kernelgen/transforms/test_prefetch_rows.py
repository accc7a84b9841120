"""What a tile reads of an argument is asked for ahead, where some loops of it read memory and others compute."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, tensor

import kernelgen
from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.nest.nodes import Prefetch
from kernelgen.nest.walk import statements
from kernelgen.plan import CpuPlan, Plan
from kernelgen.stages import lower
from kernelgen.transforms.cpu.prefetching.rows import AHEAD_BYTES

SMALL = Plan(CpuPlan(tile_room=1))
COLUMNS = 40


def stencils(count: int) -> KernelDesc:
    """``x[i, j] + x[i + 2, j + 1]`` and its tanh, so often in turn, of 60 rows."""
    writer, given = Writer(), tensor("x", 60, COLUMNS)
    x = given
    for step in range(1, count + 1):
        x = stencil(writer, x, (60 - 2 * step, COLUMNS - step))
    return writer.desc("stencils", (given,), x)


def stencil(writer: Writer, x: Tensor, shape: tuple[int, int]) -> Tensor:
    rows, columns = shape
    first = writer.op("StridedSlice", x, shape=shape, begin=(0, 0), end=shape, strides=(1, 1))
    last = writer.op("StridedSlice", x, shape=shape, begin=(2, 1), end=(rows + 2, columns + 1), strides=(1, 1))
    return writer.op("Tanh", writer.op("Add", first, last, shape=shape), shape=shape)


def asked(desc: KernelDesc) -> list[Prefetch]:
    return [part for part in statements(lower(desc, SMALL).nest.body) if isinstance(part, Prefetch)]


def test_rows_of_arguments_are_asked_for_ahead() -> None:
    """Each row that is read has a hint of its own, at its element a little further on."""
    found = asked(stencils(2))
    assert {hint.buffer.name for hint in found} == {"x"}
    assert found
    ahead = AHEAD_BYTES // 4
    assert all(f"+ {ahead}" in str(hint) or str(ahead) in str(hint.place) for hint in found)
    assert len({hint.place for hint in found}) == len(found)


def test_where_there_is_one_loop_memory_is_busy_anyway() -> None:
    assert asked(stencils(1)) == []


@pytest.mark.parametrize(("rows", "arguments"), [(1 << 13, {"x"}), (64, set())])
def test_rows_between_large_arrays_are_asked_for_though_there_is_one_loop(rows: int, arguments: set[str]) -> None:
    """``x * w`` of 4 x ``rows`` x 128 elements, 16 MB; ``w`` is a row."""
    writer, x, w = Writer(), tensor("x", 4, rows, 128), tensor("w", 4, 1, 128)
    found = asked(writer.desc("scaled", (x, w), writer.op("Mul", x, w, shape=(4, rows, 128))))
    assert {hint.buffer.name for hint in found} == arguments


@pytest.mark.parametrize(
    ("function", "rows", "arguments"), [("Tanh", 1 << 14, {"x"}), ("Tanh", 64, set()), ("Neg", 1 << 14, {"x"})]
)
def test_rows_of_threads_are_asked_for_too(function: str, rows: int, arguments: set[str]) -> None:
    """Of 128 elements: 8 MB and 32 KB. Results are stored, as many as are read."""
    writer, x = Writer(), tensor("x", rows, 128)
    found = asked(writer.desc("mapped", (x,), writer.op(function, x, shape=(rows, 128))))
    assert {hint.buffer.name for hint in found} == arguments


@pytest.mark.parametrize("functions", [("Exp", "Log1p"), ("Neg",), ()])
def test_what_is_added_up_is_asked_for(functions: tuple[str, ...]) -> None:
    """Next to nothing is stored."""
    writer, x = Writer(), tensor("x", 1 << 21)
    value = x
    for function in functions:
        value = writer.op(function, value, shape=x.shape)
    found = asked(writer.desc("summed", (x,), writer.op("ReduceSum", value, shape=(1,), axis=(0,), keep_dims=True)))
    assert {hint.buffer.name for hint in found} == {"x"}


def test_rows_that_all_turns_read_again_are_not_asked_for() -> None:
    writer, x, w = Writer(), tensor("x", 1 << 14, 128), tensor("w", 128)
    total = writer.op("Add", x, w, shape=x.shape)
    assert {
        hint.buffer.name for hint in asked(writer.desc("moved", (x, w), writer.op("Tanh", total, shape=x.shape)))
    } == {"x"}


def test_asking_changes_no_result() -> None:
    desc = stencils(3)
    x = np.random.default_rng(0).standard_normal((60, COLUMNS)).astype(np.float32)
    (result,) = kernelgen.compile(desc, "cpu", SMALL)(x)
    np.testing.assert_allclose(result, kernelgen.reference(desc)(x)[0], rtol=1e-5, atol=1e-6)
