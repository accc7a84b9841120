"""The lists hold at least what the documentation of MindSpore's flags names for each target."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphkernel.cluster.ops_lists import cluster_ops
from graphkernel.ops import OPS

TABLES = sorted((Path(__file__).parents[4] / "shared" / "seeds").glob("003_*.txt"))
SPELLED: dict[str, str] = {"ArgMax": "Argmax"}


def documented(column: int) -> set[str]:
    """The operators that the second table of the page marks with Y for a target."""
    text = TABLES[0].read_text().split("附录2")[-1].split("附录3")[0]
    rows = re.findall(r"^\|(\w+)\|([YN])\|([YN])\|([YN])\|$", text, re.MULTILINE)
    assert len(rows) > 50
    return {SPELLED.get(name) or name for name, *marks in rows if marks[column] == "Y"}


@pytest.mark.skipif(not TABLES, reason="the documentation is not here")
@pytest.mark.parametrize(("target", "column"), [("ascend", 0), ("cpu", 1), ("gpu", 2)])
def test_default_lists_hold_the_documented_operators(target: str, column: int) -> None:
    assert documented(column) - cluster_ops(target, 0 if target == "ascend" else 1) == set()


def test_levels_add_operators() -> None:
    assert {"MatMul", "BatchMatMul", "GroupedMatmul", "Reshape"} <= cluster_ops("ascend", 1) - cluster_ops("ascend", 0)
    assert cluster_ops("ascend", 2) - cluster_ops("ascend", 1) == {"TensorMove"}
    assert cluster_ops("gpu", 2) - cluster_ops("gpu", 1) == {"Argmax", "Argmin"}
    assert set().union(*(cluster_ops(target, 2) for target in ("cpu", "gpu", "ascend"))) <= set(OPS)
