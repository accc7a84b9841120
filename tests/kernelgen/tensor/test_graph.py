"""Graphs, values and the builder."""

import pickle
from dataclasses import fields, replace

import numpy as np

from graphkernel.ops import OPS
from kernelgen.tensor.graph import Builder, Changed, Graph, Node, Value, keep
from kernelgen.tensor.types import Attrs, TensorType, dtype, parse_type, sym


def small() -> Graph:
    builder = Builder()
    x = builder.parameter("x", TensorType((sym("N"), 4), dtype("f32")))
    double = builder.emit(OPS["Mul"], x, builder.constant(2.0))
    return Graph("g", (x,), (builder.emit(OPS["Add"], double, double),))


def test_nodes_come_operands_first_and_users_once():
    graph = small()
    x, constant, mul, add = graph.nodes
    assert [node.op.name for node in graph.operators] == ["Mul", "Add"]
    assert graph.users[mul] == (add,)
    assert graph.users[x] == graph.users[constant] == (mul,)


def test_a_rebuild_that_changes_nothing_gives_the_same_object():
    graph = small()
    assert graph.rebuild(lambda node, args: keep(node, args).outs) is graph


def test_a_rebuild_maps_bottom_up():
    graph = small()
    builder = Builder()
    negated = graph.rebuild(
        lambda node, args: builder.node(OPS["Sub"], args).outs if node.op.name == "Add" else keep(node, args).outs
    )
    assert [node.op.name for node in negated.operators] == ["Mul", "Sub"]
    assert negated != graph


def test_a_rebuild_asks_about_the_nodes_it_is_given_and_tells_what_became_of_others():
    graph = small()
    x, _, mul, add = graph.nodes
    asked: list[Node] = []
    changed: Changed = {}

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        asked.append(node)
        return (args[0],)

    result = graph.rebuild(rewrite, {mul}, changed)
    assert asked == [mul]
    assert changed == {mul.out: x.out, add.out: result.outputs[0]}
    assert [node.op.name for node in result.operators] == ["Add"]
    assert graph.rebuild(rewrite, ()) is graph


def test_interning_tells_equal_looking_attributes_apart():
    builder = Builder(intern=True)
    x = builder.parameter("x", TensorType((4,), dtype("f32")))
    one, same, other = (builder.emit(OPS["LeakyReLU"], x, alpha=alpha) for alpha in (0.0, 0.0, -0.0))
    assert one == same
    assert one != other
    assert builder.constant(1.0) == builder.constant(np.float32(1.0))


def test_types_print_and_read_back():
    for text in ("f32[N, 4]", "bf16[]", "i64[2*N + 1]@NHWC", "bool[M*N - 1, 0]"):
        assert str(parse_type(text)) == text


def test_a_type_that_was_pickled_takes_nothing_along_that_its_process_derived():
    type_ = parse_type("f32[N, 4]")
    asked = hash(type_), type_.symbols
    copy = pickle.loads(pickle.dumps(type_))
    assert copy == type_
    assert (hash(copy), copy.symbols) == asked
    assert vars(pickle.loads(pickle.dumps(type_))) == {
        "shape": type_.shape,
        "dtype": type_.dtype,
        "layout": type_.layout,
    }


def test_a_result_of_its_operands_type_shares_it() -> None:
    """Types are in the keys of most tables, which find one object faster than an equal one."""
    builder = Builder()
    row, matrix = (builder.parameter(f"p{len(shape)}", TensorType(shape, dtype("f32"))) for shape in ((3,), (2, 3)))
    assert builder.emit(OPS["Add"], row, matrix).type is matrix.type
    assert builder.emit(OPS["Less"], row, matrix).type == TensorType((2, 3), dtype("bool"))


def test_attributes_are_pickled_without_their_hash() -> None:
    given = Attrs.of(axis=(0, 1), mode="sum")
    assert hash(given) == hash(Attrs.of(mode="sum", axis=[0, 1]))
    assert set(vars(pickle.loads(pickle.dumps(given)))) == {"items_"}, "hashes of texts are another process's own"


def test_nodes_are_changed_by_copies() -> None:
    node = Builder().parameter("x", TensorType((4,), dtype("float32"))).node
    assert (replace(node, name="y").name, node.name) == ("y", "x")
    assert all(str(field.type).startswith("Final[") for field in fields(Node)), (
        "the type checker lets nobody change one"
    )
