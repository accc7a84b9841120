"""What a pass makes is legal input of every pass: an optimized graph may be optimized again, for any target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graph_samples import TOLERANCE, Sample, apart, case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphkernel as gk
from benchmarks.networks import NETWORKS, NO_LAUNCH
from examples.networks.weights import draw
from graphkernel import ops
from graphkernel.ops import Tensor
from graphkernel.report.difference import largest_difference
from kernelgen.tensor.graph import Builder, Graph, Value
from kernelgen.tensor.types import Dim, TensorType, dtype
from kernelgen.tensor.verify import verify

PATIENT = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
TARGETS = ("cpu", "gpu", "ascend")
FLAGS = (
    "", "--enable_cluster_ops=MatMul,BatchMatMul,Reshape", "--enable_parallel_op_combine=true", "--enable_low_precision=true",
    "--recompute_increment_threshold=1000000 --recompute_peak_threshold=1000000", "--kernel_generator=DVM",
)  # fmt: skip
OPTIONS = st.tuples(st.sampled_from(TARGETS), st.integers(1, 3), st.sampled_from(FLAGS))
Program = tuple[Graph, list[np.ndarray[Any, Any]]]


def optimized(graph: Graph, options: tuple[str, int, str]) -> Graph:
    """The graph after all steps for a target, a level and flags; valid, and the same as its text."""
    target, level, flags = options
    found = gk.optimize(graph, level, target, f"--opt_level={level} {flags}" if flags else None)
    verify(found)
    assert gk.parse(str(found)) == found
    return found


@given(seed=st.integers(0, 10**9), first=OPTIONS, second=OPTIONS)
@PATIENT
def test_random_graphs_keep_their_numbers(seed: int, first: tuple[str, int, str], second: tuple[str, int, str]) -> None:
    sample = case(Sample.of(seed))
    graph = sample.graph
    again = optimized(optimized(graph, first), second)
    assert again.aliases == graph.aliases
    assert [value.type for value in again.outputs] == [value.type for value in graph.outputs]
    wide = TOLERANCE[graph.inputs[0].type.dtype.name]
    tolerance = 0.1 if "low_precision" in first[2] + second[2] else wide
    pairs = zip(gk.evaluate(again, sample.arrays), gk.evaluate(graph, sample.arrays), strict=True)
    assert all(apart(got, want) <= tolerance for got, want in pairs)


@st.composite
def products(draw_: st.DrawFn) -> Program:
    """A chain of products with what passes fold into them: biases, transpositions, casts, odd extents, one weight for two."""
    of = draw_(st.sampled_from(["float32", "float16", "bfloat16"]))
    builder, generator = Builder(), np.random.default_rng(draw_(st.integers(0, 99)))
    batch = draw_(st.sampled_from([(), (), (2,), (2, 3)]))
    arrays: list[np.ndarray[Any, Any]] = []
    inputs: list[Value] = []

    def parameter(*extents: Dim) -> Tensor:
        shape = tuple(int(str(extent)) for extent in extents)
        arrays.append((generator.standard_normal(shape) / 4).astype(dtype(of).numpy))
        inputs.append(builder.parameter(f"x{len(arrays)}", TensorType(shape, dtype(of))))
        return Tensor(inputs[-1], builder)

    x = parameter(*batch, draw_(st.sampled_from([1, 5, 16])), draw_(st.sampled_from([1, 3, 32])))
    for _ in range(draw_(st.integers(1, 3))):
        columns, turned = draw_(st.sampled_from([1, 4, 48])), draw_(st.booleans())
        inner = x.shape[-1]
        weight = parameter(columns, inner) if turned else parameter(inner, columns)
        product = ops.matmul(x, ops.transpose(weight, (1, 0))) if turned else ops.matmul(x, weight)
        kind = draw_(st.sampled_from(["bias", "wide bias", "activation", "two", "none"]))
        x = _behind(kind, product, x, parameter)
    return Graph("products", tuple(inputs), (x.value,)), arrays


def _behind(kind: str, product: Tensor, x: Tensor, parameter: Any) -> Tensor:
    columns = product.shape[-1]
    match kind:
        case "bias":
            return product + parameter(columns)
        case "wide bias":
            return ops.cast(ops.cast(product, "float32") + ops.cast(parameter(columns), "float32"), product.dtype)
        case "activation":
            return ops.tanh(product + parameter(columns))
        case "two":
            return product + ops.tanh(ops.matmul(x, parameter(x.shape[-1], columns)) + parameter(columns))
        case _:
            return product


@given(program=products(), first=OPTIONS, second=OPTIONS)
@PATIENT
def test_products_keep_their_numbers(
    program: Program, first: tuple[str, int, str], second: tuple[str, int, str]
) -> None:
    graph, arrays = program
    again = optimized(optimized(graph, first), second)
    narrow = graph.inputs[0].type.dtype.name != "float32" or "low_precision" in first[2] + second[2]
    (got,), (want,) = gk.evaluate(again, arrays), gk.evaluate(graph, arrays)
    assert apart(got, want) <= (0.1 if narrow else 1e-4)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_is_optimized_again_for_its_own_and_for_other_targets(name: str, target: str) -> None:
    graph = NETWORKS[name].tiny()
    arrays = draw(graph)
    expected = gk.evaluate(graph, arrays)
    for level in (1, 2, 3):
        fused = optimized(graph, (target, level, ""))
        for other, second in dict.fromkeys([(target, level), *((other, 2) for other in TARGETS)]):
            again = optimized(fused, (other, second, ""))
            assert again == fused or (other, second) != (target, level) or launches(again) < launches(fused)
            if again != fused:
                pairs = zip(gk.evaluate(again, arrays), expected, strict=True)
                tolerance = 1e-2 if name.endswith("float16") else 1e-4
                assert max(largest_difference(got, want) for got, want in pairs) < tolerance


@given(seed=st.integers(0, 10**9), options=OPTIONS)
@PATIENT
def test_a_second_time_makes_no_launch_more(seed: int, options: tuple[str, int, str]) -> None:
    """It is no fixed point always: kernels that were put side by side share what each had computed for itself."""
    fused = optimized(case(Sample.of(seed)).graph, options)
    assert launches(optimized(fused, options)) <= launches(fused)


def launches(graph: Graph) -> int:
    """Its kernels, and the operators outside of kernels that are no views."""
    return sum(node.body is not None or node.op.kind not in NO_LAUNCH for node in graph.operators)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("inner", [1, 16])
@pytest.mark.parametrize("of", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("operator", ["MatMul", "BatchMatMul"])
def test_a_product_with_its_bias_may_be_written_by_the_user(target: str, inner: int, of: str, operator: str) -> None:
    batch = "" if operator == "MatMul" else "3, "
    graph = gk.parse(
        f"graph g(x: {of}[{batch}8, {inner}], w: {of}[{batch}{inner}, 32], b: {of}[32]) {{\n"
        f"  y: {of}[{batch}8, 32] = {operator}(x, w, b)\n  z: {of}[{batch}8, 32] = Tanh(y)\n  return z\n}}"
    )
    generator = np.random.default_rng(0)
    arrays = [
        generator.standard_normal([int(str(extent)) for extent in value.type.shape]).astype(value.type.dtype.numpy)
        for value in graph.inputs
    ]
    (want,) = gk.evaluate(graph, arrays)
    for level in (1, 2, 3):
        (got,) = gk.evaluate(optimized(graph, (target, level, "")), arrays)
        assert apart(got, want) <= (1e-5 if of == "f32" else 0.01)
