"""Small kernels that many tests use, written with a few lines each."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.composite.document import Document, Operation
from kernelgen.composite.link import linked
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import Dim
from kernelgen.tensor.dtypes import FLOAT32, DType


def tensor(name: str, *shape: Dim, dtype: DType = FLOAT32, value: float | None = None) -> Tensor:
    return Tensor(name, shape, dtype, value=value)


def constant(value: float, dtype: DType = FLOAT32) -> Tensor:
    return Tensor(f"const_{value}".replace(".", "_").replace("-", "m"), (1,), dtype, value=value)


@dataclass
class Writer:
    """Appends operators; every result gets the next name."""

    ops: list[Operation] = field(default_factory=list)

    def op(
        self, name: str, *inputs: Tensor, shape: tuple[Dim, ...], dtype: DType | None = None, **attrs: object
    ) -> Tensor:
        result = Tensor(f"t{len(self.ops)}", shape, dtype or inputs[0].dtype)
        self.ops.append(Operation(name, inputs, (result,), Attrs.of(attrs)))
        return result

    def document(self, name: str, inputs: tuple[Tensor, ...], *outputs: Tensor) -> Document:
        return Document(name, inputs, outputs, tuple(self.ops))

    def desc(self, name: str, inputs: tuple[Tensor, ...], *outputs: Tensor) -> KernelDesc:
        return linked(self.document(name, inputs, *outputs))


def softmax(rows: Dim = 6, columns: Dim = 9) -> KernelDesc:
    w, x = Writer(), tensor("x", rows, columns)
    full, row = (rows, columns), (rows, 1)
    top = w.op("ReduceMax", x, shape=row, axis=(1,), keep_dims=True)
    e = w.op("Exp", w.op("Sub", x, top, shape=full), shape=full)
    total = w.op("ReduceSum", e, shape=row, axis=(1,), keep_dims=True)
    return w.desc("softmax", (x,), w.op("RealDiv", e, total, shape=full))


def layer_norm(rows: Dim = 6, columns: int = 10) -> KernelDesc:
    w, x = Writer(), tensor("x", rows, columns)
    gamma, beta = tensor("gamma", columns), tensor("beta", columns)
    full, row, share = (rows, columns), (rows, 1), constant(1 / columns)
    mean = w.op("Mul", w.op("ReduceSum", x, shape=row, axis=(1,), keep_dims=True), share, shape=row)
    d = w.op("Sub", x, mean, shape=full)
    square = w.op("Mul", d, d, shape=full)
    variance = w.op("Mul", w.op("ReduceSum", square, shape=row, axis=(1,), keep_dims=True), share, shape=row)
    scale = w.op("Rsqrt", w.op("Add", variance, constant(1e-5), shape=row), shape=row)
    y = w.op("Mul", w.op("Mul", d, scale, shape=full), gamma, shape=full)
    return w.desc("layer_norm", (x, gamma, beta), w.op("Add", y, beta, shape=full))


def column_sum(rows: Dim = 70, columns: Dim = 5000) -> KernelDesc:
    w, x = Writer(), tensor("x", rows, columns)
    return w.desc("column_sum", (x,), w.op("ReduceSum", x, shape=(columns,), axis=(0,)))


def transpose_add(rows: Dim = 40, columns: Dim = 50) -> KernelDesc:
    w, x = Writer(), tensor("x", rows, columns)
    turned = w.op("Transpose", x, shape=(columns, rows), perm=(1, 0))
    return w.desc("transpose_add", (x,), w.op("Add", turned, constant(1.0), shape=(columns, rows)))


def own_transpose(size: int = 33) -> KernelDesc:
    w, x = Writer(), tensor("x", size, size)
    turned = w.op("Transpose", x, shape=(size, size), perm=(1, 0))
    return w.desc("own_transpose", (x,), w.op("Add", x, turned, shape=(size, size)))


def split_reshape(rows: Dim = 5) -> KernelDesc:
    """A reshape that lines up: [4 * rows, 6] -> [rows, 4, 2, 3]."""
    w, x, q = Writer(), tensor("x", rows * 4, 6), tensor("q", rows, 1, 2, 3)
    parts = w.op("Reshape", w.op("Exp", x, shape=(rows * 4, 6)), shape=(rows, 4, 2, 3))
    return w.desc("split_reshape", (x, q), w.op("Mul", parts, q, shape=(rows, 4, 2, 3)))


def crossed_reshape() -> KernelDesc:
    """A reshape that does not line up: [4, 6] -> [6, 4] between row and column broadcasts."""
    w, x, p, q = Writer(), tensor("x", 4, 6), tensor("p", 1, 6), tensor("q", 6, 1)
    turned = w.op("Reshape", w.op("Add", x, p, shape=(4, 6)), shape=(6, 4))
    return w.desc("crossed_reshape", (x, p, q), w.op("Mul", turned, q, shape=(6, 4)))


def two_phase_branches(rows: int = 7, columns: int = 11) -> KernelDesc:
    """Row and column reductions of one input: they must not share a loop."""
    w, x = Writer(), tensor("x", rows, columns)
    rows_sum = w.op("ReduceSum", x, shape=(rows,), axis=(1,))
    return w.desc("two_phase_branches", (x,), rows_sum, w.op("ReduceSum", x, shape=(columns,), axis=(0,)))


def momentum(size: int = 37) -> KernelDesc:
    """In place: m = 0.9 m + g; p = p - 0.1 m (the old p is an output too)."""
    w, p, m, g = Writer(), tensor("p", size), tensor("m", size), tensor("g", size)
    full = (size,)
    fresh = w.op("Add", w.op("Mul", m, constant(0.9), shape=full), g, shape=full)
    first = w.op("Assign", m, fresh, shape=full)
    old = w.op("Mul", p, constant(1.0), shape=full)
    step = w.op("Sub", p, w.op("Mul", first, constant(0.1), shape=full), shape=full)
    second = w.op("Assign", p, step, shape=full)
    return w.desc("momentum", (p, m, g), second, old)


def half_sum(rows: int = 5, columns: int = 300) -> KernelDesc:
    from kernelgen.tensor.dtypes import FLOAT16

    w, x = Writer(), tensor("x", rows, columns, dtype=FLOAT16)
    return w.desc("half_sum", (x,), w.op("ReduceSum", x, shape=(rows, 1), axis=(-1,), keep_dims=True))


def empty_sum() -> KernelDesc:
    w, x = Writer(), tensor("x", 3, 0)
    return w.desc("empty_sum", (x,), w.op("ReduceSum", x, shape=(3,), axis=(1,)))


def two_rows_minimum() -> KernelDesc:
    """A reduction short enough to be unrolled as a whole: no loop is left to initialise before."""
    w, x = Writer(), tensor("x", 2, 16)
    return w.desc("two_rows_minimum", (x,), w.op("ReduceMin", x, shape=(16,), axis=(0,)))


def assigned_twice(size: int = 7) -> KernelDesc:
    """The last assignment is the one that stays."""
    w, x = Writer(), tensor("x", size)
    full = (size,)
    old = w.op("Neg", x, shape=full)
    first = w.op("Assign", x, w.op("ZerosLike", x, shape=full), shape=full)
    w.op("Assign", x, old, shape=full)
    return w.desc("assigned_twice", (x,), first)


def exchange(size: int = 7) -> KernelDesc:
    """x and y change places; the result of an InplaceAssign stands for the old x and has another shape than p."""
    w, x, y, p, q = Writer(), tensor("x", size), tensor("y", size), tensor("p", 2, 3), tensor("q", 1)
    old = w.op("InplaceAssign", p, q, x, shape=(size,))
    w.op("Assign", x, y, shape=(size,))
    return w.desc("exchange", (x, y, p, q), w.op("Assign", y, old, shape=(size,)))


def empty_reshape() -> KernelDesc:
    """There is no element to move, however the dims split."""
    w, x = Writer(), tensor("x", 7, 0)
    turned = w.op("Transpose", x, shape=(0, 7), perm=(1, 0))
    back = w.op("Reshape", turned, shape=(7, 0))
    return w.desc("empty_reshape", (x,), w.op("Add", back, x, shape=(7, 0)))
