"""Mutation tests: for every invariant a graph that breaks it is rejected by that number."""

from dataclasses import replace

import numpy as np
import pytest

from graphkernel.errors import TypeRuleError, VerifyError
from graphkernel.ops import OPS
from kernelgen.tensor.constant_data import ConstantData
from kernelgen.tensor.graph import FUSED, Alias, Builder, Graph, Node, Value
from kernelgen.tensor.text import parse
from kernelgen.tensor.types import Attrs, Dim, TensorType, dtype, sym
from kernelgen.tensor.verify import INVARIANTS, broken, verify

TEXT = """kernel K(a: f32[N, 4]) {
  t0: f32[N, 4] = Neg(a)
  return t0
}
graph g(x: f32[N, 4], y: f32[N, 4]) {
  const c: f32[4] = [1.0, 2.0, 3.0, 4.0]
  t0: f32[N, 4] = Add(x, c)
  t1: f32[N, 4] = K(t0)
  return t1 -> y, x
}
"""
FOUND_TEXT = """graph g(x: f32[8]) {
  m: f32[8] = Exp(x)
  y: i64[1, u0] = Onnx(m, op_type="NonZero", opset=17, result_types=("i64[1, u0]",), defines=("u0",))
  return y
}
"""
GOOD = parse(TEXT, OPS)
FOUND = parse(FOUND_TEXT.replace("Exp(x)", "Neg(x)"), OPS)
X, Y = GOOD.inputs
CONST, ADD, CALL = GOOD.nodes[2:]
BODY = parse(TEXT.replace("kernel", "graph").split("graph g")[0], OPS)
F32 = dtype("f32")


def with_output(value: Value) -> Graph:
    return replace(GOOD, outputs=(value,), aliases=())


def parameter(name: str, *shape: Dim) -> Value:
    return Builder().parameter(name, TensorType(shape, F32))


def renamed_kernel(name: str, op: str = "Exp") -> Value:
    inner = Builder()
    a = inner.parameter("a", X.type)
    return Builder().fused(Graph(name, (a,), (inner.emit(OPS[op], a),)), [CALL.out]).out


ORDERED = parse(
    """
graph g(x: f32[4]) {
  a_0: f32[4], a_1: bool[0] = AllReduce(x, op="sum")
  b_0: f32[4], b_1: bool[0] = AllReduce(x, a_1, op="sum")
  c: f32[4], d: bool[0] = AllReduce(a_0, b_1, op="max")
  return a_0, d
}
""",
    OPS,
)
FIRST, SECOND, THIRD = ORDERED.operators
BESIDE = replace(SECOND, args=SECOND.args[:1])
LATE = replace(THIRD, args=(THIRD.args[0], FIRST.outs[1]))


MUTANTS = {
    "a collective beside another": ("G11", replace(ORDERED, outputs=(*FIRST.outs, *BESIDE.outs))),
    "a collective that nobody needs": ("G11", replace(ORDERED, outputs=(LATE.outs[0], *SECOND.outs))),
    "an end that is no output": ("G11", replace(ORDERED, outputs=(THIRD.outs[0],))),
    "two ends": ("G11", replace(ORDERED, outputs=(*LATE.outs, SECOND.outs[1]))),
    "two names of one output": ("G10", replace(with_output(X), results=("a", "b"))),
    "an input that is computed": ("G1", replace(GOOD, inputs=(X, ADD.out), aliases=())),
    "one input twice": ("G1", replace(GOOD, inputs=(X, X), outputs=(X,), aliases=())),
    "two inputs of one name": ("G1", replace(GOOD, inputs=(*GOOD.inputs, parameter("x", 4)))),
    "a parameter that is no input": ("G2", with_output(Builder().emit(OPS["Neg"], parameter("z", 4)))),
    "an output that does not exist": ("G3", with_output(Value(ADD, 1))),
    "an operand that does not exist": ("G3", with_output(replace(ADD, args=(X, Value(CONST, 1))).out)),
    "a wrong result shape": ("G4", with_output(replace(ADD, types=(TensorType((4, 4), F32),)).out)),
    "a wrong result data type": ("G4", with_output(replace(ADD, types=(TensorType(X.type.shape, dtype("f16")),)).out)),
    "operands that do not fit": ("G4", with_output(replace(ADD, args=(X,)).out)),
    "an unknown attribute": ("G4", with_output(replace(ADD, attrs=ADD.attrs.with_(axis=1)).out)),
    "a constant without content": ("G5", with_output(replace(CONST, data=None).out)),
    "content on an operator": ("G5", with_output(replace(ADD, data=ConstantData.of(np.ones(4))).out)),
    "content of another shape": ("G5", with_output(replace(CONST, types=(TensorType((5,), F32),)).out)),
    "content of another data type": ("G5", with_output(replace(CONST, types=(TensorType((4,), dtype("i32")),)).out)),
    "a fused node without body": ("G6", with_output(replace(CALL, body=None).out)),
    "a body on an operator": ("G6", with_output(replace(ADD, body=CALL.body).out)),
    "operands unlike the body's inputs": ("G6", with_output(replace(CALL, args=(CONST.out,)).out)),
    "results unlike the body's outputs": ("G6", with_output(replace(CALL, types=(TensorType((4, sym("N")), F32),)).out)),
    "a broken body": ("G4", with_output(replace(CALL, body=replace(BODY, outputs=(
        replace(BODY.outputs[0].node, args=()).out,))).out)),
    "an alias out of range": ("G7", replace(GOOD, aliases=(Alias(2, 0),))),
    "an alias of two types": ("G7", replace(with_output(CONST.out), aliases=(Alias(0, 0),))),
    "an output in two aliases": ("G7", replace(GOOD, aliases=(Alias(0, 0), Alias(0, 1)))),
    "an input in two aliases": ("G7", replace(GOOD, aliases=(Alias(0, 0), Alias(1, 0)))),
    "two kernels of one name": ("G8", with_output(renamed_kernel("K"))),
    "a kernel named like an operator": ("G8", with_output(renamed_kernel("Add"))),
    "a symbol that no input tells": ("G9", with_output(
        Builder().emit(OPS["BroadcastTo"], CONST.out, shape=(sym("M"), 4)))),
    "a symbol that is a word": ("G9", Graph("g", (parameter("x", sym("nan")),), ())),
    "a symbol that is defined twice": ("G9", replace(FOUND, outputs=(
        *FOUND.outputs, Builder().node(OPS["Onnx"], FOUND.inputs, FOUND.nodes[2].attrs.with_(op_type="Unique")).out))),
    "a definition of an input's symbol": ("G9", replace(FOUND, inputs=(*FOUND.inputs, parameter("z", sym("u0"))))),
    "a definition of what is told before": ("G9", parse(FOUND_TEXT.replace(
        "Exp(x)", "Mul(x, e)").replace("  m:", "  e: f32[] = Extent(value=u0)\n  m:"), OPS)),
    "a definition in a kernel": ("G9", parse(FOUND_TEXT.replace("graph g", "kernel K")
        + "graph g(x: f32[8]) { y: i64[1, u0] = K(x)\n return y }", OPS)),
    "a negative extent": ("G9", Graph("g", (parameter("x", -1),), ())),
}  # fmt: skip


def test_a_good_graph_is_accepted():
    verify(GOOD)
    assert list(broken(GOOD)) == []


@pytest.mark.parametrize("name", MUTANTS)
def test_each_fault_is_rejected_by_its_number(name):
    number, graph = MUTANTS[name]
    assert number in [found for found, _ in broken(graph)]
    with pytest.raises(VerifyError, match=r"invariant G\d+: .*in graph 'g'"):
        verify(graph)


def test_every_invariant_has_a_mutant():
    assert {number for number, _ in MUTANTS.values()} == set(INVARIANTS)
    assert CALL.op is FUSED


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_is_found_beside_nodes_that_were_checked(name):
    number, graph = MUTANTS[name]
    assert number in [found for found, _ in broken(graph, verify(GOOD))]


def test_kernels_that_were_found_alike_are_compared_where_one_is_another_now():
    one, same, other = renamed_kernel("Same"), renamed_kernel("Same"), renamed_kernel("Same", "Neg")
    checked = verify(replace(GOOD, outputs=(one, same), aliases=()))
    assert len(checked.alike) == 1
    again = replace(GOOD, outputs=(one, same, other), aliases=())
    assert {number for number, _ in broken(again, checked)} == {"G8"}


def test_checked_nodes_are_not_looked_at_again():
    def infer(*_: object) -> tuple[TensorType, ...]:
        asked.append(1)
        return (X.type,)

    asked: list[int] = []
    node = replace(ADD, op=replace(ADD.op, infer=infer))
    graph = with_output(node.out)
    checked = verify(graph)
    verify(graph, checked)
    verify(with_output(Builder().emit(OPS["Neg"], node.out)), checked)
    assert asked == [1]


def test_kernels_that_stay_are_known_to_the_call_after_the_next() -> None:
    kernel = CALL.body
    assert kernel is not None
    later = verify(with_output(Builder().emit(OPS["Neg"], CALL.out)), verify(GOOD))
    assert later.nodes[kernel.input_symbols].issuperset(kernel.nodes)
    assert verify(GOOD, later).kernels == later.kernels == verify(GOOD).kernels


def test_other_symbols_need_another_look():
    n, m = parameter("x", sym("N")), parameter("y", sym("M"))
    node = Builder().emit(OPS["Neg"], n)
    checked = verify(Graph("g", (n, m), (node,)))
    assert [number for number, _ in broken(Graph("g", (m,), (node,)), checked)] == ["G2", "G9", "G9"]


def test_a_kernel_may_use_the_symbols_of_the_graph_around_it_and_no_others():
    zero = Builder().constant(np.zeros((), np.float32))
    for name, found in (("N", []), ("M", ["G9"])):
        zeros = Builder().emit(OPS["BroadcastTo"], zero, shape=(sym(name),))
        body = Graph("K", (), (zeros,))
        call = Node(FUSED, (), Attrs(), (zeros.type,), "k", body=body)
        graph = Graph("g", (parameter("x", sym("N")),), (call.out,))
        assert [number for number, _ in broken(graph)][:1] == found


def test_symbols_that_an_operator_defines_are_accepted() -> None:
    verify(FOUND)
    assert parse(str(FOUND), OPS) == FOUND


@pytest.mark.parametrize("defines", [("u1",), ("N",), "u0", (3,), ("not a name",)])
def test_only_extents_of_results_are_defined(defines: object) -> None:
    with pytest.raises(TypeRuleError, match=r"defined|not a symbol name"):
        Builder().node(OPS["Onnx"], FOUND.inputs, FOUND.nodes[2].attrs.with_(defines=defines))


def test_a_good_kernel_needs_another_look_where_it_may_use_other_symbols() -> None:
    zero = Builder().constant(np.zeros((), np.float32))
    zeros = Builder().emit(OPS["BroadcastTo"], zero, shape=(sym("N"),))
    body = Graph("K", (), (zeros,))

    def called(symbol: str) -> Graph:
        call = Node(FUSED, (), Attrs(), (zeros.type,), "k", body=body)
        return Graph("g", (parameter("x", sym(symbol)),), (call.out,))

    checked = verify(called("N"))
    assert verify(called("N"), checked)
    assert {number for number, _ in broken(called("M"), checked)} == {"G9"}
