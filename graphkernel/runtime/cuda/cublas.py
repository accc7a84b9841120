"""Products by cuBLAS through its C interface, which can be recorded into a CUDA graph; cupy's own calls of it cannot.

The library is the one that cupy has loaded, on cupy's handle of the thread and the device. Each stream gets a workspace of
its own, as graphs that were recorded on different streams may run at once.
Source: cuBLAS Library documentation, "cublasGemmStridedBatchedEx", "cublasSetWorkspace" and "CUDA Graphs Support".
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from kernelgen.tensor.types import Attrs

WORKSPACE = 32 << 20  # bytes: what cuBLAS asks for on devices of Hopper's size
DEFAULT_ALGORITHM = -1
COMPUTE_32F, COMPUTE_64F = 68, 70  # sums in float32, without rounding float32 to a shorter type; in float64
KINDS = {
    np.dtype(np.float16): (2, COMPUTE_32F), np.dtype(ml_dtypes.bfloat16): (14, COMPUTE_32F),
    np.dtype(np.float32): (0, COMPUTE_32F), np.dtype(np.float64): (1, COMPUTE_64F),
}  # fmt: skip
"""Data type -> cudaDataType_t and cublasComputeType_t."""


def find_cublas(cupy: Any) -> Cublas | None:
    """The library that cupy uses; None where the process cannot load it."""
    cupy.cuda.device.get_cublas_handle()  # loads the library, so that the name below is that of a loaded one
    library = load_library(cupy.cuda.runtime.runtimeGetVersion() // 1000)
    return None if library is None else Cublas(cupy, library)


def load_library(major: int) -> Any:
    """The shared library for a major version of CUDA, as ctypes gives it; None where there is none."""
    try:
        return ctypes.CDLL(f"libcublas.so.{major}")
    except OSError:
        return None


@dataclass(eq=False)
class Cublas:
    """cuBLAS on cupy's arrays and on cupy's current stream."""

    cupy: Any = field(repr=False)
    library: Any = field(repr=False)
    _workspaces: dict[tuple[int, int], Any] = field(default_factory=dict[tuple[int, int], Any], repr=False)

    def takes(self, operands: Sequence[Any]) -> bool:
        """Whether these are operands of one data type of cuBLAS: two, with the same batch dims or one without any, and
        perhaps a bias.
        """
        if len({operand.dtype for operand in operands}) != 1 or operands[0].dtype not in KINDS:
            return False
        a, b = operands[:2]
        same = a.shape[:-2] == b.shape[:-2] or any(math.prod(one.shape[:-2]) == 1 for one in (a, b))
        return same and all(operand.ndim >= 2 and operand.size for operand in (a, b))

    def product(self, a: Any, b: Any, *bias: Any, attrs: Attrs) -> Any:
        """``a @ b`` over the last two dims, each transposed first where the attributes ``transpose_a``, ``transpose_b``
        say so, plus a ``bias`` of each column; sums in float32, or in float64 of float64, rounded once. Raises
        RuntimeError where cuBLAS fails.
        """
        a, b = (self.cupy.ascontiguousarray(operand) for operand in (a, b))
        flips = attrs.bool("transpose_a", False), attrs.bool("transpose_b", False)
        (rows, inner), (_, columns) = (
            one.shape[-2:][::-1] if flip else one.shape[-2:] for one, flip in zip((a, b), flips, strict=True)
        )
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        out = self.cupy.empty((*batch, rows, columns), a.dtype)
        for start in bias:
            np.copyto(out, start)
        # Row-major C = A B is column-major C' = B' A': the operands change places, and a stored row is a leading dim.
        operands = [self._operand(one, flip) for one, flip in ((b, flips[1]), (a, flips[0]))]
        self._call(operands, (columns, rows, inner), out, math.prod(batch), bool(bias))
        return out

    def _operand(self, array: Any, flip: bool) -> tuple[int, Any, int, int]:
        """Whether it is transposed, the array, the leading dim, and the elements from one matrix to the next."""
        rows, columns = array.shape[-2:]
        return int(flip), array, columns, 0 if math.prod(array.shape[:-2]) == 1 else rows * columns

    def _call(
        self,
        operands: Sequence[tuple[int, Any, int, int]],
        extents: Sequence[int],
        out: Any,
        batch: int,
        adds: bool,
    ) -> None:
        """``adds``: the product is added to what is there."""
        kind, compute = KINDS[out.dtype]
        scale = ctypes.c_double if compute == COMPUTE_64F else ctypes.c_float
        one, kept = scale(1), scale(adds)
        passed: list[Any] = [ctypes.byref(one)]
        for position, (_, array, leading, step) in enumerate(operands):
            passed += [ctypes.c_void_p(array.data.ptr), kind, leading, ctypes.c_longlong(step)]
            passed += [ctypes.byref(kept)] if position else []
        columns, rows, _ = extents
        passed += [ctypes.c_void_p(out.data.ptr), kind, columns, ctypes.c_longlong(rows * columns), batch]
        flips = [flip for flip, *_ in operands]
        handle = self._handle()
        _check(self.library.cublasGemmStridedBatchedEx(handle, *flips, *extents, *passed, compute, DEFAULT_ALGORITHM))

    def _handle(self) -> ctypes.c_void_p:
        """cupy's, on the current stream, with that stream's workspace."""
        cuda = self.cupy.cuda
        handle, stream = ctypes.c_void_p(cuda.device.get_cublas_handle()), cuda.get_current_stream().ptr
        key = cuda.runtime.getDevice(), stream
        if key not in self._workspaces:
            self._workspaces[key] = self.cupy.empty((WORKSPACE,), np.uint8)
        _check(self.library.cublasSetStream_v2(handle, ctypes.c_void_p(stream)))
        address = ctypes.c_void_p(self._workspaces[key].data.ptr)
        _check(self.library.cublasSetWorkspace_v2(handle, address, ctypes.c_size_t(WORKSPACE)))
        return handle


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"cuBLAS fails with status {status}")
