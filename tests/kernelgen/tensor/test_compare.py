"""Structural equality finds every difference that matters and no other."""

import re

import pytest

from graphkernel.ops import OPS
from kernelgen.tensor.compare import difference
from kernelgen.tensor.text import parse

BASE = """kernel K(a: f32[4]) {
  t0: f32[4] = Neg(a)
  return t0
}
graph g(x: f32[4], y: f32[4]) {
  const c: f32[4] = [1.0, 2.0, 3.0, 4.0]
  t0: f32[4] = Add(x, c)
  t1: f32[4] = Mul(t0, t0)
  t2: f32[4] = K(t1)
  t3: f32[2, 2] = Reshape(t2, shape=(2, 2))
  return t2 -> x, t3, y
}
"""


def read(text: str):
    return parse(text, OPS)


def test_inner_labels_and_repeated_constants_do_not_count():
    renamed = (
        BASE.replace("t0", "first")
        .replace("t2", "last")
        .replace("c: f32", "weights: f32")
        .replace(", c)", ", weights)")
    )
    assert difference(read(BASE), read(renamed)) is None
    assert read(BASE) == read(renamed)
    assert hash(read(BASE)) == hash(read(renamed))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("graph g", "graph h", "names: 'g' and 'h'"),
        ("y: f32[4]) {\n  const", "y: f32[8]) {\n  const", r"type of input 1 \(y\)"),
        (", y: f32[4]) {\n  const c", ", z: f32[4], y: f32[4]) {\n  const c", "number of inputs"),
        ("t2 -> x, t3, y", "t2 -> x, t3, x", "output 2: .* shared differently|output 2"),
        ("t2 -> x, t3, y", "t2 -> y, t3, y", "aliases"),
        ("t2 -> x, t3, y", "t2 -> x, t3", "number of outputs"),
        ("Add(x, c)", "Sub(x, c)", r"operators: Add \(t0\) and Sub"),
        ("Add(x, c)", "Add(c, x)", "output 0"),
        ("[1.0, 2.0, 3.0, 4.0]", "[1.0, 2.0, 3.0, 5.0]", "constants c and c differ"),
        ("Mul(t0, t0)", "Mul(t0, x)", "shared differently|operators"),
        ("Neg(a)", "Abs(a)", "body of t2: output 0: operators: Neg"),
        ("f32[2, 2] = Reshape(t2, shape=(2, 2))", "f32[4, 1] = Reshape(t2, shape=(4, 1))", "attributes of Reshape"),
    ],
)
def test_each_difference_is_found_and_named(old, new, message):
    changed = BASE.replace(old, new, 1)
    assert changed != BASE
    found = difference(read(BASE), read(changed))
    assert found is not None
    assert re.search(message, found), found
    assert read(BASE) != read(changed)


def test_sharing_is_part_of_the_structure():
    shared = "graph g(x: f32[4]) { a: f32[4] = Exp(x) b: f32[4] = Add(a, a) return b }"
    copied = "graph g(x: f32[4]) { a: f32[4] = Exp(x) c: f32[4] = Exp(x) b: f32[4] = Add(a, c) return b }"
    assert "shared differently" in (difference(read(shared), read(copied)) or "")
    assert "shared differently" in (difference(read(copied), read(shared)) or "")


def test_long_chains_need_no_recursion():
    lines = "\n".join(f"t{i + 1}: f32[4] = Neg(t{i})" for i in range(3000))
    text = f"graph g(t0: f32[4]) {{\n{lines}\nreturn t3000 }}"
    assert read(text) == read(text)


def test_attributes_are_compared_bit_for_bit():
    def leaky(alpha: str):
        return read(f"graph g(x: f32[4]) {{ t: f32[4] = LeakyReLU(x, alpha={alpha}) return t }}")

    assert difference(leaky("nan"), leaky("nan")) is None
    assert difference(leaky("0.0"), leaky("-0.0"))
    assert difference(leaky("1"), leaky("1.0"))
