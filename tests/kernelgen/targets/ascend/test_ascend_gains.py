"""What two copies of tiles and shared memory gain by the time model, and that docs/ascend.md says so."""

from __future__ import annotations

import pytest

from docs import ascend_tables
from kernelgen.ascendc.types import UB
from kernelgen.machines.ascend.machines import ASCEND_910B


@pytest.fixture(scope="module")
def page() -> str:
    return (ascend_tables.ROOT / ascend_tables.PAGE).read_text()


def test_two_copies_gain_a_third_where_computing_would_hold_up_copies(page: str) -> None:
    gains = {name: single.cycles / double.cycles for name, (single, double) in ascend_tables.overlaps().items()}
    assert sum(gain >= 1.3 for gain in gains.values()) >= 3
    assert all(gain > 1.05 for gain in gains.values())
    for _, double in ascend_tables.overlaps().values():
        assert double.clean
        assert double.bound_by in ("GM bandwidth", "MTE2")
        assert sum(double.pipe_cycles().values()) > 1.3 * double.pipeline_cycles
    assert ascend_tables.overlap_table() in page
    drawn = ascend_tables.pages()[ascend_tables.PICTURE]
    assert (ascend_tables.ROOT / ascend_tables.PICTURE).read_text() == drawn, "run `make docs`"


def test_shared_memory_fits_what_does_not_fit_alone(page: str) -> None:
    room = ASCEND_910B.memories[UB]
    for _, alone, shared, without, cycles in ascend_tables.storages().values():
        assert int(alone.replace(",", "")) > room >= int(shared.replace(",", ""))
        assert float(without) > 1.1 * float(cycles)
    assert ascend_tables.storage_table() in page, "run `make docs`"
