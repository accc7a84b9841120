"""Older processors, stood in for by the one that runs the tests."""

from __future__ import annotations

import platform

import numpy as np
import pytest

from kernelgen.nest.nodes import Nest
from kernelgen.targets.cpu.emit import emit_for
from kernelgen.targets.cpu.runtime.entry import ENTRY, CpuEntry, entry_of
from kernelgen.targets.cpu.runtime.llvm import compile_object, detect_host, link
from kernelgen.targets.cpu.runtime.team import team
from kernelgen.targets.cpu.text.host import Host

HOSTS = {
    "avx2": Host("x86-64-v3", frozenset(("avx", "avx2", "fma", "f16c", "sse4.1"))),
    "avx2 without f16c": Host("x86-64-v2", frozenset(("avx", "avx2", "fma", "sse4.1"))),
    "sse4": Host("x86-64-v2", frozenset(("sse4.1",))),
    "plain": Host("x86-64", frozenset()),
}

needs_avx2 = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or "avx2" not in detect_host().features,
    reason="these processors can only be stood in for by an x86-64 one with AVX2",
)


def entry_on(host: Host, nest: Nest) -> CpuEntry:
    image = compile_object(emit_for(nest, host), host)
    return entry_of(nest, link(image, (ENTRY,), team().functions))


def run_on(host: Host, nest: Nest, *arrays: np.ndarray) -> None:
    entry_on(host, nest)(arrays)
