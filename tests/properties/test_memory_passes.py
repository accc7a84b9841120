"""All passes about memory and about kernels side by side at once, on random programs, compiled and run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_programs import programs

import graphkernel as gk
from kernelgen.tensor.graph import Graph

Program = tuple[Graph, list[np.ndarray[Any, Any]]]
FLAGS = (
    "--enable_auto_tensor_inplace=true --recompute_increment_threshold=1 --recompute_peak_threshold=1 "
    "--enable_parallel_fusion=true --parallel_ops_level=1 --enable_parallel_op_combine=true "
    "--enable_pass=highlevelopt2.stitch_atomic_clean,highlevelopt2.csr_atomic_add_process"
)


@pytest.mark.parametrize("target", ["gpu", "ascend"])
@given(program=programs(), limit=st.sampled_from([1, 2, 3, 200]))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_together_they_keep_the_numbers_and_the_inputs(target: str, program: Program, limit: int) -> None:
    graph, arrays = program
    flags = FLAGS if target == "gpu" else FLAGS.replace("--enable_auto_tensor_inplace=true ", "")
    fused = gk.optimize(graph, opt_level=3, target=target, flags=f"{flags} --composite_op_limit_size={limit}")
    assert gk.parse(str(fused)) == fused
    executable = gk.compile(fused)
    assert executable.report.fallbacks == ()
    expected = gk.evaluate(graph, arrays)
    for _ in range(2):
        given_arrays = [array.copy() for array in arrays]
        for got, want in zip(executable(*given_arrays), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)
        for array, before in zip(given_arrays, arrays, strict=True):
            np.testing.assert_array_equal(array, before)
