"""Sums at places that data decides, by results: the same as by terms, where results are few; left alone where they are not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kernelgen.composite.description import KernelDesc
from kernelgen.nest.extents import extent
from kernelgen.nest.nodes import Grid
from kernelgen.plan import Plan
from kernelgen.poly.grouping.scatter_by_owner import MOST_RESULTS
from kernelgen.stages import lower
from kernelgen.tensor.dims import Dim, sym
from kernelgen.tensor.dtypes import FLOAT16, FLOAT32, INT32, DType
from kernelgen.verify.record import Status
from kernelgen.verify.verify_one import verify
from tests.support.kernel_examples import Writer, tensor


def segments(rows: Sequence[Dim], columns: Sequence[Dim], count: int, kind: DType = FLOAT32) -> KernelDesc:
    """Rows of data, added up by the number that each one has."""
    w, data, numbers = Writer(), tensor("x", *rows, *columns, dtype=kind), tensor("ids", *rows, dtype=INT32)
    y = w.op("UnsortedSegmentSum", data, numbers, shape=(count, *columns), num_segments=count)
    return w.desc("segments", (data, numbers), y)


def scattered(rows: int, columns: int, updates: int) -> KernelDesc:
    """Rows added to a matrix at places of their own."""
    w, x = Writer(), tensor("x", rows, columns)
    places, added = tensor("ids", updates, 1, dtype=INT32), tensor("u", updates, columns)
    y = w.op("TensorScatterAdd", x, places, added, shape=(rows, columns))
    return w.desc("scattered", (x, places, added), y)


def stages(desc: KernelDesc) -> str:
    return lower(desc, Plan(), "gpu").trail.texts["take_own_terms"]()


@pytest.mark.parametrize(
    "desc",
    [
        segments((40, 3), (5,), 17),
        segments((200,), (), 9, FLOAT16),
        segments((64,), (2, 8), 5, INT32),
        scattered(12, 7, 50),
    ],
    ids=["rows", "half", "integers", "scattered"],
)
def test_every_result_takes_its_own_terms(desc: KernelDesc) -> None:
    assert "_own < " in stages(desc)
    record = verify(desc, "gpu")
    assert record.status is Status.PASSED, record.message


def test_results_have_threads_of_their_own() -> None:
    """17 x 5 results, where terms of one column would follow each other in one thread."""
    nest = lower(segments((4000, 3), (5,), 17), Plan(), "gpu").nest
    grids = [part for part in nest.body.statements if isinstance(part, Grid)]
    assert max(extent(grid.blocks, {}) * grid.threads[0] * grid.threads[1] for grid in grids) >= 17 * 5 * 32


@pytest.mark.parametrize(
    "desc",
    [segments((40,), (5,), MOST_RESULTS), segments((sym("N"),), (sym("M"),), 17), segments((9,), (1 << 15,), 2)],
    ids=["many results", "unknown sizes", "long rows"],
)
def test_others_stay_as_they_are(desc: KernelDesc) -> None:
    assert "_own < " not in stages(desc)
