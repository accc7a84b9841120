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
from kernelgen.transforms.cpu.prefetch_rows import AHEAD_BYTES

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


def test_rows_of_arguments_are_asked_for_a_page_ahead() -> None:
    """Each row that is read has a hint of its own, at its element a page further on."""
    found = asked(stencils(2))
    assert {hint.buffer.name for hint in found} == {"x"}
    assert found
    assert all(f"+ {AHEAD_BYTES // 4}" in str(hint) or str(AHEAD_BYTES // 4) in str(hint.place) for hint in found)
    assert len({hint.place for hint in found}) == len(found)


def test_where_there_is_one_loop_memory_is_busy_anyway() -> None:
    assert asked(stencils(1)) == []


@pytest.mark.parametrize(("rows", "arguments"), [(1 << 13, {"x"}), (64, set())])
def test_rows_between_large_arrays_are_asked_for_though_there_is_one_loop(rows: int, arguments: set[str]) -> None:
    """``x * w`` of 4 x ``rows`` x 128 elements, 16 MB; ``w`` is a row."""
    writer, x, w = Writer(), tensor("x", 4, rows, 128), tensor("w", 4, 1, 128)
    found = asked(writer.desc("scaled", (x, w), writer.op("Mul", x, w, shape=(4, rows, 128))))
    assert {hint.buffer.name for hint in found} == arguments


def test_asking_changes_no_result() -> None:
    desc = stencils(3)
    x = np.random.default_rng(0).standard_normal((60, COLUMNS)).astype(np.float32)
    (result,) = kernelgen.compile(desc, "cpu", SMALL)(x)
    np.testing.assert_allclose(result, kernelgen.reference(desc)(x)[0], rtol=1e-5, atol=1e-6)
