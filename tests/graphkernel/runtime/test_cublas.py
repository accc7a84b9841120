"""Products of the device's library: where matrices lie, which are left to cupy, and that a capture records them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from tests.support import fake_cupy
from tests.support.fake_cupy import FakeDevice

SHAPES = [((5, 7), (7, 3)), ((4, 5, 7), (4, 7, 3)), ((4, 5, 7), (7, 3)), ((5, 7), (2, 2, 7, 3)), ((1, 5, 7), (4, 7, 3))]
TOLERANCES = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-13}

BIASED = """
graph biased(a: KIND[5, 7], b: KIND[7, 3], c: KIND[3]) {
  y: KIND[5, 3] = MatMul(a, b, c)
  return y
}
"""


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    return fake_cupy.install(monkeypatch)


def arrays(shapes: Any, flips: Any, kind: str) -> list[np.ndarray]:
    generator = np.random.default_rng(1)
    drawn = [
        generator.uniform(-1, 1, shape).astype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind) for shape in shapes
    ]
    return [
        np.ascontiguousarray(np.swapaxes(one, -1, -2)) if flip else one for one, flip in zip(drawn, flips, strict=True)
    ]


def product(flips: tuple[bool, bool]) -> Any:
    return lambda a, b: ops.matmul(a, b, transpose_a=flips[0], transpose_b=flips[1])


def compiled(flips: tuple[bool, bool], given: list[np.ndarray], kind: str) -> Any:
    return gk.compile(gk.trace(product(flips), *[gk.spec(one.shape, kind) for one in given]), opt_level=0, target="gpu")


@pytest.mark.parametrize("kind", TOLERANCES)
@pytest.mark.parametrize("flips", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("shapes", SHAPES)
def test_products_are_numpys(device: FakeDevice, shapes: Any, flips: tuple[bool, bool], kind: str) -> None:
    given = arrays(shapes, flips, kind)
    (found,) = compiled(flips, given, kind)(*given)
    a, b = (np.swapaxes(one, -1, -2) if flip else one for one, flip in zip(given, flips, strict=True))
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(found.astype(np.float64), expected, atol=8 * TOLERANCES[kind])
    assert [entry[:3] for entry in device.cublas.log] == [(3, 5, 7)]


@pytest.mark.parametrize("kind", TOLERANCES)
def test_a_bias_is_added_before_rounding(device: FakeDevice, kind: str) -> None:
    given = arrays(((5, 7), (7, 3), (3,)), (False, False, False), kind)
    short = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}[kind]
    graph = gk.parse(BIASED.replace("KIND", short))
    (found,) = gk.compile(graph, opt_level=0, target="gpu")(*given)
    a, b, c = (one.astype(np.float64) for one in given)
    np.testing.assert_allclose(found.astype(np.float64), a @ b + c, atol=8 * TOLERANCES[kind])
    assert device.cublas.log == [(3, 5, 7, 1)]


@pytest.mark.parametrize("shapes", [((2, 1, 5, 7), (1, 3, 7, 3)), ((5, 0), (0, 3))])
def test_what_has_no_one_step_between_matrices_is_left_to_cupy(device: FakeDevice, shapes: Any) -> None:
    given = arrays(shapes, (False, False), "float32")
    (found,) = compiled((False, False), given, "float32")(*given)
    np.testing.assert_allclose(found, given[0] @ given[1], rtol=1e-5)
    assert not device.cublas.log


def test_a_capture_records_products(device: FakeDevice) -> None:
    given = arrays(SHAPES[0], (False, False), "float32")
    captured = compiled((False, False), given, "float32").capture(*map(fake_cupy.asarray, given))
    for factor in (1, 2):
        (found,) = captured(*[one * np.float32(factor) for one in given])
        np.testing.assert_allclose(found, factor**2 * (given[0] @ given[1]), rtol=1e-5)
