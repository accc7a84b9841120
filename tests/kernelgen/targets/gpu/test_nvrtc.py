"""NVRTC: products, resources and errors of a compilation."""

from __future__ import annotations

import pytest

from kernelgen.errors import BackendUnavailable, CodegenError
from kernelgen.targets.gpu.launch import nvrtc
from kernelgen.targets.gpu.launch.nvrtc import Resources, resources_of
from tests.support import cuda_kernels as kernels
from tests.support.cuda_runs import compiled

BROKEN = """extern "C" __global__ void broken(float* x) {
  x[0] = 1;
  x[1] = nothing;
}
"""
SPILLING = """
extern "C" __global__ void __launch_bounds__(1024, 2) crowd(float* x) {
  float v[64];
  #pragma unroll
  for (int k = 0; k < 64; ++k) v[k] = x[threadIdx.x + 1024 * k];
  for (int round = 0; round < 3; ++round)
    #pragma unroll
    for (int k = 0; k < 64; ++k) v[k] = v[k] * v[(k * 7 + 1) % 64] + x[k];
  #pragma unroll
  for (int k = 0; k < 64; ++k) x[threadIdx.x + 1024 * k] = v[k];
}
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_products(arch: str) -> None:
    result = compiled(kernels.ROW_SUM, arch)
    assert f".target {arch}" in result.ptx
    assert result.cubin[:4] == b"\x7fELF"
    (resources,) = result.resources.values()
    assert resources.shared == 32
    assert 0 < resources.registers < 64
    assert resources.spill_stores == 0


def test_spills_are_reported() -> None:
    (resources,) = compiled(SPILLING).resources.values()
    assert resources.registers <= 32
    assert resources.spill_stores > 0
    assert resources.spill_loads > 0


def test_text_is_the_same_each_time() -> None:
    compiled(kernels.ADD)
    assert nvrtc.compile_cuda(kernels.ADD, "test_kernel", "sm_80").ptx == compiled(kernels.ADD).ptx


def test_error_names_kernel_and_line() -> None:
    compiled(kernels.ADD)
    with pytest.raises(CodegenError) as caught:
        nvrtc.compile_cuda(BROKEN, "fused_7", "sm_90")
    assert str(caught.value) == "kernel 'fused_7', sm_90, line 3: identifier \"nothing\" is undefined: x[1] = nothing;"
    assert caught.value.source == BROKEN


def test_error_of_the_assembler_is_shown() -> None:
    compiled(kernels.ADD)
    source = 'extern "C" __global__ void k(int* x) { asm volatile("no.such.thing;"); }'
    with pytest.raises(CodegenError, match=r"(?s)kernel 'k', sm_90: NVRTC rejects it.*line 25.*'no'"):
        nvrtc.compile_cuda(source, "k", "sm_90")


def test_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "_library_folders", lambda: iter(()))
    nvrtc._library.cache_clear()
    try:
        with pytest.raises(BackendUnavailable, match=r'pip install "nvidia-cuda-nvrtc==13\.0\.\*"'):
            nvrtc.compile_cuda(kernels.ADD, "add")
    finally:
        nvrtc._library.cache_clear()


def test_missing_headers_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(kernels.ADD)
    monkeypatch.setattr(nvrtc, "_include_options", list)
    with pytest.raises(BackendUnavailable, match=r'pip install "nvidia-cuda-runtime==13\.0\.\*"'):
        nvrtc.compile_cuda(kernels.HALVES, "halves")


def test_resource_report_is_read_for_each_kernel() -> None:
    log = """ptxas info    : Compiling entry function 'a' for 'sm_90'
ptxas info    : Function properties for a
    32 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 29 registers, used 1 barriers, 128 bytes smem
ptxas info    : Compiling entry function 'b' for 'sm_90'
ptxas info    : Used 7 registers
"""
    assert resources_of(log) == {"a": Resources(29, 128, 32, 8, 12), "b": Resources(7)}
