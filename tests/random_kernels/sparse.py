"""Steps that append operators of CSR matrices with consistent row starts."""

from __future__ import annotations

from kernelgen.tensor.dims import Dim, Shape
from kernelgen.tensor.dtypes import FLOAT16, FLOAT32, FLOAT64, INT32, DType
from tests.random_kernels.values import Value, wrapped
from tests.random_kernels.writer import Writer

OPERATORS = ("CSRMul", "CSRDiv", "CSRReduceSum", "CSRMV", "CSRMM", "CSRGather", "CSR2COO", "COO2CSR")


def csr(w: Writer) -> None:
    """Some operators of a sparse matrix."""
    rows, columns, count = (w.dim((1, 2, 3, 5, 7, 16, 17)) for _ in range(3))
    starts = w.parameter((rows + 1,), INT32, w.extent(count), protected=True)
    places = w.parameter((count,), INT32, w.extent(columns), protected=True)
    kind = w.one((FLOAT32, FLOAT32, FLOAT16, FLOAT64, INT32))
    matrix = _Matrix(w, starts, places, (rows, columns), count)
    values = matrix.values(kind)
    for _ in range(w.number(1, 4)):
        values = matrix.step(w.one(OPERATORS), values)


class _Matrix:
    """The operators of one sparsity pattern."""

    def __init__(self, w: Writer, starts: Value, places: Value, shape: tuple[Dim, Dim], stored: Dim) -> None:
        self.w, self.starts, self.places, self.shape, self.stored = w, starts, places, shape, stored
        self.count = w.extent(stored)

    def values(self, kind: DType) -> Value:
        """Stored values: a value of that shape, or a new input."""
        fitting = self.w.pick(lambda v: v.shape == (self.stored,) and v.dtype == kind and v.bound <= 8)
        return fitting or self.w.parameter((self.stored,), kind)

    def step(self, name: str, values: Value) -> Value:
        """Appends an operator; the stored values that the next may use."""
        if name in ("CSRMul", "CSRDiv"):
            return self.elementwise(name, values)
        if name in ("CSRMV", "CSRMM"):
            self.product(name, values)
        elif name == "CSRReduceSum":
            self.reduce_sum(values)
        elif name == "CSRGather":
            return self.gather(values.dtype)
        else:
            self.convert(name)
        return values

    def elementwise(self, name: str, values: Value) -> Value:
        w, kind = self.w, values.dtype
        if name == "CSRDiv" and not kind.is_float:
            name = "CSRMul"
        dense = self.dense((self.shape, (1, self.shape[1]), (self.shape[0], 1), (self.shape[1],)), kind)
        values = w.tame(values)
        bound = values.bound * dense.bound if name == "CSRMul" else 2 * values.bound
        if name == "CSRDiv":
            dense = w.positive(dense)
        error = 4 * (values.bound * dense.error + dense.bound * values.error) + max(bound, 1) * values.rounding
        operands = (self.starts, self.places, values, dense)
        return w.op(name, operands, ((self.stored,), kind), wrapped(bound, kind), error, dense_shape=self.shape)

    def gather(self, kind: DType) -> Value:
        dense = self.dense((self.shape, (*self.shape, 2)), kind)
        shape = (self.stored, *dense.shape[2:])
        operands = (self.starts, self.places, dense)
        found = self.w.op("CSRGather", operands, (shape, kind), dense.bound, dense.error, dense_shape=self.shape)
        return found if found.shape == (self.stored,) else self.values(kind)

    def reduce_sum(self, values: Value) -> None:
        w, values = self.w, self.w.tame(values)
        bound = self.count * values.bound
        steps = self.count if values.dtype.itemsize == 2 else 1
        error = self.count * values.error + max(bound, 1) * values.rounding * steps
        w.op(
            "CSRReduceSum", (self.starts, self.places, values), ((self.shape[0], 1), values.dtype),
            wrapped(bound, values.dtype), error, dense_shape=self.shape, axis=1,
        )  # fmt: skip

    def product(self, name: str, values: Value) -> None:
        w, values = self.w, self.w.tame(values)
        width = 1 if name == "CSRMV" else w.one((1, 2, 5, 8))
        dense = self.dense(((self.shape[1], width),), values.dtype)
        bound = self.count * values.bound * dense.bound
        steps = self.count if values.dtype.itemsize == 2 else 1
        error = self.count * (values.bound * dense.error + dense.bound * values.error)
        error += max(bound, 1) * values.rounding * steps
        operands = (self.starts, self.places, values, dense)
        result: Shape = (self.shape[0], width)
        w.op(name, operands, (result, values.dtype), wrapped(bound, values.dtype), error, dense_shape=self.shape)

    def convert(self, name: str) -> None:
        w, (rows, _) = self.w, self.shape
        if name == "CSR2COO":
            w.op(name, (self.starts,), ((self.stored,), INT32), w.extent(rows), nnz=self.stored)
            return
        numbers = w.parameter((self.stored,), INT32, w.extent(rows), protected=True)
        w.op(name, (numbers,), ((rows + 1,), INT32), self.count, height=rows)

    def dense(self, shapes: tuple[Shape, ...], kind: DType) -> Value:
        """A dense operand of one of the shapes."""
        shape = self.w.one(shapes)
        fitting = self.w.pick(lambda v: v.shape == shape and v.dtype == kind and v.bound <= 8)
        return fitting or self.w.parameter(shape, kind)
