"""A stand-in for cuBLAS: matrices in column-major order at addresses of the host, in numpy's own terms."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

KINDS = {0: np.float32, 1: np.float64, 2: np.float16, 14: ml_dtypes.bfloat16}
SUMS = {68: np.float32, 70: np.float64}


@dataclass(eq=False)
class FakeCublas:
    """``log`` holds the extents m, n, k and the count of each product; ``submit`` is the device's queue."""

    submit: Any
    log: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    stream: int | None = None
    workspace: int = 0

    def cublasSetStream_v2(self, handle: Any, stream: Any) -> int:
        self.stream, self.workspace = stream.value, 0
        return 0

    def cublasSetWorkspace_v2(self, handle: Any, address: Any, size: Any) -> int:
        self.workspace = size.value if address.value else 0
        return 0

    def cublasGemmStridedBatchedEx(
        self, handle: Any, transa: int, transb: int, m: int, n: int, k: int, alpha: Any, a: Any, a_kind: int, lda: int,
        a_step: Any, b: Any, b_kind: int, ldb: int, b_step: Any, beta: Any, c: Any, c_kind: int, ldc: int, c_step: Any,
        count: int, compute: int, algorithm: int,
    ) -> int:  # fmt: skip
        """C = op(A) op(B): op transposes where its flag is 1."""
        if not self.workspace:
            return 1
        self.log.append((m, n, k, count))
        adds = beta._obj.value

        def run() -> None:
            for number in range(count):
                left = _matrix(a, a_kind, lda, k if not transa else m, a_step.value * number)
                right = _matrix(b, b_kind, ldb, n if not transb else k, b_step.value * number)
                left = (left.T if transa else left)[:m, :k].astype(SUMS[compute])
                right = (right.T if transb else right)[:k, :n].astype(SUMS[compute])
                result = _matrix(c, c_kind, ldc, n, c_step.value * number)
                kept = result[:m].astype(SUMS[compute]) if adds else 0
                result[:m] = (left @ right + kept).astype(KINDS[c_kind])

        self.submit(run)
        return 0


def _matrix(address: Any, kind: int, leading: int, columns: int, offset: int) -> np.ndarray:
    """``leading`` x ``columns`` elements, column after column."""
    dtype = np.dtype(KINDS[kind])
    size = leading * columns * dtype.itemsize
    memory = (ctypes.c_char * size).from_address(address.value + offset * dtype.itemsize)
    return np.frombuffer(memoryview(memory).cast("B"), np.uint8).view(dtype).reshape(columns, leading).T
