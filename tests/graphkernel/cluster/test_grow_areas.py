import gc
from weakref import ref

import pytest
from fusion_nets import PATTERNS, layer_norm, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkernel import ops
from graphkernel.cluster.area import Area, Direction, Mode, fusion
from graphkernel.cluster.cost import byte_size, figures, human, traffic_saved
from graphkernel.cluster.grow_areas import grow
from graphkernel.cluster.partition import Partition
from graphkernel.cluster.split_models import Limits
from graphkernel.decisions import DecisionLog
from graphkernel.frontends.trace import spec, trace
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.elemwise import EXP

LIMITS = Limits()


@fusion(Direction.FORWARD)
def everything(area, limits):
    """All producers."""
    return [link.area for link in area.inputs]


def holds(area: Area, operator: str) -> bool:
    return [node.op.name for node in area.nodes] == [operator]


def diamond(x):
    a = ops.exp(x)
    return ops.add(ops.neg(a), ops.tanh(a))


def grown(graph: Graph, *patterns, limits: Limits = LIMITS, disabled=()) -> tuple[list[list[str]], DecisionLog]:
    growth = grow(graph, patterns, limits)
    return [[node.op.name for node in area.nodes] for area in growth.areas], growth.decisions(disabled)


def test_a_pattern_sees_kind_size_and_links() -> None:
    def net(x, bias):
        return ops.reduce_sum(ops.exp(x + bias), axis=-1, keep_dims=True)

    partition = Partition(trace(net, spec((4, 8)), spec((8,))))
    add, exp, total = partition.areas
    assert [area.kind for area in (add, exp, total)] == [Kind.BROADCAST, Kind.ELEMWISE, Kind.REDUCE]
    assert [area.elements for area in (add, exp, total)] == [32, 32, 4]
    assert [link.area for link in exp.inputs] == [add]
    assert [link.area for link in exp.users] == [total]
    assert add.has_one_user
    assert not total.has_one_user
    assert total.is_output
    assert str(total.space) == "4 | *8"
    assert [value.node.name for value in add.reads] == ["x"], "bias is broadcast, not read element by element"


def test_merging_joins_links_and_takes_the_greater_kind() -> None:
    partition = Partition(trace(layer_norm, spec((4, 8)), spec((8,)), spec((8,))))
    first, second, third, *_ = partition.areas
    merged = partition.merge([second, third])
    assert [node.op.name for node in merged.nodes] == ["RealDiv", "Sub"]
    assert merged.kind is Kind.BROADCAST
    assert merged.elements == 32
    assert [link.area.number for link in first.users] == [merged.number]
    assert {str(space) for link in merged.inputs for space in link.spreads} == set()


def test_a_cycle_is_refused_and_said() -> None:
    def net(x):
        a = ops.exp(x)
        return ops.add(ops.cum_sum(a, axis=0), a)

    @fusion(Direction.FORWARD)
    def over_the_host(area, limits):
        """Exp into Add, around CumSum."""
        return [link.area for link in area.inputs if holds(area, "Add") and holds(link.area, "Exp")]

    found, log = grown(trace(net, spec((4, 4))), over_the_host)
    assert found == [["Exp"], ["CumSum"], ["Add"]]
    assert [d.other for d in log.with_code("not-fused-cycle")] == ["t2"]


def test_the_size_limit_holds() -> None:
    def chain(x):
        for _ in range(10):
            x = ops.neg(x)
        return x

    found, log = grown(trace(chain, spec((4,))), everything, limits=Limits(composite_op_limit_size=4))
    assert max(map(len, found)) == 4
    assert sum(map(len, found)) == 10
    assert len(log.with_code("not-fused-limit")) == len(found) - 1


def test_rounds_go_on_until_nothing_merges() -> None:
    """The first pattern fits only after the second has merged."""

    @fusion(Direction.FORWARD)
    def only_pairs(area, limits):
        """An area of two takes its producers."""
        return [link.area for link in area.inputs] if area.size == 2 else ()

    @fusion(Direction.FORWARD)
    def only_add(area, limits):
        """Add takes one producer."""
        return [link.area for link in area.inputs][:1] if holds(area, "Add") else ()

    found, _ = grown(trace(diamond, spec((4,))), only_pairs, only_add)
    assert found == [["Exp"], ["Neg", "Tanh", "Add"]]


def test_whole_means_all_or_none() -> None:
    @fusion(Direction.BACKWARD, whole=True)
    def into_all_users(area, limits):
        """Into all users."""
        return [link.area for link in area.users]

    limits = Limits(composite_op_limit_size=2)
    found, log = grown(trace(diamond, spec((4,))), into_all_users, limits=limits)
    assert ["Exp"] in found
    assert log.with_code("not-fused-limit")


def test_every_dependence_left_has_a_reason() -> None:
    found, log = grown(trace(diamond, spec((4,))))
    assert len(found) == 4
    assert [(d.subject, d.other, d.code) for d in log] == [
        ("t0", "t1", "not-fused-pattern"),
        ("t0", "t2", "not-fused-pattern"),
        ("t1", "t3", "not-fused-pattern"),
        ("t2", "t3", "not-fused-pattern"),
    ]


def test_a_pattern_that_is_switched_off_is_named() -> None:
    _, log = grown(trace(diamond, spec((4,))), disabled=PATTERNS)
    assert {d.code for d in log} == {"not-fused-pattern-disabled"}
    assert {d.message for d in log} == {
        "elemwise_broadcast_bwd_width is switched off; "
        f"merging saves {saved} bytes of memory traffic; 48 bytes live, 4 points in parallel"
        for saved in (16, 32)
    }


def test_merges_say_what_they_save() -> None:
    partition = Partition(trace(diamond, spec((1024,))))
    exp, neg, tanh, add = partition.areas
    size = 4096
    assert byte_size(exp.nodes[0].out) == size
    assert traffic_saved(partition.graph, [neg, add]) == 2 * size, "not written and not read"
    assert traffic_saved(partition.graph, [exp, neg]) == size, "tanh still reads it"
    assert traffic_saved(partition.graph, [neg, tanh]) == size, "both read Exp"
    assert traffic_saved(partition.graph, [exp, neg, tanh, add]) == 7 * size, "Exp is read twice"


def test_figures_of_a_reduction_count_its_rows() -> None:
    partition = Partition(trace(lambda x: ops.reduce_sum(ops.exp(x), axis=1), spec((16, 64))))
    text = figures(partition.graph, partition.areas)
    assert text == "saves 8 KiB of memory traffic; 4.062 KiB live, 16 points in parallel"


def test_a_shared_operand_is_read_once() -> None:
    def net(x):
        return ops.reduce_sum(x, axis=1), ops.reduce_max(x, axis=1)

    partition = Partition(trace(net, spec((16, 16))))
    assert traffic_saved(partition.graph, partition.areas) == 1024
    left, right = partition.areas
    assert left.siblings == (right,)


@pytest.mark.parametrize(("size", "text"), [(12, "12 bytes"), (2048, "2 KiB"), (3 << 19, "1.5 MiB")])
def test_sizes_read_well(size, text) -> None:
    assert human(size) == text


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_areas_know_their_boundary(seed: int) -> None:
    graph = random_graph(seed, 40)
    growth = grow(graph, PATTERNS, LIMITS)
    for area in growth.areas:
        inside = set(area.nodes)
        others = [arg for node in graph.operators if node not in inside for arg in node.args]
        assert area.operands == {arg for node in area.nodes for arg in node.args if arg.node not in inside}
        results = [value for node in area.nodes for value in node.outs]
        assert area.outputs == tuple(value for value in results if value in others or value in graph.outputs)
        assert {area.home(node) for node in area.nodes} == {area.number}


def test_a_lone_reshape_is_basic() -> None:
    partition = Partition(trace(lambda x: ops.neg(ops.reshape(x, (8,))), spec((2, 4))))
    view, neg = partition.areas
    assert (view.mode, neg.mode) == (Mode.BASIC, Mode.COMPOSITE)
    assert partition.merge([view, neg]).mode is Mode.COMPOSITE


def test_a_pattern_is_asked_about_areas_of_its_kinds_only() -> None:
    asked = []

    @fusion(Direction.FORWARD, kinds=(Kind.REDUCE,))
    def sums(area, limits):
        asked.append(area.kind)
        return ()

    grow(trace(lambda x: ops.reduce_sum(ops.exp(x), axis=1), spec((4, 8))), (sums,), LIMITS)
    assert asked == [Kind.REDUCE]


def test_a_pattern_is_asked_where_there_is_one_of_its_operators() -> None:
    asked = []

    @fusion(Direction.FORWARD, ops=(EXP,))
    def of_exp(area, limits):
        asked.append(area.nodes[0].op)
        return ()

    for function in (ops.neg, ops.exp):
        grow(trace(lambda x, function=function: ops.abs(function(x)), spec((4, 8))), (of_exp,), LIMITS)
    assert asked == [EXP]


def test_areas_go_with_their_partition_and_wait_for_no_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        growth = grow(trace(lambda x: ops.neg(ops.exp(x)), spec((4, 8))), (), LIMITS)
        left = [ref(area) for area in growth.areas]
        del growth
        assert [area() for area in left] == [None, None]
    finally:
        gc.enable()


def test_nobody_is_asked_about_an_area_that_is_alone_or_of_other_kinds() -> None:
    asked: list[tuple[str, int]] = []

    @fusion(Direction.FORWARD)
    def of_all(area, limits):
        """All producers."""
        asked.append(("of_all", len(area.nodes)))
        return [link.area for link in area.inputs]

    @fusion(Direction.FORWARD, kinds=(Kind.OPAQUE,))
    def of_opaque(area, limits):
        """Nothing."""
        asked.append(("of_opaque", len(area.nodes)))
        return []

    areas, _ = grown(trace(lambda x: ops.neg(ops.exp(x)), spec((4, 8))), of_opaque, of_all)
    assert areas == [["Exp", "Neg"]]
    assert ("of_opaque", 1) not in asked
    assert ("of_all", 2) in asked, "the loop that merged them looks for more"
    asked.clear()
    assert grown(trace(ops.exp, spec((4, 8))), of_all)[0] == [["Exp"]]
    assert not asked
