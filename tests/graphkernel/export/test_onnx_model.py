"""Fused graphs as ONNX models: kernels are functions, names and symbols stay, onnxruntime gives the same numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from graph_samples import TOLERANCE, Sample, apart, case
from onnx import helper
from typer.testing import CliRunner

import graphkernel as gk
from graphkernel import ops
from graphkernel.cli import app
from graphkernel.errors import OptionError
from graphkernel.export.onnx_file import save_onnx
from graphkernel.frontends.onnx.importer import import_onnx
from tests.onnx_node_tests.cases import node_cases
from tests.support.onnx_models import model, run_onnxruntime
from tests.support.onnx_out import run_model, run_written, written

pytestmark = pytest.mark.usefixtures("shared_kernels")

LEVELS = (0, 1, 2, 3)
LACKING = "Could not find an implementation for"  # onnxruntime has few kernels for float64


@pytest.fixture(scope="module")
def encoder() -> gk.Graph:
    """A block with a symbolic batch, kernels of which two are equal, and products between."""

    def block(x, w, b):
        for _ in range(3):
            x = ops.softmax(ops.matmul(ops.mul(ops.tanh(ops.add(x, b)), 0.5), w), axis=(-1,))
        return x

    return gk.trace(block, gk.spec(("N", 8), "float32"), gk.spec((8, 8), "float32"), gk.spec((8,), "float32"))


def arrays_of(graph: gk.Graph, **extents: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [[d if isinstance(d, int) else extents[str(d)] for d in value.type.shape] for value in graph.inputs]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_graphs_keep_their_numbers(level: int, first: int) -> None:
    for seed in range(first, first + 10):
        given = case(Sample.of(seed))
        with np.errstate(all="ignore"):
            expected = gk.evaluate(given.graph, given.arrays)
        try:
            found = run_written(gk.optimize(given.graph, level), given.arrays)
        except Exception as error:  # onnxruntime's own classes
            if LACKING in str(error) and given.graph.inputs[0].type.dtype.name == "float64":
                continue
            raise
        bound = TOLERANCE[given.graph.inputs[0].type.dtype.name]
        assert all(apart(a, b) <= bound for a, b in zip(found, expected, strict=True)), seed


@pytest.mark.parametrize("level", LEVELS)
def test_kernels_are_functions_and_equal_ones_are_one(encoder: gk.Graph, level: int) -> None:
    fused = gk.optimize(encoder, level)
    kernels = {node.name: node.body.name for node in fused.operators if node.body is not None}
    made = written(fused)
    names = {function.name for function in made.functions}
    assert names <= set(kernels.values())
    assert {node.name for node in made.graph.node if node.domain == "graphkernel"} == set(kernels)
    assert json.loads(_property(made, "graphkernel.kernels")).keys() == names
    if level:
        assert len(names) < len(kernels)


def _property(made: onnx.ModelProto, key: str) -> str:
    return next(entry.value for entry in made.metadata_props if entry.key == key)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("rows", [1, 5])
def test_one_model_serves_all_extents(encoder: gk.Graph, level: int, rows: int) -> None:
    arrays = arrays_of(encoder, N=rows)
    (found,) = run_written(gk.optimize(encoder, level), arrays)
    np.testing.assert_allclose(found, gk.evaluate(encoder, arrays)[0], rtol=1e-5)


def test_inputs_outputs_and_symbols_keep_the_names_of_the_model() -> None:
    nodes = [helper.make_node("Exp", ["in/a:0"], ["mid"]), helper.make_node("Neg", ["mid"], ["out put"])]
    given = model(nodes, {"in/a:0": np.ones((2, 3), np.float32)}, ("out put", "mid"), shapes={"in/a:0": ("batch", 3)})
    made = written(gk.optimize(import_onnx(given)))
    assert [info.name for info in made.graph.input] == ["in/a:0"]
    assert [info.name for info in made.graph.output] == ["out put", "mid"]
    assert made.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


def test_an_extent_that_operands_do_not_tell_is_given_to_the_function() -> None:
    """A kernel that only sees rows times columns splits them again."""

    def net(x, y):
        return ops.add(ops.reshape(ops.exp(y), shape=x.shape), 1.0), ops.neg(x)

    graph = gk.trace(net, gk.spec(("N", "M"), "float32"), gk.spec(("M*N",), "float32"))
    fused = gk.optimize(graph)
    x, y = np.ones((2, 3), np.float32), np.arange(6, dtype=np.float32)
    for found, expected in zip(run_written(fused, [x, y]), gk.evaluate(graph, [x, y]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("rows", [1, 4, 5, 9])
def test_extents_that_follow_by_more_than_a_polynomial_are_computed(rows: int) -> None:
    """Half of N, at most 8 of N, what broadcasts: a strided convolution, a cut and a sum of two inputs."""
    nodes = [
        helper.make_node("MaxPool", ["x"], ["half"], kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 1]),
        helper.make_node("Exp", ["half"], ["e"]),
        helper.make_node("Slice", ["x", "from", "to", "axis"], ["cut"]),
        helper.make_node("Tanh", ["cut"], ["t"]),
    ]
    x = np.random.default_rng(0).standard_normal((1, 2, rows, rows + 1)).astype(np.float32)
    numbers = {"from": np.array([0]), "to": np.array([3]), "axis": np.array([2])}
    given = model(nodes, {"x": x}, ("e", "t"), numbers, shapes={"x": (1, 2, "N", "M")})
    graph = import_onnx(given)
    for level in LEVELS:
        for found, expected in zip(
            run_written(gk.optimize(graph, level), [x]), run_onnxruntime(given, {"x": x}), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(("extent", "windows"), [(1, 0), (2, 1), (4, 1), (6, 1), (7, 2)])
def test_a_count_of_windows_is_computed(extent: int, windows: int) -> None:
    graph = gk.parse("""graph net(x: f32[N]) where w = windows(N - 4, 3) {
  a: f32[] = ReduceSum(x, axis=(0,), keep_dims=False)
  b: f32[w, 2] = BroadcastTo(a, shape=(w, 2))
  e: f32[w, 2] = Exp(b)
  return e
}
""")
    x = np.linspace(-1, 1, extent, dtype=np.float32)
    (found,) = run_written(gk.optimize(graph), [x])
    np.testing.assert_allclose(found, np.full((windows, 2), np.exp(x.sum())), rtol=1e-5)


def test_it_reads_back_and_computes_the_same(encoder: gk.Graph, tmp_path: Path) -> None:
    file = tmp_path / "fused.onnx"
    gk.save(gk.optimize(encoder), file)
    again = gk.load(file)
    assert (again.input_names, again.output_names) == (encoder.input_names, encoder.output_names)
    arrays = arrays_of(encoder, N=3)
    np.testing.assert_allclose(gk.evaluate(again, arrays)[0], gk.evaluate(encoder, arrays)[0], rtol=1e-5)
    assert len(gk.optimize(again).operators) <= len(gk.optimize(encoder).operators)


def test_weights_are_initializers_once_and_beside_the_file_when_large(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    graph = gk.trace(lambda x: ops.matmul(ops.matmul(x, weight), weight.copy()), gk.spec((2, 64), "float32"))
    file = tmp_path / "m.onnx"
    save_onnx(graph, file, most_bytes_inside=weight.nbytes - 1)
    assert (tmp_path / "m.onnx.data").stat().st_size == weight.nbytes
    assert len(onnx.load(file, load_external_data=False).graph.initializer) == 1
    onnx.checker.check_model(str(file), full_check=True)
    arrays = arrays_of(graph)
    for found in (run_model(str(file), arrays), gk.evaluate(gk.load(file), arrays)):
        np.testing.assert_allclose(found[0], gk.evaluate(graph, arrays)[0], rtol=1e-4)


def test_the_same_graph_gives_the_same_bytes(encoder: gk.Graph, tmp_path: Path) -> None:
    for name in "ab":
        gk.save(gk.optimize(encoder), tmp_path / f"{name}.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_inputs_that_are_assigned_to_are_told() -> None:
    graph = gk.trace(lambda x, y: ops.assign(x, ops.add(x, y)), gk.spec((4,), "float32"), gk.spec((4,), "float32"))
    made = written(gk.optimize(graph))
    assert json.loads(_property(made, "graphkernel.updates")) == {graph.output_names[0]: "x"}


def test_what_has_no_form_is_said_by_name() -> None:
    graph = gk.trace(lambda x: ops.cum_prod(ops.exp(x), axis=0), gk.spec((4,), "float32"))
    with pytest.raises(OptionError, match=r"CumProd .* cannot be written as ONNX: CumProd has no ONNX form"):
        written(graph)


@pytest.mark.parametrize("opset", [9, 11, 13])
def test_generic_operators_of_old_opsets_are_converted(opset: int) -> None:
    """Hardmax took all axes from one on together then."""
    x = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
    nodes = [helper.make_node("Hardmax", ["x"], ["h"], axis=1), helper.make_node("Add", ["h", "x"], ["y"])]
    given = model(nodes, {"x": x}, opset=opset)
    (found,) = run_written(gk.optimize(import_onnx(given)), [x])
    np.testing.assert_allclose(found, run_onnxruntime(given, {"x": x})[0], rtol=1e-6)


@pytest.mark.parametrize("part", [pytest.param(part, marks=pytest.mark.long if part % 2 else ()) for part in range(8)])
def test_node_tests_of_onnx_go_out_as_they_came_in(part: int) -> None:
    """A sample of all operators; what onnxruntime does not run of the model that came in it need not run here."""
    tried = 0
    for entry in node_cases()[part * 3 :: 64]:
        arrays = entry.data_sets[0][0]
        try:
            graph = import_onnx(entry.model)
            expected = run_model(entry.model, arrays)
        except Exception:  # whatever onnx, onnxruntime and the importer refuse
            continue
        for level in (0, 2):
            for found, wanted in zip(run_written(gk.optimize(graph, level), arrays), expected, strict=True):
                if not isinstance(wanted, np.ndarray):
                    assert str(found) == str(wanted), entry.name
                    continue
                assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), entry.name
                if wanted.dtype.kind in "fiub":
                    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4, err_msg=entry.name)
        tried += 1
    assert tried > 10


@pytest.mark.parametrize("name", ["test_if", "test_if_seq", "test_scan9_sum", "test_split_to_sequence_2"])
def test_bodies_and_values_that_are_no_tensors_go_out_as_they_came_in(name: str) -> None:
    (entry,) = [found for found in node_cases(name) if found.name == name]
    arrays = entry.data_sets[0][0]
    expected = run_model(entry.model, arrays)
    for level in (0, 2):
        found = run_written(gk.optimize(import_onnx(entry.model), level), arrays)
        for mine, wanted in zip(found, expected, strict=True):
            pairs = zip(mine, wanted, strict=True) if isinstance(wanted, list) else [(mine, wanted)]
            for one, other in pairs:
                np.testing.assert_array_equal(one, other)


def test_the_command_line_writes_it(encoder: gk.Graph, tmp_path: Path) -> None:
    gk.save(encoder, tmp_path / "m.gk")
    result = CliRunner().invoke(app, ["optimize", str(tmp_path / "m.gk"), "-o", str(tmp_path / "fused.onnx")])
    assert result.exit_code == 0, result.output
    assert len(onnx.load(tmp_path / "fused.onnx").functions) > 0
