"""Gradients of functions and graphs: structure, composition with the other transformations, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.errors import FrontendError, GradientError
from graphkernel.ops import Tensor
from kernelgen.tensor.verify import verify

RNG = np.random.default_rng(0)
W, B, X = (RNG.standard_normal(shape).astype(np.float32) for shape in ((3, 4), (4,), (5, 3)))


def loss(w: Any, b: Any, x: Any) -> Any:
    return ops.reduce_mean(ops.square(ops.tanh(x @ w + b)))


def by_hand() -> tuple[np.ndarray, np.ndarray]:
    y = np.tanh(X @ W + B)
    inner = 2 * y * (1 - y * y) / y.size
    return X.T @ inner, inner.sum(axis=0)


def test_arrays_are_computed_at_once_and_jit_compiles() -> None:
    both = gk.value_and_grad(loss, argnums=(0, 1))
    value, (dw, db) = both(W, B, X)
    assert (value.dtype, dw.shape, db.shape) == (np.float32, W.shape, B.shape)
    for found, expected in zip((dw, db), by_hand(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    compiled, gradients = gk.jit(both)(W, B, X)
    for found, expected in zip((compiled, *gradients), (value, dw, db), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_grad_gives_the_gradient_alone_and_differentiates_what_is_jitted() -> None:
    np.testing.assert_allclose(gk.grad(gk.jit(loss), argnums=1)(W, B, X), by_hand()[1], rtol=1e-5, atol=1e-6)


def test_a_gradient_has_the_structure_of_its_argument() -> None:
    def of_layers(layers: Any, x: Any) -> Any:
        return loss(layers["first"][0], layers["first"][1], x)

    found = gk.grad(of_layers)({"first": (W, B)}, X)
    np.testing.assert_allclose(found["first"][1], by_hand()[1], rtol=1e-5, atol=1e-6)


def test_higher_orders() -> None:
    third = gk.grad(gk.grad(gk.grad(lambda x: ops.exp(x * 2.0))))
    np.testing.assert_allclose(third(np.float64(0.3)), 8 * np.exp(0.6))


def test_what_a_function_knows_from_elsewhere_is_constant() -> None:
    """Even when it is the very tensor that it is differentiated by."""
    assert gk.grad(lambda x: x * gk.grad(lambda y: x + y)(x))(np.array(3.0)) == 1


def test_stop_gradient_and_what_does_not_count() -> None:
    x = np.array([1.5, -2.0])
    assert list(gk.grad(lambda x: ops.reduce_sum(x * ops.stop_gradient(x)))(x)) == list(x)
    assert list(gk.grad(lambda x: ops.reduce_sum(ops.floor(x)))(x)) == [0, 0]
    assert list(gk.grad(lambda x: ops.reduce_sum(ops.cast(ops.cast(x, "int32"), "float64")))(x)) == [0, 0]
    assert list(gk.grad(lambda x, y: ops.reduce_sum(y))(x, x)) == [0, 0]


def test_several_uses_are_added_up_at_once() -> None:
    graph = gk.trace(gk.grad(lambda x: ops.reduce_sum(ops.sin(x) + ops.cos(x) + ops.exp(x))), gk.spec(3))
    assert str(graph).count("AddN(") == 1


def test_an_operand_given_twice_gets_both_parts() -> None:
    """Through a rule and through an expansion."""
    x = np.array([0.5, 1.5])
    assert list(gk.grad(lambda x: ops.reduce_sum(x * x))(x)) == [1, 3]
    np.testing.assert_allclose(gk.grad(lambda x: ops.reduce_sum(ops.tanh_grad(x, x)))(x), 1 - 3 * x * x)


def test_data_types_stay() -> None:
    for kind in ("float16", "bfloat16", "float32", "float64"):
        graph = gk.trace(gk.grad(lambda x: ops.reduce_sum(ops.layer_norm(x, x[0], x[0])[0])), gk.spec((3, 4), kind))
        assert [(y.type.dtype.name, y.type.shape) for y in graph.outputs] == [(kind, (3, 4))]


def test_symbolic_shapes() -> None:
    graph = gk.trace(gk.value_and_grad(loss), gk.spec((3, "M")), gk.spec("M"), gk.spec(("N", 3)))
    verify(graph)
    np.testing.assert_allclose(gk.evaluate(graph, [W, B, X])[1], by_hand()[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gk.compile(graph)(W, B, X)[1], by_hand()[0], rtol=1e-5, atol=1e-6)


def test_what_a_function_writes_into_an_argument_is_written() -> None:
    def counted(x: Tensor, calls: Tensor) -> Tensor:
        ops.assign_add(calls, np.float32(1))
        return ops.reduce_sum(x * calls)

    graph = gk.trace(gk.grad(counted, argnums=(0, 1)), gk.spec(2), gk.spec(()))
    assert [(alias.output, alias.input) for alias in graph.aliases] == [(2, 1)]
    with pytest.raises(FrontendError, match="assigned to in a function that is differentiated"):
        gk.trace(lambda x, calls: gk.grad(counted, argnums=1)(x, calls * 2.0), gk.spec(2), gk.spec(()))


def test_dropout_is_masked_as_it_was() -> None:
    x = np.ones((64, 8), np.float32)
    value, gradient = gk.value_and_grad(lambda x: ops.reduce_sum(ops.dropout(x, keep_prob=0.5, seed0=3)[0]))(x)
    assert set(np.unique(gradient)) == {0, 2}
    assert gradient.sum() == value


def test_a_mask_that_is_drawn_anew_is_drawn_once() -> None:
    """Without seeds each run has another mask, and its gradient has the same."""
    both = gk.value_and_grad(lambda x: ops.reduce_sum(ops.dropout(x * 2.0, keep_prob=0.5)[0]))
    x = np.ones((64, 8), np.float32)
    for run in (both, gk.jit(both)):
        value, gradient = run(x)
        assert gradient.sum() == value


class TestGraphs:
    def graph(self) -> gk.Graph:
        return gk.trace(lambda x, ids: ops.gather(x, ids), gk.spec((3, 2)), gk.spec(4, "int32"))

    def test_gradients_are_called_after_their_inputs(self) -> None:
        text = (
            'graph net("in/x": f32[4]) { y: f32[] = ReduceSum("in/x", axis=(0,), keep_dims=False)  return "out/y" = y }'
        )
        graph = gk.value_and_grad(gk.parse(text), wrt="in.x")
        assert graph.output_names == ("out/y", "in/x_gradient")

    def test_cotangents_are_inputs(self) -> None:
        graph = gk.value_and_grad(self.graph(), cotangents=True)
        verify(graph)
        dy = np.arange(8, dtype=np.float32).reshape(4, 2)
        y, dx = gk.evaluate(graph, [X[:3, :2], np.array([0, 2, -1, 0], np.int32), dy])
        assert y.shape == (4, 2)
        assert dx.tolist() == [[6, 8], [0, 0], [6, 8]]
        assert gk.parse(str(graph)) == graph

    def test_inputs_are_chosen_by_name(self) -> None:
        graph = gk.trace(loss, gk.spec((3, 4)), gk.spec(4), gk.spec((5, 3)))
        (db,) = gk.evaluate(gk.grad(graph, wrt="b"), [W, B, X])
        np.testing.assert_allclose(db, by_hand()[1], rtol=1e-5, atol=1e-6)
        with pytest.raises(GradientError, match=r"no input 'B'.*mean 'b'"):
            gk.grad(graph, wrt="B")
        with pytest.raises(GradientError, match="ids is i32"):
            gk.grad(self.graph(), wrt="ids", cotangents=True)

    def test_an_optimized_graph(self) -> None:
        graph = gk.trace(loss, gk.spec((3, 4)), gk.spec(4), gk.spec((5, 3)))
        (db,) = gk.evaluate(gk.grad(gk.optimize(graph), wrt="b"), [W, B, X])
        np.testing.assert_allclose(db, by_hand()[1], rtol=1e-5, atol=1e-6)

    def test_what_is_written_in_place_stays(self) -> None:
        def step(x: Tensor, total: Tensor) -> Tensor:
            return ops.reduce_sum(x * ops.assign_add(total, x))

        graph = gk.trace(step, gk.spec(2), gk.spec(2))
        for differentiated, count in ((gk.grad(graph), 3), (gk.value_and_grad(graph), 4)):
            verify(differentiated)
            (alias,) = differentiated.aliases
            assert (len(differentiated.outputs), alias.input) == (count, 1)
            assert differentiated.outputs[alias.output].op.name == "AssignAdd"

    def test_a_tensor_needs_cotangents(self) -> None:
        with pytest.raises(GradientError, match=r"one scalar float.*reduce_sum"):
            gk.grad(self.graph())
        with pytest.raises(GradientError, match="2 outputs"):
            gk.grad(gk.trace(lambda x: (x, x + 1), gk.spec(())))


class TestRefusals:
    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (lambda x: ops.tanh(x), r"f64\[2\].*ops.reduce_mean"),
            (lambda x: 1.0, "gives float"),
            (lambda x: ops.reduce_sum(ops.argmax(x, 0)), "i32"),
            (lambda x: ops.dynamic_quant(x)[1], r"DynamicQuant\(f64\[2\]\).*rounds to 8 bits.*stop_gradient"),
            (lambda x: ops.reduce_sum(ops.creal(ops.complex(x, x))), r"CReal\(c128\[2\]\).*complex numbers"),
        ],
    )
    def test_say_what_and_why(self, function: Any, message: str) -> None:
        with pytest.raises(GradientError, match=message):
            gk.grad(function)(np.ones(2))

    def test_arguments(self) -> None:
        with pytest.raises(GradientError, match="argument 1 holds i32"):
            gk.grad(lambda x, ids: ops.reduce_sum(x), argnums=1)(np.ones(2), np.ones(2, np.int32))
        with pytest.raises(GradientError, match="argument 2, and 2 were given"):
            gk.grad(lambda x, y: ops.reduce_sum(x), argnums=2)(np.ones(2), np.ones(2))
