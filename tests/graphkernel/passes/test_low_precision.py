"""What enable_low_precision does to numbers, and what it must leave alone."""

from dataclasses import replace

import numpy as np
import pytest
from fusion_nets import fused, random_graph
from pass_runs import checked

from graphkernel import ops
from graphkernel.declarations import builtin_catalogue
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import Tensor
from graphkernel.options import Options
from graphkernel.passes.base import Pass, run_steps
from graphkernel.passes.precision.decrease_compute_precision import decrease_compute_precision
from graphkernel.passes.precision.decrease_transfer_precision import decrease_transfer_precision
from graphkernel.pipeline import steps_for
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Alias, Graph

PASSES = (decrease_transfer_precision, decrease_compute_precision)


def dtypes_between(graph: Graph) -> list[str]:
    return [value.type.dtype.name for node in graph.operators for value in node.args if not value.is_parameter]


def three_kernels(x: Tensor) -> Tensor:
    y = ops.cum_sum(ops.tanh(ops.exp(-x)), axis=1)
    row = ops.reduce_max(ops.tanh(ops.exp(y) * y), axis=0, keep_dims=True)
    column = ops.reduce_max(ops.tanh(ops.neg(y) * y), axis=1, keep_dims=True)
    return ops.cum_sum(ops.tanh(row * 0.5 + column), axis=1)


@pytest.mark.parametrize("entry", PASSES, ids=lambda entry: entry.name)
def test_without_the_flag_nothing_happens(entry: Pass) -> None:
    graph = fused(random_graph(0, 60))
    assert checked(entry, graph) is graph


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("entry", PASSES, ids=lambda entry: entry.name)
def test_numbers_keep_eleven_bits_or_nearly(entry: Pass, seed: int) -> None:
    graph = fused(random_graph(seed, 60, hosts=0.0), composite_op_limit_size=5)
    result = checked(entry, graph, enable_low_precision=True)
    generator = np.random.default_rng(seed)
    arrays = [generator.standard_normal((4, 6)).astype(np.float32) for _ in graph.inputs]
    for expected, got in zip(evaluate(graph, arrays), evaluate(result, arrays), strict=True):
        np.testing.assert_allclose(got, expected, rtol=0.02, atol=0.02)


def test_only_what_kernels_alone_read_travels_as_float16() -> None:
    """CumSum reads and gives float32; one of the maxima goes from kernel to kernel."""
    graph = fused(trace(three_kernels, spec((64, 64))))
    result = checked(decrease_transfer_precision, graph, enable_low_precision=True)
    assert dtypes_between(graph) == ["float32"] * 5
    assert dtypes_between(result).count("float16") == 1


def test_what_is_written_in_place_keeps_its_precision() -> None:
    def net(weight: Tensor, gradient: Tensor) -> Tensor:
        return weight - gradient * 1e-4

    graph = fused(trace(net, spec((4,)), spec((4,))))
    updating = replace(graph, aliases=(Alias(0, 0),))
    assert checked(decrease_compute_precision, graph, enable_low_precision=True) is not graph
    assert checked(decrease_compute_precision, updating, enable_low_precision=True) is updating


def test_the_whole_pipeline_with_the_flag() -> None:
    graph = trace(three_kernels, spec((64, 64)))
    options = Options(enable_low_precision=True)
    catalogue = builtin_catalogue()
    result = run_steps(graph, steps_for(options), catalogue.context(options))
    assert "Cast" in str(result)
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    np.testing.assert_allclose(evaluate(result, [x])[0], evaluate(graph, [x])[0], rtol=0.05, atol=0.1)
