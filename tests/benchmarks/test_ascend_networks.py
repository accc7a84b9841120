"""The command for networks on Ascend runs at small size: every kernel passes in the simulator, and the record says so."""

from __future__ import annotations

import pytest

from benchmarks import ascend_networks


@pytest.mark.parametrize("name", ascend_networks.TINY)
def test_every_kernel_of_a_network_passes(name: str) -> None:
    record = ascend_networks.run((name,), tiny=True)[name]
    assert record["passed"] == record["kernels"] == len(record["rows"]) > 5
    assert record["kernel_calls"] >= record["kernels"]
    assert not any(row["scaled"] for row in record["rows"])
    assert all(row["estimated_microseconds"] > 0 for row in record["rows"])
