"""One description for devices from T4 to B200: kernels are sized by what each has, and compile for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.errors import BackendUnavailable, UnsupportedError
from kernelgen.kernel import Kernel
from kernelgen.machines.gpu.device import CAPABILITIES, HOPPER, GpuMachine, capability
from kernelgen.nest.nodes import AsyncCopy, MultiplyFragments
from kernelgen.nest.walk import statements
from kernelgen.plan import Plan
from kernelgen.stages import lower
from kernelgen.targets import find_target
from kernelgen.targets.gpu.dialects.program import launches
from kernelgen.targets.gpu.launch.interpret import InterpretedEntry
from kernelgen.targets.gpu.launch.nvrtc import compile_cuda, version
from kernelgen.tensor.dims import sym
from tests.support import fake_cupy
from tests.support.kernel_examples import column_sum, layer_norm, softmax, transpose_add
from tests.support.product_kernels import Shape, layer, product

N = sym("N")
LARGE = Shape(4096, 4096, 1024)
KERNELS: dict[str, KernelDesc] = {
    "softmax": softmax(256, 8192), "softmax_of_any_size": softmax(sym("M"), N), "layer_norm": layer_norm(128, 4096),
    "layer_norm_of_any_size": layer_norm(N, 1000), "column_sum": column_sum(2048, 512), "transposed": transpose_add(512, 256),
    "product_float16": layer(LARGE, "float16"), "product_bfloat16": layer(LARGE, "bfloat16"),
    "product_float32": product(LARGE), "odd_product": layer(Shape(197, 769, 333), "float16"),
    "product_of_any_size": layer(Shape(N, 1024, 512), "float16"), "full_sum": column_sum(1 << 20, 1),
}  # fmt: skip
SMALL: dict[str, KernelDesc] = {
    "softmax": softmax(5, 300), "layer_norm": layer_norm(6, 130), "product": layer(Shape(70, 66, 48), "float16"),
    "turned": product(Shape(33, 40, 64, (2,), transpose_a=True, transpose_b=True), "float16"),
    "bfloat16": layer(Shape(40, 40, 40), "bfloat16"), "odd": layer(Shape(19, 33, 21), "float16"),
}  # fmt: skip


def has_compiler() -> bool:
    try:
        version()
    except BackendUnavailable:
        return False
    return True


needs_compiler = pytest.mark.skipif(not has_compiler(), reason="NVRTC is not installed")


def dynamic(kernel: Kernel) -> int:
    return max(launch.most_dynamic_shared for launch in launches(kernel.nest))


@needs_compiler
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("number", [75, 80, 86, 89, 90, 100, 120])
def test_kernels_compile_for_each_device_and_fit_it(number: int, name: str) -> None:
    kernel = kernelgen.compile(KERNELS[name], f"gpu:sm_{number}")
    compiled = compile_cuda(kernel.source, kernel.nest.name, f"sm_{number}")
    declared = max(used.shared for used in compiled.resources.values())
    assert max(declared, dynamic(kernel)) <= CAPABILITIES[number].shared_bytes
    assert kernel.proof.about("room")


@needs_compiler
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("number", [75, 86])
def test_kernels_for_small_devices_are_right(number: int, name: str) -> None:
    desc = SMALL[name]
    kernel = kernelgen.compile(desc, f"gpu:sm_{number}")
    assert isinstance(kernel.entry, InterpretedEntry)
    assert kernel.entry.arch == f"sm_{number}"
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(-1, 1, [int(str(d)) for d in t.shape]).astype(t.dtype.numpy) for t in desc.inputs]
    exact = 1e-5 if desc.inputs[0].dtype.itemsize == 4 else 2e-2
    for found, expected in zip(kernel(*inputs), kernelgen.reference(desc)(*inputs), strict=True):
        np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), rtol=exact, atol=exact)


def test_a_tile_of_a_product_has_as_many_stages_as_the_device_holds() -> None:
    asked = {number: dynamic(kernelgen.compile(KERNELS["product_float16"], f"gpu:sm_{number}")) for number in (86, 90)}
    assert asked == {86: 81_408, 90: 108_544}


def test_a_device_without_asynchronous_copies_or_matrices_of_a_type_gets_none() -> None:
    half, brain = (
        list(statements(kernelgen.compile(KERNELS[f"product_{kind}"], "gpu:sm_75").nest.body))
        for kind in ("float16", "bfloat16")
    )
    assert not any(isinstance(part, AsyncCopy) for part in (*half, *brain))
    assert any(isinstance(part, MultiplyFragments) for part in half)
    assert not any(isinstance(part, MultiplyFragments) for part in brain)


def test_a_kernel_that_does_not_fit_is_refused_when_it_is_made() -> None:
    with pytest.raises(
        UnsupportedError, match=r"too-large.*bytes of shared memory and 256 threads, a device has 20000"
    ):
        lower(KERNELS["product_float16"], Plan(), replace(HOPPER, shared_bytes=20_000))


@pytest.mark.parametrize("number", [75, 86, 100])
def test_the_device_at_hand_is_asked(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cupy.install(monkeypatch).capability = number
    for name in ("product_float16", "softmax_of_any_size"):
        made = kernelgen.compile(KERNELS[name], "gpu")
        assert made.target == "gpu"
        assert made.source == kernelgen.compile(KERNELS[name], f"gpu:sm_{number}").source


def test_without_a_device_kernels_are_those_of_the_usual_one() -> None:
    assert find_target("gpu").machine == find_target("gpu:sm_90").machine == GpuMachine()


def test_a_capability_that_is_not_known_is_taken_for_the_one_below() -> None:
    assert capability(88) == CAPABILITIES[87]
    assert capability(999) == CAPABILITIES[max(CAPABILITIES)]
    with pytest.raises(BackendUnavailable, match="no device or dialect 'sm_88'; known: sm_75, sm_80"):
        find_target("gpu:sm_88")
