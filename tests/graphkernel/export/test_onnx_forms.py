"""Every operator as ONNX: onnxruntime computes what its meaning says, or the refusal names it."""

from __future__ import annotations

import numpy as np
import pytest

from graphkernel.errors import OptionError
from graphkernel.ops import OPS
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.types import Sym, parse_type
from tests.support.onnx_out import run_written
from tests.support.operator_samples import Case, cases
from tests.support.operator_values import mixed, positive

BETWEEN_DEVICES = frozenset({
    "AllReduce", "AllGather", "AllToAll", "Broadcast", "ReduceScatter", "Receive", "Send", "MatMulAllReduce",
})  # fmt: skip
"""Written, and run by no onnxruntime for one process: tests/graphkernel/frontends/test_onnx_collectives.py."""

REFUSED = frozenset({
    # complex numbers, which ONNX's runtimes lack
    "CReal", "CImag", "CAbs", "Complex", "CAdd", "CSub", "CMul", "CDiv", "CRealDiv",
    # sparse rows, caches of attention, groups, factorisations, formats of devices
    "CSRMul", "CSRDiv", "CSRGather", "CSRReduceSum", "CSRMV", "CSRMM", "CSR2COO", "COO2CSR", "ReshapeAndCache",
    "PagedAttention", "GroupedMatmul", "SolveTriangular", "Lu", "TransData", "LayoutTransform", "UnsortedSegmentSum",
    "CumProd",
    # numbers drawn by our generator
    "UniformReal", "StandardNormal", "Dropout",
})  # fmt: skip
REFUSED_IN_PART = {("Pool2D", "ceil")}  # margins are as wide as windows there
TOLERANCE = {"float16": 2e-2, "float32": 2e-4}
UNTRIED = frozenset(
    {"bfloat16", "float64", "complex64", "complex128"}
)  # for which onnxruntime has few kernels, or none


@pytest.mark.parametrize("op", [op for op in OPS.values() if op.name not in BETWEEN_DEVICES], ids=str)
def test_onnxruntime_computes_what_the_operator_means(op: Operator) -> None:
    for case in cases(op):
        graph = _graph(case)
        if op.name not in REFUSED and UNTRIED & {value.type.dtype.name for value in (*graph.inputs, *graph.outputs)}:
            continue
        values = positive if case.of.is_integer else mixed
        arrays = case.arrays(values)
        if op.name in REFUSED:
            with pytest.raises(OptionError, match="cannot be written as ONNX"):
                run_written(graph, arrays)
            continue
        with np.errstate(all="ignore"):
            wanted = evaluate(graph, arrays)
        if (op.name, case.sample.attrs.str("round_mode", "")) in REFUSED_IN_PART:
            with pytest.raises(OptionError, match="margins as wide as a window"):
                run_written(graph, arrays)
            continue
        for found, expected in zip(run_written(graph, arrays), wanted, strict=True):
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape), case
            slack = TOLERANCE.get(expected.dtype.name, 0)
            np.testing.assert_allclose(found, expected, rtol=slack, atol=slack, err_msg=str(case))


@pytest.mark.parametrize("name", ["Div", "Mod", "FloorMod", "FloorDiv"])
def test_integers_divided_by_zero_and_by_minus_one_are_what_kernels_give(name: str) -> None:
    x = np.array([7, -7, 7, -7, 5, -5, 0, np.iinfo(np.int32).min], np.int32)
    y = np.array([2, 2, -2, -2, 0, 0, 0, -1], np.int32)
    builder = Builder()
    operands = [builder.parameter(label, parse_type(f"i32[{len(x)}]")) for label in "xy"]
    graph = Graph("g", tuple(operands), (builder.emit(OPS[name], *operands),))
    with np.errstate(all="ignore"):
        (expected,) = evaluate(graph, [x, y])
    (found,) = run_written(graph, [x, y])
    np.testing.assert_array_equal(found[:-1], expected[:-1])
    assert name not in ("Mod", "FloorMod") or found[-1] == 0


def _graph(case: Case) -> Graph:
    builder = Builder()
    inputs = tuple(builder.parameter(f"x{place}", type_) for place, type_ in enumerate(case.types))
    told = {name for value in inputs for name in value.type.symbols}
    wanted = (dim for value in case.sample.attrs.values() for dim in (value if isinstance(value, tuple) else (value,)))
    needed = {name for dim in wanted if isinstance(dim, Sym) for name in dim.symbols}
    attrs = case.sample.attrs if needed <= told else case.attrs
    return Graph("one", inputs, builder.node(case.op, inputs, attrs).outs)
