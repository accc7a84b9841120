"""The same kernels in other languages: HIP through NVRTC and the PTX interpreter, OpenCL C where an OpenCL is installed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hip_prelude import as_cuda
from kernel_examples import Writer, column_sum, layer_norm, momentum, softmax, tensor, transpose_add

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.errors import BackendUnavailable, CodegenError
from kernelgen.plan import Plan
from kernelgen.stages import lower
from kernelgen.targets import Target, find_target
from kernelgen.targets.gpu.dialects.hip import HIP
from kernelgen.targets.gpu.dialects.opencl import OPENCL
from kernelgen.targets.gpu.dialects.printer import print_program
from kernelgen.targets.gpu.launch.interpret import InterpretedEntry
from kernelgen.tensor.dims import sym
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, INT64, UINT8, DType
from kernelgen.verify import Status, verify
from tests.support.product_kernels import Shape, product

FOLDER = Path(__file__).parents[3] / "golden" / "gpu"


def chain(name: str, given: DType, *steps: tuple[str, DType]) -> KernelDesc:
    """Unary operators one behind the other, or binary ones of the value and the input."""
    w, x = Writer(), tensor("x", 5, 40, dtype=given)
    value = x
    for operator, result in steps:
        operands = (value, x) if operator in ("FloorMod", "FloorDiv", "Maximum", "Pow") else (value,)
        attrs = {"dst_type": result.name} if operator == "Cast" else {}
        value = w.op(operator, *operands, shape=(5, 40), dtype=result, **attrs)
    return w.desc(name, (x,), value)


CASES = {
    "rows": softmax(37, 100),
    "long rows": softmax(3, 1500),
    "rows of unknown length": softmax(sym("M"), sym("N")),
    "several reductions": layer_norm(5, 1024),
    "columns": column_sum(40, 100),
    "transposed": transpose_add(33, 65),
    "in place": momentum(),
    "product": product(Shape(20, 24, 40), "float16"),
    "halves": chain("halves", FLOAT16, ("Exp", FLOAT16), ("Cast", FLOAT32), ("Cast", FLOAT16)),
    "bfloat16": chain("brains", BFLOAT16, ("Exp", BFLOAT16), ("Cast", FLOAT32), ("Cast", BFLOAT16)),
    "doubles": chain("doubles", FLOAT64, ("Tanh", FLOAT64), ("Cast", BFLOAT16), ("Cast", FLOAT64), ("Cast", FLOAT16)),
    "integers": chain("integers", INT64, ("FloorMod", INT64), ("Maximum", INT64), ("FloorDiv", INT64)),
    "bytes": chain("bytes", INT8, ("Abs", INT8), ("Cast", UINT8), ("Cast", INT32), ("Cast", BOOL)),
    "remainders": chain("remainders", FLOAT32, ("FloorMod", FLOAT32), ("FloorDiv", FLOAT32), ("Sign", FLOAT32)),
}
GOLDEN = {"softmax": softmax(8, 1000), "product": product(Shape(64, 64, 64), "float16")}


@pytest.mark.parametrize("dialect", ["hip", "opencl"])
@pytest.mark.parametrize("name", GOLDEN)
def test_texts_are_as_stored(name: str, dialect: str, request: pytest.FixtureRequest) -> None:
    path = FOLDER / f"{name}.{dialect}.txt"
    text = printed(GOLDEN[name], find_target(f"gpu:{dialect}"))
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    assert path.read_text() == text


@pytest.mark.parametrize("name", CASES)
def test_hip_kernels_agree_with_the_reference(name: str) -> None:
    """NVRTC compiles the text behind a few lines that say HIP's names in CUDA C."""
    hip = replace(find_target("gpu:hip"), load=lambda source, nest: InterpretedEntry(as_cuda(source), nest))
    passes(CASES[name], hip)


@pytest.mark.parametrize("name", CASES)
def test_opencl_kernels_agree_with_the_reference(name: str) -> None:
    pytest.importorskip("pyopencl", reason="no OpenCL device: pyopencl, pocl-binary-distribution, siphash24 bring one")
    passes(CASES[name], find_target("gpu:opencl"))


def test_no_dialect_is_asked_for_what_it_cannot_say() -> None:
    """What CUDA's devices do, and these do not."""
    sums, tiles = (lower(desc, Plan(), "gpu").nest for desc in (softmax(3, 1500), CASES["product"]))
    with pytest.raises(CodegenError, match="OpenCL C has no exchange of registers"):
        print_program(sums, OPENCL)
    with pytest.raises(CodegenError, match=r"HIP C\+\+ has no spelling for"):
        print_program(tiles, HIP)


def test_text_for_another_compiler_does_not_run() -> None:
    kernel = kernelgen.compile(softmax(4, 64), "gpu:hip")
    assert "hip/hip_runtime.h" in kernel.source
    with pytest.raises(BackendUnavailable, match="another compiler"):
        kernel(np.zeros((4, 64), np.float32))


def test_an_unknown_dialect_is_named() -> None:
    with pytest.raises(BackendUnavailable, match=r"'metal'.*known: sm_75, .*sm_121, hip, opencl"):
        find_target("gpu:metal")


def printed(desc: KernelDesc, target: Target) -> str:
    return target.emit(lower(desc, Plan(), target.machine).nest)


def passes(desc: KernelDesc, target: Target) -> None:
    record = verify(desc, target.name, compiler=lambda desc, _: kernelgen.compile(desc, target))
    if record.reason == "unavailable":
        pytest.skip(record.message)
    assert (record.status, record.message) == (Status.PASSED, "")
