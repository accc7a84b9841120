"""The numpy meaning of graphs: kernels, constants, symbols, and what does not fit."""

import numpy as np
import pytest

from graphkernel.errors import InputError, VerifyError
from graphkernel.ops import OPS
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Graph, Node
from kernelgen.tensor.operator import Kind, Operator
from kernelgen.tensor.text import parse
from kernelgen.tensor.types import Attrs

TEXT = """kernel K(a: f32[N, M], b: f32[M]) {
  t0: f32[N, M] = Mul(a, b)
  t1: f32[N] = ReduceSum(t0, axis=(1,), keep_dims=False)
  return t1, a
}
graph g(x: f32[N, M], flat: f32[N*M], w: f32[M]) {
  k_0: f32[N], k_1: f32[N, M] = K(x, w)
  r: f32[N, M] = Reshape(flat, shape=(N, M))
  s: f32[N, M] = Add(k_1, r)
  return k_0, s -> x
}
"""


def test_kernels_symbols_and_aliases():
    graph = parse(TEXT, OPS)
    x, flat, w = np.ones((2, 3), np.float32), np.arange(6, dtype=np.float32), np.array([1, 2, 3], np.float32)
    sums, total = evaluate(graph, [x, flat, w])
    assert sums.tolist() == [6, 6]
    assert np.array_equal(total, 1 + flat.reshape(2, 3))
    assert np.array_equal(x, np.ones((2, 3))), "nothing is written"
    by_name = evaluate(graph, {"w": w, "x": x, "flat": flat})
    assert np.array_equal(by_name[1], total)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.ones((2, 3))}, "input x is float32, got an array of float64"),
        ({"x": np.ones(3, np.float32)}, r"input x is f32\[N, M\], got an array of shape \(3,\)"),
        ({"w": np.ones(4, np.float32)}, r"got shape \(4,\) with M = 3$"),
        ({"flat": np.ones(5, np.float32)}, r"f32\[M\*N\], got shape \(5,\)"),
        ({"w": None}, "no array is given for input w"),
        ({"wx": np.ones(1)}, "no input 'wx'"),
    ],
)
def test_arrays_that_do_not_fit_are_named(change, message):
    arrays = {"x": np.ones((2, 3), np.float32), "flat": np.ones(6, np.float32), "w": np.ones(3, np.float32)}
    arrays = {name: array for name, array in {**arrays, **change}.items() if array is not None}
    with pytest.raises(InputError, match=message):
        evaluate(parse(TEXT, OPS), arrays)


def test_symbols_bind_in_any_order_and_must_be_solvable():
    graph = parse("graph g(a: f32[N*M], b: f32[2*N + 1], c: f32[M]) { return a }", OPS)
    arrays = [np.zeros(n, np.float32) for n in (12, 9, 3)]
    assert evaluate(graph, arrays)[0].shape == (12,)
    with pytest.raises(InputError, match=r"b is f32\[2\*N \+ 1\]|symbol"):
        evaluate(graph, [arrays[0], np.zeros(8, np.float32), arrays[2]])
    with pytest.raises(InputError, match="takes 3 inputs"):
        evaluate(graph, arrays[:2])


def test_unknown_weights_are_an_error_that_says_what_to_do():
    graph = parse("graph g(a: f32[4]) { const w: f32[4] = sha256:abc b: f32[4] = Add(a, w) return b }", OPS)
    with pytest.raises(InputError, match="give it to parse as weights"):
        evaluate(graph, [np.zeros(4, np.float32)])


def test_a_meaning_that_breaks_its_type_rule_is_caught():
    liar = Operator("Liar", Kind.ELEMWISE, 1, lambda types, attrs: types, lambda x, attrs: x.astype(np.float64))
    x = parse("graph g(x: f32[4]) { return x }", OPS).inputs[0]
    graph = Graph("g", (x,), (Node(liar, (x,), Attrs(), (x.type,), "t").out,))
    with pytest.raises(VerifyError, match=r"Liar t gave float64\[4\], its type is f32\[4\]"):
        evaluate(graph, [np.zeros(4, np.float32)])


def test_both_seed_programs_in_text_form():
    graph = parse(
        """graph net(x: f32[4, 4], y: f32[4, 4]) {
          a: f32[4, 4] = Mul(x, 2.0)
          b: f32[4, 4] = Pow(a, 3.0)
          c: f32[4, 4] = Sub(b, y)
          d: f32[4, 4] = Mul(c, b)
          return d
        }""",
        OPS,
    )
    x, y = np.full((4, 4), 0.2, np.float32), np.full((4, 4), 0.3, np.float32)
    assert np.round(evaluate(graph, [x, y])[0], 6).tolist() == np.full((4, 4), -0.015104, np.float32).tolist()
