"""What compilations leave in memory; ``python -m tests.memory`` measures it over thousands."""

import ctypes
import gc

import pytest

from tests.memory import compile_and_run

ALLOWED = 3000
"""Bytes for each compilation: LLVM's callbacks of one run, 1,488, and islpy's handles of what was consumed, 32 each."""


class _Allocated(ctypes.Structure):
    """What ``mallinfo2`` of the GNU C library gives: ten sizes, of which the eighth is what is in use."""

    _fields_ = [(f"size{k}", ctypes.c_size_t) for k in range(10)]


def _allocated() -> int:
    process = ctypes.CDLL(None)
    if not hasattr(process, "mallinfo2"):
        pytest.skip("the C library does not say what is allocated")
    process.mallinfo2.restype = _Allocated
    gc.collect()
    return process.mallinfo2().size7


def test_a_compilation_leaves_little_behind(monkeypatch):
    monkeypatch.setenv("GRAPHKERNEL_CACHE_DIR", "/dev/null/no folder")
    for _ in range(20):
        compile_and_run(300)
    before = _allocated()
    for _ in range(64):
        compile_and_run(300)
    assert (_allocated() - before) / 64 < ALLOWED
