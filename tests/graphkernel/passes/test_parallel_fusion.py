from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from random_programs import programs

import graphkernel as gk
from graphkernel import ops
from graphkernel.cluster.parallel_cost import BLOCKS, Load, gain, load_of
from graphkernel.decisions import DecisionLog
from graphkernel.handoff import to_desc
from graphkernel.ops import Tensor
from graphkernel.options import Options
from graphkernel.passes.base import Context, Step, run_steps
from graphkernel.passes.parallel_fusion import LARGEST, parallel_fusion
from graphkernel.step_hooks import SameNumbers, Verify
from kernelgen.errors import BackendUnavailable
from kernelgen.tensor.graph import Graph


def joined(graph: Graph, flags: str = "--target=gpu") -> tuple[Graph, DecisionLog]:
    log = DecisionLog()
    context = Context(Options.parse(flags), log=log)
    after = parallel_fusion(graph, context)
    assert parallel_fusion(after, context) is after
    return after, log


def independent(*xs: Tensor) -> tuple[Tensor, ...]:
    return tuple(ops.tanh(x) * 2.0 for x in xs)


def sizes(graph: Graph) -> list[int]:
    """How many kernels each parallel kernel holds."""
    infos = (node.attrs.get("parallel_dim_info") for node in graph.operators)
    return sorted(len(info) for info in infos if isinstance(info, tuple))


@pytest.mark.parametrize(("count", "expected"), [(1, []), (2, [2]), (7, [7]), (8, [7]), (16, [2, 7, 7])])
def test_seven_kernels_at_most(count: int, expected: list[int]) -> None:
    assert LARGEST == 7
    graph = gk.optimize(gk.trace(independent, *[gk.spec((16,))] * count))
    assert sizes(joined(graph)[0]) == expected


def test_a_member_takes_256_blocks_at_most() -> None:
    wide, small = gk.spec((4096, 1024)), gk.spec((16,))
    graph = gk.optimize(gk.trace(independent, *[wide] * 6, small))
    after, log = joined(graph)
    assert sizes(after) == [7], "six times 256 blocks and one fit on 80 multiprocessors with 32 blocks each"
    assert "1537 blocks" in log.with_code("fused-parallel")[0].message
    assert load_of(graph.operators[0].body or graph) == Load(BLOCKS, 2 * 4096 * 1024 * 4 / 4096 * 16)


def test_launch_parameters_are_limited() -> None:
    def many(*xs: Tensor) -> tuple[Tensor, ...]:
        half = len(xs) // 2
        total, other = xs[0], xs[half]
        for x in xs[1:half]:
            total = total + x
        for x in xs[half + 1 :]:
            other = other * x
        return total, other

    graph = gk.optimize(gk.trace(many, *[gk.spec((4,))] * 512), flags="--composite_op_limit_size=1000")
    after, log = joined(graph)
    assert after is graph
    assert "514 parameters" in log.with_code("not-fused-parallel")[0].message


def test_several_reductions_in_one_kernel_have_a_load() -> None:
    def norms(x: Tensor) -> Tensor:
        return ops.reduce_sum(x, -1, keep_dims=True) * ops.reduce_max(x, -1, keep_dims=True)

    one = load_of(gk.trace(lambda x: ops.reduce_sum(x, -1), gk.spec((64, 32))))
    two = load_of(gk.trace(norms, gk.spec((64, 32))))
    assert one == Load(2, 64 * 4 / 2 + 10 * 4 * 1024)
    assert two == Load(2, 3 * 64 * 4 / 2 + 2 * 10 * 4 * 1024)


def test_gains_of_the_targets() -> None:
    loads = [Load(8, 100.0), Load(8, 300.0), Load(8, 200.0)]
    assert gain(loads) == 300.0
    assert gain([Load(2560, 1.0), Load(1, 1.0)]) == 0.0
    assert gain(loads, "ascend") == 1000.0
    assert gain([Load(1, 1e3), Load(1, 1e9)], "cpu") == 0.0
    assert load_of(gk.trace(lambda x: ops.exp(x), gk.spec(("N",)))) is None


def test_the_description_tells_groups_and_blocks() -> None:
    def net(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return ops.exp(x), ops.reduce_sum(y, -1), ops.exp(x) + 1.0

    graph, _ = joined(gk.optimize(gk.trace(net, gk.spec((2000,)), gk.spec((64, 32)))))
    (node,) = graph.operators
    desc = to_desc(node, "gpu")
    assert desc.parallel_fusion is not None
    assert desc.parallel_fusion.fusion_type == "block_fusion"
    assert sorted(len(group) for group in desc.parallel_fusion.sub_graph) == [1, 2]
    assert sorted(desc.parallel_fusion.core_num) == [2, 2]
    known = {tensor.name for tensor in desc.outputs}
    assert {name for group in desc.parallel_fusion.sub_graph for name in group} == known
    arrays = [np.linspace(-1, 1, 2000, dtype=np.float32), np.ones((64, 32), np.float32)]
    for got, want in zip(gk.compile(graph, opt_level=0)(*arrays), gk.evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


@given(program=programs())
def test_no_cycle_closes_and_numbers_stay(program: tuple[Graph, list[np.ndarray]]) -> None:
    graph, arrays = program
    options = Options.parse("--target=ascend --parallel_ops_level=1")
    pieces = gk.optimize(graph, flags="--composite_op_limit_size=1 --enable_fusion_pattern_only=bind_virtual_node")
    step = Step(parallel_fusion, "combine", 2, level=0, why="alone")
    after = run_steps(pieces, (step,), Context(options), (Verify(), SameNumbers(arrays)))
    assert gk.parse(str(after)) == after


def test_level_three_joins_on_a_gpu_and_on_a_cpu() -> None:
    graph = gk.trace(independent, gk.spec((16,)), gk.spec((16,)))
    assert sizes(gk.optimize(graph, opt_level=3, target="gpu")) == [2]
    assert sizes(gk.optimize(graph, opt_level=2, target="gpu")) == []
    assert sizes(gk.optimize(graph, opt_level=3, target="cpu")) == [2]
    assert sizes(gk.optimize(graph, opt_level=2, target="cpu")) == []
    assert sizes(gk.optimize(graph, target="cpu", flags="--enable_pass=combine.parallel_fusion")) == [2]


def sums(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return ops.exp(x), ops.reduce_sum(y, -1)


def columns(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return ops.reduce_sum(x, -1), ops.reduce_sum(y, 0)


def product(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return ops.exp(x @ x), ops.reduce_sum(y, 0)


@pytest.mark.parametrize(
    ("net", "x", "y"),
    [
        (sums, (32, 32), (16, 64)),
        (columns, (64, 512), (64, 64)),
        (columns, (64, 512), (40, 7)),
        (product, (64, 64), (64, 9)),
    ],
)
def test_one_node_is_one_launch_whatever_the_blocks_of_its_members(
    net: Callable[..., tuple[Tensor, ...]], x: tuple[int, ...], y: tuple[int, ...]
) -> None:
    graph = gk.trace(net, gk.spec(x), gk.spec(y))
    exe = gk.compile(graph, opt_level=3, target="gpu")
    assert (exe.report.kernel_calls, exe.report.launches) == (1, 1)
    assert "1 kernel call (1 launch, 1 distinct" in exe.report.summary
    arrays = [np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32) for shape in (x, y)]
    try:
        found = exe(*arrays)
    except BackendUnavailable as error:
        pytest.skip(str(error))
    for got, want in zip(found, gk.evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
