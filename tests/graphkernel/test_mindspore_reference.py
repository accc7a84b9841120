"""Against what MindSpore 2.10 makes of the same nets with the same flags: never more launches than it needs."""

from __future__ import annotations

import pytest
from fusion_nets import same_numbers
from mindspore_nets import FOLDER, Net, read

from graphkernel.ir.graph import Graph
from graphkernel.ir.verify import verify
from graphkernel.options import Options
from graphkernel.passes.base import run_steps
from graphkernel.pipeline import builtin_catalogue, steps_for

RECORDS = sorted(FOLDER.glob("*.json")) if FOLDER.is_dir() else []
needs_records = pytest.mark.skipif(not RECORDS, reason=f"no reference records in {FOLDER}")


def optimized(net: Net) -> Graph:
    options = Options.parse(net.flags)
    return run_steps(net.graph, steps_for(options), builtin_catalogue().context(options))


@needs_records
@pytest.mark.parametrize("path", RECORDS, ids=[path.stem for path in RECORDS])
def test_no_more_launches_than_mindspore(path) -> None:
    net = read(path)
    if isinstance(net, str):
        pytest.skip(net)
    result = optimized(net)
    verify(result)
    launches = [node for node in result.operators if node.op.name != "Reshape"]
    assert len(launches) <= len(net.kernels) + len(net.outside)
    if net.flags.startswith("--opt_level=1"):
        same_numbers(net.graph, result)


@needs_records
def test_most_records_can_be_built() -> None:
    nets = [net for path in RECORDS if isinstance(net := read(path), Net)]
    assert len(nets) >= 50
    fewer = [net for net in nets if len(optimized(net).operators) < len(net.kernels) + len(net.outside)]
    assert {net.graph.name for net in fewer} >= {
        "softmax_by_hand",
        "transpose_between",
        "reduce_sum_last",
        "compare_cast",
    }
