"""CUDA text for tests: compiled once for each architecture, run by the PTX interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from kernelgen.errors import BackendUnavailable
from kernelgen.simulators.ptx import Report, run
from kernelgen.targets.gpu.launch.nvrtc import Compiled, compile_cuda


@cache
def compiled(source: str, arch: str = "sm_80") -> Compiled:
    """One kernel's products; the test is skipped, with what to install, where NVRTC is missing."""
    try:
        return compile_cuda(source, "test_kernel", arch)
    except BackendUnavailable as error:
        pytest.skip(str(error))


def launch(source: str, grid: Any, block: Any, arguments: Sequence[Any], arch: str = "sm_80", **options: Any) -> Report:
    """Compiles and interprets."""
    return run(compiled(source, arch).ptx, grid, block, arguments, **options)


def clean(source: str, grid: Any, block: Any, arguments: Sequence[Any], **options: Any) -> Report:
    """The same, and nothing may be found."""
    report = launch(source, grid, block, arguments, **options)
    assert report.clean, report
    return report
