"""Numbers at the ends of their types: integers wrap around, arcs of infinity, types without an instruction are refused."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, tensor

from kernelgen.driver import compile
from kernelgen.errors import UnsupportedError
from kernelgen.machines.ascend.machines import ASCEND_910B
from kernelgen.semantics import reference
from kernelgen.targets.ascend.lower.element_types import check_element_types
from kernelgen.tensor.dtypes import FLOAT16, FLOAT32, INT32, INT64, DType
from tests.support.kernel_builder import KernelBuilder


@pytest.mark.parametrize("name", ["ReducePrd", "ReduceSum"])
def test_integers_wrap_around_in_sums_and_products(name: str) -> None:
    w, x = Writer(), tensor("x", 64, dtype=INT32)
    desc = w.desc("wrapped", (x,), w.op(name, x, shape=(), axis=(0,), keep_dims=False))
    values = np.random.default_rng(0).integers(-(1 << 31), 1 << 31, 64).astype(np.int32) | 1
    kernel = compile(desc, "ascend")
    assert "static_cast<uint32_t>" in kernel.source  # signed numbers must not overflow in C++
    np.testing.assert_array_equal(kernel(values)[0], reference(desc)(values)[0])


@pytest.mark.parametrize("dtype", [FLOAT16, FLOAT32])
def test_arc_tangent_of_what_has_no_finite_square(dtype: DType) -> None:
    w, x = Writer(), tensor("x", 8, dtype=dtype)
    desc = w.desc("arcs", (x,), w.op("Atan", x, shape=(8,)))
    largest = np.finfo(dtype.numpy).max
    values = np.array([-np.inf, -largest, -1e4, -1.0, 0.0, 1e4, largest, np.inf], dtype.numpy)
    (found,) = compile(desc, "ascend")(values)
    np.testing.assert_allclose(found.astype(float), np.arctan(values.astype(float)), rtol=4 * np.finfo(dtype.numpy).eps)


def test_sign_of_an_empty_maximum_of_int64() -> None:
    w, x = Writer(), tensor("x", 0, 3, dtype=INT64)
    lowest = w.op("ReduceMax", x, shape=(), axis=(0, 1), keep_dims=False)
    desc = w.desc("sign", (x,), w.op("Sign", lowest, shape=()))
    (found,) = compile(desc, "ascend")(np.zeros((0, 3), np.int64))
    assert found == -1


@pytest.mark.parametrize(
    ("operation", "dtypes"), [("Relu", (INT32, INT64)), ("Relu", (INT64, INT64)), ("Exp", (INT32, INT32))]
)
def test_types_without_an_instruction_are_found_when_a_kernel_is_made(
    operation: str, dtypes: tuple[DType, DType]
) -> None:
    kernel = KernelBuilder("k", ())
    dst, src = (kernel.local_tensor(f"t{k}", dtype, k * 512, 64) for k, dtype in enumerate(dtypes))
    kernel.emit(operation, dst=dst, src=src, count=64)
    with pytest.raises(UnsupportedError, match=f"{operation} of int"):
        check_element_types(kernel.build(), ASCEND_910B)
