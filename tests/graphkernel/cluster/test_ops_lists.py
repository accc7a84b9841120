"""The lists hold at least what the documentation of MindSpore's flags names for each target."""

from __future__ import annotations

import pytest

from graphkernel.cluster.ops_lists import cluster_ops
from graphkernel.ops import OPS
from tests.support.sources import FACTS

SPELLED: dict[str, str] = {"ArgMax": "Argmax"}
TABLE = [line.split("\t") for line in (FACTS / "mindspore_clusters.tsv").read_text().splitlines()]


@pytest.mark.parametrize("target", ["Ascend", "CPU", "GPU"])
def test_default_lists_hold_the_documented_operators(target: str) -> None:
    column = TABLE[0].index(target)
    documented = {SPELLED.get(row[0], row[0]) for row in TABLE[1:] if row[column] == "Y"}
    assert documented - cluster_ops(target.lower(), 0 if target == "Ascend" else 1) == set()


def test_levels_add_operators() -> None:
    assert cluster_ops("ascend", 1) - cluster_ops("ascend", 0) == {"GroupedMatmul", "TransData"}
    assert cluster_ops("ascend", 2) - cluster_ops("ascend", 1) == {"TensorMove"}
    assert cluster_ops("gpu", 2) - cluster_ops("gpu", 1) == {"Argmax", "Argmin"}
    assert set().union(*(cluster_ops(target, 2) for target in ("cpu", "gpu", "ascend"))) <= set(OPS)
