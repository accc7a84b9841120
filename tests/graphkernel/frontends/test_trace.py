"""Python functions as graphs."""

import numpy as np
import pytest

from graphkernel import ops
from graphkernel.errors import FrontendError, TypeRuleError
from graphkernel.frontends.trace import spec, trace
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Alias
from kernelgen.tensor.verify import verify


def mynet(x):
    return ops.add(ops.mul(x, 2.0), 1.0)


class MyOp:
    def __call__(self, x, y):
        a = ops.sub(x, y)
        return ops.mul(a, x)


class MyNet:
    def __init__(self):
        self.my_op = MyOp()

    def construct(self, x, y):
        a = ops.mul(x, 2.0)
        b = ops.pow(a, 3.0)
        return self.my_op(b, y)


def test_the_first_seed_program():
    graph = trace(mynet, spec((4, 4), "float32"))
    assert str(graph) == (
        "graph mynet(x: f32[4, 4]) {\n  t0: f32[4, 4] = Mul(x, 2.0)\n  t1: f32[4, 4] = Add(t0, 1.0)\n  return t1\n}\n"
    )
    (y,) = evaluate(graph, [np.full((4, 4), 0.5, np.float32)])
    assert np.array_equal(y, np.full((4, 4), 2.0))


def test_the_second_seed_program():
    graph = trace(MyNet(), spec((4, 4), "float32"), spec((4, 4), "float32"))
    assert graph.name == "MyNet"
    assert [value.node.name for value in graph.inputs] == ["x", "y"]
    (result,) = evaluate(graph, [np.full((4, 4), 0.2, np.float32), np.full((4, 4), 0.3, np.float32)])
    assert {f"{element:.6f}" for element in result.reshape(-1)} == {"-0.015104"}


def test_equal_symbols_are_equal_extents():
    graph = trace(lambda x, y: x + y, spec(("N", 4)), spec(("N", 1)), name="add")
    assert str(graph.outputs[0].type) == "f32[N, 4]"
    with pytest.raises(TypeRuleError, match=r"Add\(f32\[N\], f32\[M\]\): .*could differ at run time"):
        trace(lambda x, y: x + y, spec("N"), spec("M"))


def test_containers_are_flattened_and_named():
    def step(batch, weights):
        x, y = batch
        return {"sum": x + y, "parts": [weights["a"] * 2.0, 3.0]}

    graph = trace(step, (spec(4), np.zeros(4, np.float32)), {"a": spec(2)})
    assert [value.node.name for value in graph.inputs] == ["batch_0", "batch_1", "weights_a"]
    assert [str(value.type) for value in graph.outputs] == ["f32[4]", "f32[2]", "f32[]"]
    verify(graph)


def test_assignments_become_aliased_outputs():
    def update(p, g):
        new = ops.assign(p, p - g)
        return ops.assign(p, new * 2.0)

    graph = trace(update, spec(4), spec(4))
    assert graph.aliases == (Alias(0, 0),)
    verify(graph)

    hidden = trace(lambda p, g: (ops.assign(p, g), g + 1.0)[1], spec(4), spec(4))
    assert len(hidden.outputs) == 2
    assert hidden.aliases == (Alias(1, 0),)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x if x > 0 else -x, "no truth value"),
        (lambda x: [y for y in x], "cannot be iterated"),  # iterating is the point
        (lambda x: None, "not NoneType"),
        (lambda x: x + spec((-1,)).rank, "negative extent"),
        (lambda x: ops.assign(x + 1.0, x), "only an input of the graph"),
        (lambda x, y: x, "takes the arguments x, y; 1 specs"),
        (lambda: 1.0, "takes the arguments ; 1 specs"),
    ],
)
def test_what_cannot_be_traced_says_what_to_do(function, message):
    with pytest.raises(FrontendError, match=message):
        trace(function, spec(4))


def test_tensors_of_two_traces_do_not_mix():
    kept = []
    trace(lambda x: kept.append(x) or x, spec(4))
    with pytest.raises(FrontendError, match="two different traces"):
        trace(lambda x: x + kept[0], spec(4))
    with pytest.raises(FrontendError, match="another trace"):
        trace(lambda x: kept[0], spec(4))


def test_a_spec_is_a_type_or_an_array():
    with pytest.raises(FrontendError, match=r"argument x: expected gk\.spec"):
        trace(lambda x: x, 3)


@pytest.mark.parametrize(("operand", "message"), [
    (lambda x: ops.layer_norm(x, x, x), r"a tuple \(Tensor, Tensor, Tensor\), perhaps all results .*choose one"),
    (lambda x: "a", r"'a' \(str\) is no operand"),
    (lambda x: None, r"None \(NoneType\) is no operand"),
])  # fmt: skip
def test_what_is_no_operand_is_told(operand, message):
    with pytest.raises(TypeRuleError, match=message):
        trace(lambda x: ops.add(x, operand(x)), spec(4))


def test_a_data_type_that_does_not_exist_is_refused_with_the_nearest() -> None:
    with pytest.raises(FrontendError, match=r"unknown data type 'float33'.*did you mean 'float32'"):
        spec((4,), "float33")


def test_arguments_keep_their_names_whatever_those_are():
    graph = trace(lambda t, c, t1: ops.exp(t) * c + t1, *[spec((4,))] * 3)
    assert graph.input_names == ("t", "c", "t1")


@pytest.mark.parametrize("shape", [(None, 4), None, 2.5, (True,), ("N", -1), ("a b",), ([2],)])
def test_what_is_no_extent_is_refused(shape):
    with pytest.raises(FrontendError, match=r"^spec: (no extent: |negative extent |.*a b)"):
        spec(shape)


def test_extents_may_be_numpys():
    shape = np.arange(3, 5)
    assert str(spec(tuple(shape))) == "f32[3, 4]"  # pyright: ignore[reportArgumentType]  # not said, but understood


def test_keys_name_outputs():
    graph = trace(lambda x: {"loss": ops.reduce_sum(x), "parts": [x, {"twice": x * 2.0}]}, spec(4))
    assert graph.output_names == ("loss", "parts_0", "parts_1_twice")
    assert trace(lambda x: (x, x), spec(4)).output_names == ("output_0", "output_1")

    def step(w, x):
        ops.assign(w, w + x)
        return {"sum": ops.reduce_sum(x)}

    assert trace(step, spec(4), spec(4)).output_names == ("sum", "w")
