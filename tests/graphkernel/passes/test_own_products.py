"""Products on a CPU: which are kernels, what these take in place of constant weights, what packages hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphkernel as gk
from graphkernel.cluster.product_cost import LEAST_ROWS, cost_of, cost_of_both
from graphkernel.packages.read import load_compiled
from graphkernel.runtime.measure import profile
from graphkernel.runtime.plan.verify_plan import verify_plan
from graphkernel.runtime.steps.steps import KernelStep
from kernelgen.tensor.dims import Dim, sym
from kernelgen.tensor.graph import Graph

RNG = np.random.default_rng(0)
W, V, BIAS = (RNG.standard_normal(shape).astype(np.float32) for shape in ((40, 256), (256, 100), (256,)))


def two_layers(rows: int | str = 10) -> Graph:
    """A product with a bias and a function behind it, and another product of that."""

    def network(x):
        return gk.ops.matmul(gk.ops.tanh(gk.ops.matmul(x, W) + BIAS), V)

    return gk.trace(network, gk.spec((rows, 40), "float32"))


def expected(x: np.ndarray) -> np.ndarray:
    return np.tanh(x.astype(np.float64) @ W + BIAS) @ V


@pytest.mark.parametrize("rows", [1, 10, "N"])
def test_a_network_of_such_products_runs_on_kernels_alone(rows: int | str) -> None:
    exe = gk.compile(two_layers(rows))
    assert not exe.report.host
    x = RNG.standard_normal((10 if rows == "N" else int(rows), 40)).astype(np.float32)
    np.testing.assert_allclose(exe(x)[0], expected(x), rtol=1e-4, atol=1e-4)


def test_weights_are_held_as_kernels_read_them_and_in_no_other_form() -> None:
    exe = gk.compile(two_layers())
    verify_plan(exe.plan)
    shapes = {held.array.shape for held in exe.program.constants if held.array is not None}
    assert W.shape not in shapes
    assert V.shape not in shapes
    steps = [step for step in exe.plan.steps if isinstance(step, KernelStep)]
    assert {held.slot for held in exe.plan.prepared} <= {slot for step in steps for slot in step.inputs}


def test_a_weight_that_two_equal_kernels_read_is_laid_out_once() -> None:
    square = RNG.standard_normal((48, 192)).astype(np.float32)

    def network(x, y):
        return gk.ops.exp(gk.ops.matmul(x, square)), gk.ops.exp(gk.ops.matmul(y, square))

    exe = gk.compile(gk.trace(network, gk.spec((4, 48), "float32"), gk.spec((4, 48), "float32")))
    assert len(exe.plan.prepared) == 1
    x, y = (RNG.standard_normal((4, 48)).astype(np.float32) for _ in range(2))
    for found, given in zip(exe(x, y), (x, y), strict=True):
        np.testing.assert_allclose(found, np.exp(given @ square), rtol=1e-3)


def test_kernels_of_one_shape_with_other_weights_are_compiled_once() -> None:
    first, second = (RNG.standard_normal((256, 256)).astype(np.float32) for _ in range(2))

    def network(x):
        return gk.ops.matmul(gk.ops.tanh(gk.ops.matmul(x, first)), second)

    exe = gk.compile(gk.trace(network, gk.spec((4, 256), "float32")), flags="--disable_fusion_pattern=matmul_depth")
    products = [entry for entry in exe.report.kernels if "MatMul" in entry.operators]
    assert [len(entry.calls) for entry in products] == [2]


@pytest.mark.parametrize(
    ("flags", "level"), [("--disable_cluster_ops=MatMul", 2), ("--enable_cluster_ops_only=Tanh", 2), ("", 1)]
)
def test_flags_keep_products_out_of_kernels(flags: str, level: int) -> None:
    graph = gk.optimize(two_layers(), opt_level=level, flags=flags or None)
    assert sum(node.op.name == "MatMul" for node in graph.operators) == 2


@pytest.mark.parametrize(
    ("rows", "terms", "columns"),
    [
        (1, 768, 3072),
        (1, 512, 50257),
        (128, 768, 768),
        (1500, 384, 1536),
        (512, 768, 9),
        (16, 768, 1000),
        (sym("N"), 64, 64),
    ],
)
def test_a_product_of_usual_extents_is_a_kernel(rows: Dim, terms: int, columns: int) -> None:
    assert cost_of(rows, terms, columns).is_own


@pytest.mark.parametrize("columns", [17, 33])
def test_a_product_that_is_mostly_beside_whole_vectors_stays_with_a_library_and_the_figures_say_so(
    columns: int,
) -> None:
    weights = RNG.standard_normal((768, columns)).astype(np.float32)
    graph = gk.trace(lambda x: gk.ops.matmul(x, weights), gk.spec((512, 768), "float32"))
    (decision,) = [one for one in gk.explain(graph).decisions if one.code == "not-own-product"]
    assert "modelled" in decision.message
    assert [node.op.name for node in gk.optimize(graph).operators] == ["MatMul"]


def test_the_cost_grows_with_rows_terms_and_columns_and_weights_turned_round_cost_the_same() -> None:
    small, turned = cost_of(64, 64, 64), RNG.standard_normal((48, 768)).astype(np.float32)
    assert all(getattr(cost_of(*more), who) > getattr(small, who) for more in ((128, 64, 64), (64, 128, 64), (64, 64, 128))
               for who in ("own", "library"))  # fmt: skip
    graph = gk.trace(lambda x: gk.ops.matmul(x, turned, transpose_b=True), gk.spec((8, 768), "float32"))
    (decision,) = [one for one in gk.explain(graph).decisions if one.code == "own-product"]
    assert str(cost_of(8, 768, 48)) in decision.message


def test_a_product_of_two_inputs_is_left_as_it_was() -> None:
    graph = gk.trace(gk.ops.matmul, gk.spec((8, 40), "float32"), gk.spec((40, 64), "float32"))
    assert [node.op.name for node in gk.optimize(graph).operators] == ["MatMul"]


def test_sizes_that_shapes_do_not_tell_are_told_to_such_products(tmp_path: Path) -> None:
    graph = gk.parse(
        """graph f(x: f32[B, N*M + N + 1, 64], n: f32[N], m: f32[M]) {
      y: f32[B, N*M + N + 1, 160] = BatchMatMul(x, c)
      z: f32[B, N*M + N + 1, 160] = Tanh(y)
      return z
    }""".replace("y: f32", f"const c: f32[64, 160] = {[0.01] * 10240}\n y: f32", 1)
    )
    x = np.random.default_rng(0).standard_normal((2, 19, 64)).astype(np.float32)
    exe = gk.compile(graph)
    (step,) = [step for step in exe.plan.steps if isinstance(step, KernelStep)]
    assert step.untold
    assert step.prepared == 1
    exe.save(tmp_path / "told.gkp")
    wanted = np.tanh(x @ np.full((64, 160), 0.01, np.float32))
    for one in (exe, load_compiled(tmp_path / "told.gkp")):
        (found,) = one(x, np.zeros(3, np.float32), np.zeros(5, np.float32))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert profile(exe, (x, np.zeros(3, np.float32), np.zeros(5, np.float32)), 1)  # without tables


def test_a_package_runs_with_the_laid_out_weights(tmp_path: Path) -> None:
    exe = gk.compile(two_layers())
    exe.save(tmp_path / "network.gkp")
    loaded = load_compiled(tmp_path / "network.gkp")
    x = RNG.standard_normal((10, 40)).astype(np.float32)
    np.testing.assert_array_equal(loaded(x)[0], exe(x)[0])
    assert len(loaded.plan.prepared) == len(exe.plan.prepared)
    verify_plan(loaded.plan)
    loaded.save(tmp_path / "again.gkp")
    np.testing.assert_array_equal(load_compiled(tmp_path / "again.gkp")(x)[0], exe(x)[0])


@pytest.mark.parametrize("columns", [48, 192])
def test_a_package_holds_weights_that_are_the_same_however_they_lie(tmp_path: Path, columns: int) -> None:
    weights = np.ones((64, columns), np.float32)
    exe = gk.compile(gk.trace(lambda x: gk.ops.exp(gk.ops.matmul(x, weights)), gk.spec((20, 64), "float32")))
    exe.save(tmp_path / "network.gkp")
    x = RNG.standard_normal((20, 64)).astype(np.float32)
    np.testing.assert_array_equal(load_compiled(tmp_path / "network.gkp")(x)[0], exe(x)[0])


@pytest.mark.parametrize("is_read_elsewhere", [True, False])
def test_a_package_holds_weights_as_kernels_read_them_and_as_others_do(tmp_path: Path, is_read_elsewhere: bool) -> None:
    weights = RNG.standard_normal((256, 512)).astype(np.float32)

    def network(x):
        y = gk.ops.exp(gk.ops.matmul(x, weights))
        return (y, gk.ops.tanh(weights)) if is_read_elsewhere else y

    exe = gk.compile(gk.trace(network, gk.spec(("N", 256), "float32")), flags="--disable_pass=constant_folding")
    exe.save(tmp_path / "network.gkp")
    size = (tmp_path / "network.gkp").stat().st_size
    assert size > weights.nbytes * (2 if is_read_elsewhere else 1)
    assert size < weights.nbytes * (2 if is_read_elsewhere else 1) + (64 << 10)
    x = RNG.standard_normal((3, 256)).astype(np.float32)
    for found, wanted in zip(load_compiled(tmp_path / "network.gkp")(x), exe(x), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_products_of_matrices_that_calls_decide_are_kernels(left: bool, right: bool, batch: tuple[int, ...]) -> None:
    def network(x, y):
        return gk.ops.tanh(gk.ops.matmul(x, y, left, right))

    shapes = [(*batch, *(shape[::-1] if turned else shape)) for shape, turned in (((40, 50), left), ((50, 48), right))]
    exe = gk.compile(gk.trace(network, *(gk.spec(shape) for shape in shapes)))
    assert exe.report.host == ()
    x, y = (RNG.standard_normal(shape).astype(np.float32) * np.float32(0.1) for shape in shapes)
    wide = (np.swapaxes(each, -1, -2) if turned else each for each, turned in ((x, left), (y, right)))
    first, second = (each.astype(np.float64) for each in wide)
    np.testing.assert_allclose(exe(x, y)[0], np.tanh(first @ second), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rows", [1, LEAST_ROWS - 1, "N"])
def test_few_or_unknown_rows_of_such_matrices_stay_with_a_library(rows: int | str) -> None:
    graph = gk.trace(gk.ops.matmul, gk.spec((rows, 64)), gk.spec((64, 96)))
    assert [node.op.name for node in gk.optimize(graph).operators] == ["MatMul"]


def test_laying_out_an_operand_at_every_call_costs_more_than_once() -> None:
    found = cost_of_both(LEAST_ROWS, 768, 768)
    assert found is not None
    assert found.own > cost_of(LEAST_ROWS, 768, 768).own
