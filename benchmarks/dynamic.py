"""``python -m benchmarks dynamic --json OUT``: one kernel for all sizes, against kernels that know their sizes.

Each class is one kernel over symbols, compiled once. At two sizes, one within the caches and one far beyond them, it runs in
turns with the kernel of the same description specialised to that size, on the same arrays; the ratio is ours over static.
Kernels are called as the runtime calls them: on arrays that are there, workspaces included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import graphkernel as gk
import kernelgen
from benchmarks.contestants import Contestant
from benchmarks.machine import aligned
from benchmarks.measure import Spread, Times, interleaved, ratio
from graphkernel import ops
from graphkernel.handoff import to_desc
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.specialize import specialize
from kernelgen.kernel import Kernel
from kernelgen.samples.inputs import draw
from kernelgen.tensor.dtypes import DType
from kernelgen.verify.compare import compare

Arrays = list[np.ndarray[Any, Any]]
Shape = tuple[int | str, ...]
Sizes = Mapping[str, int]
DYNAMIC, STATIC = "dynamic", "static"
EPSILON = 1e-5
BATCH_SECONDS = 0.002
"""Short, so that among many rounds some are not disturbed."""


@dataclass(frozen=True)
class Dynamic:
    """One class of kernels: a body over symbolic shapes, and sizes within the caches, beyond them and for tests."""

    body: Callable[..., Any]
    shapes: Sequence[Shape]
    within: Sizes
    beyond: Sizes
    tiny: Sizes

    def desc(self, name: str) -> KernelDesc:
        """The one kernel that the body becomes; a matrix product alone is one too. Raises ValueError when it becomes more."""
        specs = [gk.spec(shape, "float32") for shape in self.shapes]
        traced = gk.trace(self.body, *specs, name=name)
        if [node.op.name for node in traced.operators] == ["MatMul"]:
            return to_desc(traced)
        graph = gk.optimize(traced, opt_level=2)
        kernels = [node for node in graph.operators if node.body is not None]
        if len(kernels) != 1:
            raise ValueError(f"{name} became {len(kernels)} kernels")
        return to_desc(kernels[0])


def _batch_norm(x: Any, residual: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
    return ops.relu(ops.add(ops.batch_norm(x, scale, bias, mean, variance, epsilon=EPSILON), residual))


def _binary_cross_entropy(x: Any, y: Any) -> Any:
    tail = ops.log1p(ops.exp(ops.neg(ops.abs(x))))
    return ops.reduce_mean(ops.add(ops.sub(ops.maximum(x, 0.0), ops.mul(x, y)), tail))


def _adam(var: Any, m: Any, v: Any, gradient: Any) -> Any:
    return ops.adam(var, m, v, 0.9, 0.999, 1e-3, 0.9, 0.999, 1e-8, gradient)


def _matrix(rows: int, columns: int) -> Sizes:
    return {"N": rows, "M": columns}


def _product(side: int) -> Sizes:
    return dict.fromkeys("NKM", side)


def _image(images: int, channels: int, side: int) -> Sizes:
    return {"B": images, "C": channels, "H": side, "W": side}


MATRIX, ROW, VECTOR, IMAGE, CHANNEL = ("N", "M"), ("M",), ("N",), ("B", "C", "H", "W"), ("C",)
SMALL, TINY = _matrix(256, 512), _matrix(5, 37)

CLASSES: Mapping[str, Dynamic] = {
    "chain": Dynamic(
        lambda x: ops.add(ops.mul(ops.abs(x), 2.0), 1.0), [MATRIX], SMALL, _matrix(4096, 4096), TINY,
    ),
    "bias_gelu": Dynamic(
        lambda x, bias: ops.gelu(ops.add(x, bias), approximate="tanh"), [MATRIX, ROW], SMALL, _matrix(4096, 3072), TINY,
    ),
    "swiglu": Dynamic(
        lambda a, b: ops.mul(ops.silu(a), b), [MATRIX, MATRIX], SMALL, _matrix(4096, 4096), TINY,
    ),
    "softmax": Dynamic(
        lambda x: ops.softmax(x, axis=-1), [MATRIX], SMALL, _matrix(12288, 512), TINY,
    ),
    "layer_norm": Dynamic(
        lambda x, gamma, beta: ops.layer_norm(x, gamma, beta, epsilon=EPSILON)[0], [MATRIX, ROW, ROW],
        SMALL, _matrix(8192, 768), TINY,
    ),
    "rms_norm": Dynamic(
        lambda x, gamma: ops.rms_norm(x, gamma, epsilon=EPSILON)[0], [MATRIX, ROW], SMALL, _matrix(4096, 4096), TINY,
    ),
    "column_sum": Dynamic(
        lambda x: ops.reduce_sum(x, axis=0), [MATRIX], SMALL, _matrix(8192, 4096), TINY,
    ),
    "full_sum": Dynamic(
        lambda x: ops.reduce_sum(ops.mul(x, x)), [MATRIX], SMALL, _matrix(8192, 4096), TINY,
    ),
    "cross_entropy": Dynamic(
        _binary_cross_entropy, [VECTOR, VECTOR], {"N": 1 << 16}, {"N": 8 << 20}, {"N": 101},
    ),
    "softmax_cross_entropy": Dynamic(
        lambda x, y: ops.softmax_cross_entropy_with_logits(x, y)[0], [MATRIX, MATRIX], SMALL, _matrix(4096, 4096), TINY,
    ),
    "transpose": Dynamic(
        lambda x: ops.add(ops.transpose(x, (1, 0)), 1.0), [MATRIX], SMALL, _matrix(4096, 3072), TINY,
    ),
    "transpose_heads": Dynamic(
        lambda x: ops.mul(ops.transpose(x, (0, 2, 1, 3)), 0.125), [("B", "S", "H", "D")],
        {"B": 2, "S": 128, "H": 8, "D": 64}, {"B": 16, "S": 512, "H": 12, "D": 64}, {"B": 2, "S": 5, "H": 3, "D": 9},
    ),
    "batch_norm": Dynamic(
        _batch_norm, [IMAGE, IMAGE, CHANNEL, CHANNEL, CHANNEL, CHANNEL],
        _image(4, 32, 28), _image(32, 256, 56), _image(2, 3, 5),
    ),
    "adam": Dynamic(_adam, [MATRIX] * 4, SMALL, _matrix(4096, 2048), TINY),
    "matmul": Dynamic(
        ops.matmul, [("N", "K"), ("K", "M")], _product(192), _product(768), {"N": 5, "K": 7, "M": 37},
    ),
}  # fmt: skip


def run(names: Sequence[str] = (), *, tiny: bool, rounds: int = 61) -> dict[str, Any]:
    """The classes of those names, all when none is given. A wrong name raises ValueError."""
    if unknown := set(names) - set(CLASSES):
        raise ValueError(f"no class {', '.join(sorted(unknown))}; there are {', '.join(CLASSES)}")
    return {name: measured(name, tiny=tiny, rounds=rounds) for name in CLASSES if name in names or not names}


def measured(name: str, *, tiny: bool, rounds: int = 61) -> dict[str, Any]:
    """The ratios of one class. A wrong answer raises ArithmeticError."""
    one = CLASSES[name]
    desc = one.desc(name)
    kernel = kernelgen.compile(desc)
    places = {"tiny": one.tiny} if tiny else {"within the caches": one.within, "beyond the caches": one.beyond}
    record: dict[str, Any] = {
        "shapes": [list(shape) for shape in one.shapes],
        "compile_ms": kernel.resources.compile_ms,
    }
    for place, sizes in places.items():
        static = kernelgen.compile(specialize(desc, sizes))
        inputs = draw(desc, sizes=sizes, numbers=_uniform)
        _require_equal(name, kernel, static, inputs)
        times = interleaved(_contestants(kernel, static, inputs, sizes), rounds, 0.0 if tiny else BATCH_SECONDS)
        record[place] = row = {"sizes": dict(sizes), **_row(times)}
        spread = Spread(**row["ratio"])
        print(f"{name:22s} {place:18s} dynamic / static {spread}, {row['least']:.3f} of the least times", flush=True)
    return record


def _row(times: Times) -> dict[str, Any]:
    """``least`` is the ratio of the least times: other load on the machine hardly disturbs those."""
    return {
        "ms": asdict(Spread.of(times[DYNAMIC], 1e3)),
        "ratio": asdict(ratio(times, DYNAMIC, STATIC)),
        "least": min(times[DYNAMIC]) / min(times[STATIC]),
    }


def _contestants(dynamic: Kernel, static: Kernel, inputs: Arrays, sizes: Sizes) -> tuple[Contestant, Contestant]:
    """Both kernels on the same inputs and outputs."""
    outputs = [_room(tensor.shape, tensor.dtype) for tensor in static.desc.outputs]

    def contestant(name: str, kernel: Kernel, sizes: Sizes) -> Contestant:
        arrays, values = (
            (*inputs, *outputs, *kernel.workspaces(sizes)),
            tuple(sizes[one] for one in kernel.nest.symbols),
        )
        return Contestant(name, lambda: kernel.entry(arrays, values))

    return contestant(DYNAMIC, dynamic, sizes), contestant(STATIC, static, {})


def _room(shape: Sequence[Any], dtype: DType) -> np.ndarray[Any, Any]:
    """Page-aligned memory for a result."""
    count = int(np.prod(shape, dtype=np.int64))
    return aligned(max(1, -(-count * dtype.itemsize // 4))).view(dtype.numpy)[:count].reshape(tuple(shape))


def _uniform(dtype: DType, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray[Any, Any]:
    """Values in [0.5, 1.5): nothing under- or overflows, however often it is updated in place."""
    return np.asarray(random.random(shape, np.float32) + np.float32(0.5)).astype(dtype.numpy)


def _require_equal(name: str, dynamic: Kernel, static: Kernel, inputs: Arrays) -> None:
    """Both kernels must agree; what they update in place is compared too."""
    found: list[Arrays] = []
    updated = dynamic.desc.updated_inputs
    for kernel in (dynamic, static):
        given = [array.copy() if k in updated else array for k, array in enumerate(inputs)]
        found.append([*kernel(*given), *(given[k] for k in updated)])
    names = [tensor.name for tensor in (*static.desc.outputs, *(static.desc.inputs[k] for k in updated))]
    apart = compare(static.desc, names, *found)
    if apart.fault:
        raise ArithmeticError(f"{name}: {apart.fault}")
