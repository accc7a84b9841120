"""Extents that follow from others by more than a polynomial: in text, in calls, checked, and fixed at load."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import graphkernel as gk
from graphkernel.errors import InputError, ParseError, VerifyError
from graphkernel.frontends.fixed_extents import with_extents
from kernelgen.tensor.derived import Derived
from kernelgen.tensor.dims import divide_exactly, parse_dim, sym
from kernelgen.tensor.verify import verify

HEAD = """graph head(x: f32[N]) where m = min(8, N), b = broadcast(m, 1), z = max(0, N - 8), r = floor_div(z, b - 3) {
  a: f32[] = ReduceSum(x, axis=(0,), keep_dims=False)
  w: f32[m, z] = BroadcastTo(a, shape=(m, z))
  e: f32[m, z] = Exp(w)
  s: i64[2] = Shape(e)
  return e, s
}
"""


def test_what_is_printed_reads_back() -> None:
    graph = gk.parse(HEAD)
    assert str(graph) == HEAD
    assert gk.parse(str(graph)) == graph
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert graph != gk.parse(HEAD.replace("min(8, N)", "min(7, N)"))


@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.parametrize("extent", [4, 9, 20])
def test_they_are_known_as_soon_as_the_inputs_are(level: int, extent: int) -> None:
    graph = gk.parse(HEAD)
    x = np.linspace(-1, 1, extent, dtype=np.float32)
    for found in (gk.evaluate(graph, [x]), gk.compile(graph, opt_level=level)(x)):
        np.testing.assert_allclose(found[0], np.full((min(8, extent), max(0, extent - 8)), np.exp(x.sum())), rtol=1e-5)
        assert found[1].tolist() == [min(8, extent), max(0, extent - 8)]


def test_an_extent_divided_by_nothing_is_told() -> None:
    with pytest.raises(InputError, match="an extent is another divided by 0, with N = 3"):
        gk.evaluate(gk.parse(HEAD), [np.ones(3, np.float32)])


def test_numbers_for_symbols_are_numbers_for_what_follows_from_them() -> None:
    fixed = with_extents(gk.parse(HEAD), {"N": 12})
    assert fixed.derived == ()
    assert str(fixed.outputs[0].type) == "f32[8, 4]"


@pytest.mark.parametrize(("where", "error", "message"), [
    ("m = half(N, 2)", ParseError, "expected one of floor_div, windows, min, max, broadcast, from_front, found 'half'"),
    ("m = min(8, 1.5)", ParseError, "expected an extent"),
    ("m = min(8, K)", VerifyError, "G9"),
    ("m = min(8, N), m = min(8, N)", VerifyError, "G9"),
    ("N = min(8, N)", VerifyError, "G9"),
])  # fmt: skip
def test_what_says_nothing_is_refused(where: str, error: type[Exception], message: str) -> None:
    text = f"graph net(x: f32[N]) where {where} {{\n  e: f32[N] = Exp(x)\n  return e\n}}\n"
    with pytest.raises(error, match=message):
        verify(gk.parse(text))


@pytest.mark.parametrize(
    ("dividend", "divisor", "quotient"),
    [
        ("16*N*u*v + 16*N*u + 16*N*v + 16*N", "u*v + u + v + 1", "16*N"),
        ("u*v + u + v + 1", "v + 1", "u + 1"),
        ("6*u + 4", "2", "3*u + 2"),
        ("u*u - v*v", "u - v", "u + v"),
        ("6*u + 3", "2", None),
        ("u + 1", "v + 1", None),
        ("u*v + u", "v + 2", None),
        ("u", "0", None),
    ],
)
def test_extents_divide_where_the_quotient_is_a_polynomial(dividend: str, divisor: str, quotient: str | None) -> None:
    assert divide_exactly(parse_dim(dividend), parse_dim(divisor)) == (
        None if quotient is None else parse_dim(quotient)
    )


@pytest.mark.parametrize(("entry", "text"), [
    (Derived.given("batch", 8), "batch = 8"),
    (Derived("u0", "max", sym("N"), sym("N")), "u0 = max(N, N)"),
    (Derived("u0", "min", 8, 8), "u0 = min(8, 8)"),
])  # fmt: skip
def test_text_has_numbers_as_they_were_given(entry: Derived, text: str) -> None:
    assert str(entry) == text
