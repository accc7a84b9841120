"""Tensors of torch go in and come out; what would be lost in silence is refused with what to do."""
# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as the_library

import graphkernel as gk
from graphkernel import ops
from graphkernel.errors import FrontendError, GraphKernelError, InputError

torch: Any = the_library


@gk.jit
def twice(x: Any) -> Any:
    return ops.add(x, x)


@pytest.mark.parametrize("of", ["float16", "bfloat16", "float32", "float64", "int32", "int64"])
def test_a_tensor_gives_a_tensor_of_its_type(of: str) -> None:
    x = torch.arange(12).reshape(3, 4).to(getattr(torch, of))
    for given in (x, x.T, x[::2, 1:], x[0, 0]):
        found = twice(given)
        assert found.dtype == x.dtype
        assert torch.equal(found, given + given)


@pytest.mark.parametrize("of", ["bfloat16", "float32"])
def test_a_result_is_written_where_it_is_wanted(of: str) -> None:
    x = torch.ones(4, dtype=getattr(torch, of))
    place = torch.zeros_like(x)
    assert twice(x, out=(place,)) is place
    assert torch.equal(place, x + x)
    with pytest.raises(
        InputError, match=r"out= takes a tuple of arrays, one for each output: out=\(array,\), got Tensor"
    ):
        twice(x, out=place)


def test_inputs_are_not_copied() -> None:
    @gk.jit
    def count(x: Any) -> Any:
        return ops.assign(x, x + 1.0)

    for dtype in (torch.float32, torch.bfloat16):
        x = torch.zeros(4, dtype=dtype)
        count(x)
        assert torch.equal(x, torch.ones(4, dtype=dtype))


def test_gradients_do_not_end_in_silence() -> None:
    exe = gk.compile(gk.trace(lambda x: x * 2.0, gk.spec(3)))
    parameter = torch.nn.Parameter(torch.ones(3))
    for call in (exe, twice):
        with pytest.raises(
            InputError, match=r"requires a gradient, .* give x\.detach\(\), or call inside of torch\.no_grad"
        ):
            call(parameter)
        with torch.no_grad():
            call(parameter)
    assert torch.equal(exe(parameter.detach())[0], torch.full((3,), 2.0))


@pytest.mark.parametrize(("given", "message"), [
    (lambda: torch.ones(3, device="meta"), "is a meta tensor"),
    (lambda: torch.ones(3, 3).to_sparse(), r"is a torch\.sparse_coo tensor"),
    (lambda: torch.ones(3, dtype=torch.complex64).conj(), r"resolve_neg\(\)\.resolve_conj\(\)"),
    (lambda: torch.ones(3, dtype=torch.complex64).conj().imag, r"resolve_neg\(\)\.resolve_conj\(\)"),
])  # fmt: skip
def test_what_has_no_plain_memory_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        twice(given())
    with pytest.raises(InputError, match=f"^input x .*{message}"):
        gk.compile(gk.trace(lambda x: x, gk.spec(3)))(given())


def test_types_that_kernels_lack_are_named() -> None:
    with pytest.raises(GraphKernelError, match="float8_e4m3fn"):
        twice(torch.ones(3).to(torch.float8_e4m3fn))


def test_specs_understand_torch() -> None:
    assert str(gk.spec(torch.Size((3, 4)), torch.bfloat16)) == "bf16[3, 4]"
    assert str(gk.trace(lambda x: x, torch.ones(3)).inputs[0].type) == "f32[3]"


@pytest.mark.parametrize(("function", "message"), [
    (lambda x: torch.exp(x), r"torch's exp takes no traced tensor; write ops\.exp\(x\)"),
    (lambda x: torch.nn.functional.relu(x), r"torch's relu takes no traced tensor; write ops\.relu\(x\)"),
    (lambda x: torch.cat([x, x]), r"torch's cat takes no traced tensor; write ops\.concat\(\[x, y\], axis=0\)"),
    (lambda x: torch.ones(3) + x, "torch's add takes no traced tensor"),
    (lambda x: torch.nn.ReLU()(x), r"write ops\.relu\(x\)"),
])  # fmt: skip
def test_torchs_functions_are_answered_with_ours(function: Any, message: str) -> None:
    with pytest.raises(FrontendError, match=message):
        gk.trace(function, gk.spec(3))


def test_modules_are_exported() -> None:
    for given in (torch.nn.Linear(3, 3), torch.nn.Sequential(torch.nn.ReLU())):
        with pytest.raises(FrontendError, match=r"is a module of torch, .*torch\.onnx\.export\(module"):
            gk.trace(given, gk.spec(3))
        with pytest.raises(FrontendError, match="is a module of torch"):
            gk.jit(given)(np.ones(3, np.float32))
