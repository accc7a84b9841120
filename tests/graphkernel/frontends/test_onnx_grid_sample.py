"""GridSample is of kernels: beside onnxruntime and a sum over pixels in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.runtime.plan.verify_plan import verify_plan
from graphkernel.runtime.verify_table import verify_tables
from tests.support.onnx_models import model, run_onnxruntime

pytestmark = pytest.mark.usefixtures("shared_kernels")

RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.standard_normal((2, 3, 5, 7)).astype(np.float32)
GRID = (RANDOM.uniform(-1, 1, (2, 4, 6, 2)) * 2.7).astype(np.float32)
MODES = ("linear", "nearest")
PADDINGS = ("zeros", "border", "reflection")


def sampled(
    x: np.ndarray, grid: np.ndarray, shapes: dict[str, Any] | None = None, opset: int = 20, **given: Any
) -> ModelProto:
    return model(
        [helper.make_node("GridSample", ["x", "g"], ["y"], **given)], {"x": x, "g": grid}, opset=opset, shapes=shapes
    )


def by_sums(x: np.ndarray, grid: np.ndarray, mode: str, padding_mode: str, align_corners: int) -> np.ndarray:
    """Of all pixels, each times its share, in float64: what is outside is mirrored step by step, as it is explained."""
    shares = []
    for axis, side in ((1, x.shape[2]), (0, x.shape[3])):
        g = grid[..., axis].astype(np.float64)
        place = (g + 1) / 2 * (side - 1) if align_corners else ((g + 1) * side - 1) / 2
        low, high = (0, side - 1) if align_corners else (-0.5, side - 0.5)
        if padding_mode == "reflection":
            for _ in range(20):
                place = np.where(place < low, 2 * low - place, place)
                place = np.where(place > high, 2 * high - place, place)
        if padding_mode != "zeros":
            place = place.clip(0, side - 1)
        away = np.abs((np.rint(place) if mode == "nearest" else place)[..., None] - np.arange(side))
        shares.append(away == 0 if mode == "nearest" else (1 - away).clip(0))
    return np.einsum("nchw,nijh,nijw->ncij", x.astype(np.float64), *(share.astype(np.float64) for share in shares))


@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("padding_mode", PADDINGS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [2, "N"])
def test_pixels_are_mixed_as_the_grid_says(mode: str, padding_mode: str, align_corners: int, count: Any) -> None:
    shapes = {"x": (count, *IMAGE.shape[1:]), "g": (count, *GRID.shape[1:])}
    made = sampled(IMAGE, GRID, shapes, mode=mode, padding_mode=padding_mode, align_corners=align_corners)
    executable = gk.compile(import_onnx(made))
    verify_plan(executable.plan)
    verify_tables(executable.program)
    assert executable.report.host == ()
    found = executable(IMAGE, GRID)[0]
    np.testing.assert_allclose(found, by_sums(IMAGE, GRID, mode, padding_mode, align_corners), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found, run_onnxruntime(made, {"x": IMAGE, "g": GRID})[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("padding_mode", PADDINGS)
@pytest.mark.parametrize("mode", MODES)
def test_corners_and_ties_are_those_of_onnxruntime(mode: str, padding_mode: str) -> None:
    """A grid that hits pixels, what is half way between them, and the edges."""
    x = IMAGE[:1, :, :4, :4]
    numbers = np.linspace(-1.75, 1.75, 15, dtype=np.float32)
    grid = np.stack(np.meshgrid(numbers, numbers), -1)[None].astype(np.float32)
    made = sampled(x, grid, mode=mode, padding_mode=padding_mode)
    found, expected = gk.compile(import_onnx(made))(x, grid)[0], run_onnxruntime(made, {"x": x, "g": grid})[0]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("padding_mode", PADDINGS)
def test_places_that_are_no_numbers_give_none(padding_mode: str) -> None:
    grid = GRID.copy()
    grid[0, 1, 2, 0], grid[1, 0, 0, 1] = np.nan, np.nan
    found = gk.compile(import_onnx(sampled(IMAGE, grid, padding_mode=padding_mode, mode="linear")))(IMAGE, grid)[0]
    lost = np.isnan(found).all(axis=1)
    assert lost[0, 1, 2]
    assert lost[1, 0, 0]
    assert np.isnan(found).any(axis=1).sum() == 2


@pytest.mark.parametrize("name", ["bilinear", None])
def test_the_mode_of_opset_16_has_another_name(name: str | None) -> None:
    given: dict[str, Any] = {} if name is None else {"mode": name}
    made = sampled(IMAGE, GRID, opset=16, **given)
    executable = gk.compile(import_onnx(made))
    assert executable.report.host == ()
    np.testing.assert_allclose(
        executable(IMAGE, GRID)[0], by_sums(IMAGE, GRID, "linear", "zeros", 0), rtol=1e-4, atol=1e-5
    )


OTHERS: dict[str, tuple[np.ndarray, np.ndarray, dict[str, Any], dict[str, Any]]] = {
    "cubic": (IMAGE, GRID, {"mode": "cubic"}, {}),
    "volumes": (IMAGE[:, :, None].repeat(3, 2), RANDOM.uniform(-1, 1, (2, 2, 2, 2, 3)).astype(np.float32), {}, {}),
    "doubles": (IMAGE.astype(np.float64), GRID.astype(np.float64), {}, {}),
    "one row": (IMAGE[:, :, :1], GRID, {}, {}),
    "open sides": (IMAGE, GRID, {}, {"x": (2, 3, "H", "W")}),
}


@pytest.mark.parametrize("case", OTHERS)
def test_what_it_cannot_say_stays_with_onnxruntime(case: str) -> None:
    x, grid, given, shapes = OTHERS[case]
    graph = import_onnx(sampled(x, grid, shapes, **given))
    assert [node.op.name for node in graph.operators] == ["Onnx"]
