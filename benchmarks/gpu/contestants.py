"""Who runs a class on a device: ours, ours as a CUDA graph, torch.compile in two modes, torch eager."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import graphkernel as gk
from benchmarks.gpu.cases import GpuCase, Operands

OURS, CAPTURED, EAGER = "ours", "ours, CUDA graph", "torch eager"
MODES = {"torch.compile": "max-autotune-no-cudagraphs", "torch.compile, CUDA graph": "max-autotune"}
COPY = 256 * 2**20  # bytes: past every cache


@dataclass(frozen=True)
class GpuContestant:
    """A name, a call, what it gives as numpy arrays, and the milliseconds of its first call."""

    name: str
    call: Callable[[], object]
    answer: Callable[[], list[np.ndarray]] = field(repr=False)
    cold_ms: float | None = None


def ours(case: GpuCase, operands: Operands, arrays: Sequence[Any]) -> Iterator[GpuContestant]:
    """Our kernels at opt_level 2 on arrays of the device, of any library; the second time as one CUDA graph."""
    start = time.perf_counter()
    executable = gk.compile(traced(case, operands), opt_level=2, target="gpu")
    executable(*arrays)
    cold = (time.perf_counter() - start) * 1e3
    yield GpuContestant(OURS, lambda: executable(*arrays), lambda: list(map(as_numpy, executable(*arrays))), cold)
    captured = executable.capture(*arrays)
    yield GpuContestant(CAPTURED, captured.replay, lambda: list(map(as_numpy, captured(*arrays))))


def traced(case: GpuCase, operands: Operands) -> Any:
    """The graph of a case; the first extent is a symbol where one kernel is to serve all sizes."""
    specs = [gk.spec(shape, kind) for shape, kind in operands.values()]
    if case.rows:
        (shape, kind), *_ = operands.values()
        specs[0] = gk.spec(("N", *shape[1:]), kind)
    return gk.trace(case.ours, *specs, name=case.name)


def peers(case: GpuCase, torch: Any, arrays: Sequence[Any]) -> Iterator[GpuContestant]:
    """torch on the same memory: compiled in two modes, and eager."""
    function = case.torch(torch)
    for name, mode in MODES.items():
        torch.compiler.reset()
        compiled = torch.inference_mode()(torch.compile(function, mode=mode, dynamic=bool(case.rows), fullgraph=True))
        start = time.perf_counter()
        compiled(*arrays)
        torch.cuda.synchronize()
        cold = (time.perf_counter() - start) * 1e3
        yield _peer(name, compiled, arrays, cold)
    yield _peer(EAGER, torch.inference_mode()(function), arrays, None)


def _peer(name: str, function: Callable[..., Any], arrays: Sequence[Any], cold: float | None) -> GpuContestant:
    def answer() -> list[np.ndarray]:
        found = function(*arrays)
        return [as_numpy(one) for one in (found if isinstance(found, tuple) else (found,))]

    return GpuContestant(name, lambda: function(*arrays), answer, cold)


def on_device(cupy: Any, torch: Any, given: Sequence[np.ndarray]) -> list[Any]:
    """The arrays on the device: torch's tensors where there is torch, else cupy's arrays."""
    if torch is None:
        return [cupy.asarray(array) for array in given]
    raw = [torch.from_numpy(np.ascontiguousarray(array).view(np.uint8)).cuda() for array in given]
    return [one.view(getattr(torch, array.dtype.name)) for one, array in zip(raw, given, strict=True)]


def as_numpy(array: Any) -> np.ndarray:
    """Any contestant's result in float64 on the host."""
    host = array.double().cpu().numpy() if hasattr(array, "double") else array.get()
    return np.asarray(host, np.float64)


def truth(
    case: GpuCase, torch: Any, operands: Operands, given: Sequence[np.ndarray], arrays: Sequence[Any]
) -> list[np.ndarray]:
    """The answer in float64: torch's where there is torch, else what our graph means in numpy."""
    if torch is None:
        results = gk.evaluate(traced(case, operands), list(given))
        return [np.asarray(result, np.float64) for result in results]
    found = case.torch(torch)(*[array.double() for array in arrays])
    return [as_numpy(one) for one in (found if isinstance(found, tuple) else (found,))]


def error(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """The largest difference, relative to the largest value of each output."""
    scales = [max(float(np.max(np.abs(one), initial=0)), np.finfo(np.float64).tiny) for one in expected]
    differences = (np.max(np.abs(a.reshape(b.shape) - b), initial=0) for a, b in zip(found, expected, strict=True))
    return max(float(difference) / scale for difference, scale in zip(differences, scales, strict=True))


def copy_bandwidth(cupy: Any, clock: Callable[[Callable[[], object]], float], size: int = COPY) -> float:
    """Bytes a second, read and written counted, of a copy on the device: the limit of what moves memory."""
    source, target = (cupy.empty((size // 4,), np.float32) for _ in range(2))
    source[...] = 1
    seconds = min(clock(lambda: np.copyto(target, source)) for _ in range(5))
    return 2 * size / seconds
