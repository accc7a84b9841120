from fusion_nets import PATTERNS, same_numbers

from graphkernel import ops
from graphkernel.cluster.grow_areas import grow
from graphkernel.cluster.recompute import copies, moved_bytes, with_copies
from graphkernel.cluster.split_models import Limits
from graphkernel.frontends.trace import spec, trace
from kernelgen.tensor.graph import Graph, Node
from kernelgen.tensor.verify import verify

FORWARD = [pattern for pattern in PATTERNS if pattern.name in ("reduce_fwd_depth", "reduce_fwd_width")]


def areas_of(graph: Graph) -> list[tuple[Node, ...]]:
    return [area.nodes for area in grow(graph, FORWARD, Limits()).areas]


def two_sums(x):
    wide = ops.cast(x, "float32")
    return ops.reduce_sum(wide, axis=0), ops.reduce_sum(wide, axis=1)


def test_a_copy_keeps_numbers_and_moves_fewer_bytes() -> None:
    graph = trace(two_sums, spec((8, 4), "float16"))
    areas = areas_of(graph)
    wanted = copies(graph, areas)
    assert [copy.value.node.op.name for copy in wanted] == ["Cast"]
    assert wanted[0].message == "computing 1 operators again moves 64 bytes instead of 256 bytes"
    copied = with_copies(graph, wanted)
    verify(copied)
    same_numbers(graph, copied)
    assert [node.op.name for node in copied.operators].count("Cast") == 2
    after = areas_of(copied)
    assert moved_bytes(copied, after) == moved_bytes(graph, areas) - 256 + 64
    assert copies(copied, after) == ()


def test_symbolic_sizes_are_compared_where_they_can_be() -> None:
    graph = trace(two_sums, spec(("N", 4), "float16"))
    assert len(copies(graph, areas_of(graph))) == 1
    graph = trace(lambda x: two_sums(ops.exp(x)), spec(("N", 4), "float32"))
    assert copies(graph, areas_of(graph)) == ()


def test_one_of_several_values_that_pass_between_groups_is_copied() -> None:
    """The sum of masked rows has to be passed; the masked rows are computed from the mask, which is smaller."""

    def centred(row, mask):
        kept = ops.select(mask, ops.broadcast_to(row, (8, 4)), 0.0)
        total = ops.reduce_sum(kept, axis=0)
        return total, ops.sub(kept, total)

    graph = trace(centred, spec((4,)), spec((8, 4), "bool"))
    groups = [graph.operators[:-1], graph.operators[-1:]]
    (copy,) = copies(graph, groups)
    assert copy.value.node.op.name == "Select"
    assert copy.message == "computing 2 operators again moves 48 bytes instead of 256 bytes"
    copied = with_copies(graph, [copy])
    verify(copied)
    same_numbers(graph, copied)
