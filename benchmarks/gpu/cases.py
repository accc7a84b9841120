"""The classes of kernels that are measured on a device, each with one computation in our operators and in torch's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.case import Function, Shape
from graphkernel import ops
from kernelgen.tensor.types import dtype

F16, BF16, F32 = "float16", "bfloat16", "float32"
EPSILON = 1e-5
MEBI = 2**20
TOLERANCE: Mapping[str, float] = {F32: 2e-5, F16: 4e-3, BF16: 3e-2}
"""Of the largest value of the truth: a few roundings of the data type."""

Operands = Mapping[str, tuple[Shape, str]]


@dataclass(frozen=True)
class GpuCase:
    """One class. ``inputs`` are shapes and data types at full size, ``tiny`` the shapes that keep it alive in a test.

    ``rows``: the extents that the first dim of the first input takes where one kernel serves all sizes.
    ``small``: only the call counts, so that calls are timed by the clock on the wall.
    """

    name: str
    inputs: Operands
    tiny: Operands
    ours: Function
    torch: Callable[[ModuleType], Function]
    rows: tuple[int, ...] = ()
    small: bool = False

    def operands(self, is_tiny: bool) -> Operands:
        """Shapes and data types at one of the sizes."""
        return self.tiny if is_tiny else self.inputs

    @property
    def tolerance(self) -> float:
        """The largest error that is let pass, by the narrowest data type."""
        return max(TOLERANCE[kind] for _, kind in self.inputs.values())


def drawn(operands: Operands) -> tuple[np.ndarray, ...]:
    """Uniform values in [-1, 1); in [0.5, 1.5) for what must be positive. The same in every process."""
    generator = np.random.default_rng(0)
    found: list[np.ndarray] = []
    for name, (shape, kind) in operands.items():
        values = generator.random(shape, dtype=np.float32)
        moved = values + np.float32(0.5) if name in ("variance", "square") else values * np.float32(2) - np.float32(1)
        found.append(moved.astype(dtype(kind).numpy))
    return tuple(found)


def size_in_bytes(shape: Shape, kind: str) -> int:
    """Of an array."""
    return prod(shape) * dtype(kind).itemsize


def _vectors(columns: int, kind: str, *names: str) -> Operands:
    return {name: ((columns,), kind) for name in names}


def _chain(x: Any) -> Any:
    return ops.mul(ops.tanh(ops.add(ops.mul(x, 2.0), 1.0)), ops.sigmoid(x))


def _adam(parameter: Any, mean: Any, square: Any, gradient: Any) -> Any:
    new_mean = ops.add(ops.mul(mean, 0.9), ops.mul(gradient, 0.1))
    new_square = ops.add(ops.mul(square, 0.999), ops.mul(ops.mul(gradient, gradient), 0.001))
    step = ops.div(new_mean, ops.add(ops.sqrt(new_square), 1e-8))
    return ops.sub(parameter, ops.mul(step, 1e-3)), new_mean, new_square


def _torch_adam(torch: ModuleType) -> Function:
    def step(parameter: Any, mean: Any, square: Any, gradient: Any) -> Any:
        new_mean = mean * 0.9 + gradient * 0.1
        new_square = square * 0.999 + gradient * gradient * 0.001
        return parameter - new_mean / (torch.sqrt(new_square) + 1e-8) * 1e-3, new_mean, new_square

    return step


def _cross_entropy(x: Any, labels: Any) -> Any:
    return ops.neg(ops.reduce_sum(ops.mul(labels, ops.log_softmax(x, axis=-1)), axis=-1))


def _batch_norm(x: Any, residual: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
    return ops.relu(ops.add(ops.batch_norm(x, scale, bias, mean, variance, epsilon=EPSILON), residual))


def _torch_batch_norm(torch: ModuleType) -> Function:
    normal = torch.nn.functional.batch_norm
    return lambda x, residual, scale, bias, mean, variance: torch.relu(
        normal(x, mean, variance, scale, bias, False, 0.0, EPSILON) + residual
    )


def _attention(x: Any, mask: Any) -> Any:
    return ops.softmax(ops.add(ops.mul(x, 0.125), mask), axis=-1)


def _block(x: Any, bias: Any, gamma: Any, beta: Any) -> Any:
    """Twelve small kernels' worth of a transformer's tail, so that launches are what it costs."""
    for _ in range(4):
        x = ops.gelu(ops.add(x, bias), approximate="tanh")
        x = ops.layer_norm(ops.add(x, bias), gamma, beta, epsilon=EPSILON)[0]
        x = ops.transpose(x, (1, 0))
    return x


def _torch_block(torch: ModuleType) -> Function:
    functions = torch.nn.functional

    def block(x: Any, bias: Any, gamma: Any, beta: Any) -> Any:
        for _ in range(4):
            x = functions.gelu(x + bias, approximate="tanh")
            x = functions.layer_norm(x + bias, x.shape[-1:], gamma, beta, EPSILON).t()
        return x

    return block


def _matmul(x: Any, weight: Any, bias: Any) -> Any:
    return ops.gelu(ops.add(ops.matmul(x, weight), bias), approximate="tanh")


def _torch_matmul(torch: ModuleType) -> Function:
    return lambda x, weight, bias: torch.nn.functional.gelu(x @ weight + bias, approximate="tanh")


def _rows(name: str, ours: Function, torch: Callable[[ModuleType], Function], columns: int, kind: str,
          vectors: tuple[str, ...] = (), rows: int = 16384) -> GpuCase:  # fmt: skip
    """A case over a matrix and vectors along its rows."""
    full, tiny = ({"x": ((r, c), kind), **_vectors(c, kind, *vectors)} for r, c in ((rows, columns), (6, 40)))
    return GpuCase(name, full, tiny, ours, torch)


def _product(name: str, kind: str) -> GpuCase:
    full, tiny = (
        {"x": ((m, k), kind), "weight": ((k, n), kind), "bias": ((n,), kind)}
        for m, k, n in ((8192, 4096, 4096), (8, 16, 24))
    )
    return GpuCase(name, full, tiny, _matmul, _torch_matmul)


CASES: tuple[GpuCase, ...] = (
    _rows("elementwise_chain", _chain, lambda torch: lambda x: torch.tanh(x * 2 + 1) * torch.sigmoid(x), 4096, F32),
    _rows(
        "bias_gelu", lambda x, bias: ops.gelu(ops.add(x, bias), approximate="tanh"),
        lambda torch: lambda x, bias: torch.nn.functional.gelu(x + bias, approximate="tanh"), 12288, F16, ("bias",), 8192,
    ),
    _rows(
        "layer_norm", lambda x, gamma, beta: ops.layer_norm(x, gamma, beta, epsilon=EPSILON)[0],
        lambda torch: lambda x, g, b: torch.nn.functional.layer_norm(x, x.shape[-1:], g, b, EPSILON), 4096, F16,
        ("gamma", "beta"),
    ),
    _rows(
        "rms_norm", lambda x, gamma: ops.rms_norm(x, gamma, epsilon=EPSILON)[0],
        lambda torch: lambda x, gamma: torch.nn.functional.rms_norm(x, x.shape[-1:], gamma, EPSILON), 4096, F16, ("gamma",),
    ),
    _rows("softmax", lambda x: ops.softmax(x, axis=-1), lambda torch: lambda x: torch.softmax(x, -1), 4096, F32),
    GpuCase(
        "cross_entropy", {name: ((8192, 8192), F32) for name in ("x", "labels")},
        {name: ((5, 33), F32) for name in ("x", "labels")}, _cross_entropy,
        lambda torch: lambda x, labels: -(labels * torch.log_softmax(x, -1)).sum(-1),
    ),
    GpuCase(
        "adam", {name: ((16 * MEBI,), F32) for name in ("parameter", "mean", "square", "gradient")},
        {name: ((1000,), F32) for name in ("parameter", "mean", "square", "gradient")}, _adam, _torch_adam,
    ),
    _rows("column_reduce", lambda x: ops.reduce_sum(x, axis=0), lambda torch: lambda x: x.sum(0), 8192, F32),
    GpuCase(
        "full_reduce", {"x": ((128 * MEBI,), F32)}, {"x": ((5000,), F32)},
        lambda x: ops.reduce_sum(ops.mul(x, x)), lambda torch: lambda x: (x * x).sum(),
    ),
    _rows(
        "transpose", lambda x: ops.mul(ops.transpose(x, (1, 0)), 0.5), lambda torch: lambda x: (x.t() * 0.5).contiguous(),
        8192, F32,
    ),
    GpuCase(
        "swiglu", {name: ((8192, 14336), F16) for name in "ab"}, {name: ((4, 33), F16) for name in "ab"},
        lambda a, b: ops.mul(ops.silu(a), b), lambda torch: lambda a, b: torch.nn.functional.silu(a) * b,
    ),
    GpuCase(
        "batch_norm", {"x": ((64, 256, 56, 56), F32), "residual": ((64, 256, 56, 56), F32),
                       **_vectors(256, F32, "scale", "bias", "mean", "variance")},
        {"x": ((2, 3, 5, 5), F32), "residual": ((2, 3, 5, 5), F32), **_vectors(3, F32, "scale", "bias", "mean", "variance")},
        _batch_norm, _torch_batch_norm,
    ),
    GpuCase(
        "attention_epilogue", {"x": ((8, 16, 1024, 1024), F16), "mask": ((8, 1, 1, 1024), F16)},
        {"x": ((2, 3, 5, 8), F16), "mask": ((2, 1, 1, 8), F16)}, _attention,
        lambda torch: lambda x, mask: torch.softmax(x * 0.125 + mask, -1),
    ),
    GpuCase(
        "dynamic_softmax", {"x": ((30000, 2048), F32)}, {"x": ((6, 40), F32)}, lambda x: ops.softmax(x, axis=-1),
        lambda torch: lambda x: torch.softmax(x, -1), rows=(1000, 4097, 30000),
    ),
    GpuCase(
        "small_launch_bound", {"x": ((64, 64), F32), **_vectors(64, F32, "bias", "gamma", "beta")},
        {"x": ((8, 8), F32), **_vectors(8, F32, "bias", "gamma", "beta")}, _block, _torch_block, small=True,
    ),
    _product("matmul_bias_gelu_f16", F16),
    _product("matmul_bias_gelu_bf16", BF16),  # torch's autotuning takes longest
)  # fmt: skip
