"""Descriptions of matrix products with tails and heads, and what they should give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.composite.document import Document, Operation
from kernelgen.composite.link import linked
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import Dim
from kernelgen.tensor.dtypes import DType, dtype
from tests.support.kernel_examples import Writer

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Shape:
    """``[batch..., rows, columns]`` with ``terms``; operands may be stored transposed."""

    rows: Dim
    columns: Dim
    terms: Dim
    batch: tuple[Dim, ...] = ()
    transpose_a: bool = False
    transpose_b: bool = False

    def operands(self, kind: DType) -> tuple[Tensor, Tensor]:
        """The two operands."""
        left = (self.terms, self.rows) if self.transpose_a else (self.rows, self.terms)
        right = (self.columns, self.terms) if self.transpose_b else (self.terms, self.columns)
        return Tensor("a", (*self.batch, *left), kind), Tensor("b", (*self.batch, *right), kind)

    @property
    def result(self) -> tuple[Dim, ...]:
        """The shape of the result."""
        return (*self.batch, self.rows, self.columns)

    def multiply(self, writer: Writer, left: Tensor, right: Tensor) -> Tensor:
        """The operator."""
        name = "BatchMatMul" if self.batch else "MatMul"
        flips = {"transpose_a": self.transpose_a, "transpose_b": self.transpose_b}
        return writer.op(name, left, right, shape=self.result, dtype=left.dtype, **flips)


def product(shape: Shape, kind: str = "float32") -> KernelDesc:
    """A product alone."""
    left, right = shape.operands(dtype(kind))
    writer = Writer()
    return writer.desc("product", (left, right), shape.multiply(writer, left, right))


def layer(shape: Shape, kind: str = "float32") -> KernelDesc:
    """``tanh(a b + bias) + residual``."""
    left, right = shape.operands(dtype(kind))
    bias, residual = Tensor("bias", (shape.columns,), dtype(kind)), Tensor("r", shape.result, dtype(kind))
    writer = Writer()
    biased = writer.op("Add", shape.multiply(writer, left, right), bias, shape=shape.result)
    active = writer.op("Tanh", biased, shape=shape.result)
    total = writer.op("Add", active, residual, shape=shape.result)
    return writer.desc("layer", (left, right, bias, residual), total)


def mixed(shape: Shape) -> KernelDesc:
    """``a`` is float32, scaled and cast to float16 while it is loaded."""
    left, right = shape.operands(dtype("float16"))
    wide, scale = Tensor("a", left.shape, dtype("float32")), Tensor("s", (left.shape[-1],), dtype("float32"))
    writer = Writer()
    scaled = writer.op("Mul", wide, scale, shape=left.shape)
    narrow = writer.op("Cast", scaled, shape=left.shape, dtype=dtype("float16"), dst_type="float16")
    return writer.desc("mixed", (wide, right, scale), shape.multiply(writer, narrow, right))


def convolution(kind: str, image: tuple[int, ...], weights: tuple[int, ...], layout: str) -> KernelDesc:
    """A convolution with stride 1 and no border."""
    places = (1, 2) if layout == "NHWC" else (2, 3)
    result = [image[0], *(image[k] - weights[k] + 1 for k in places)]
    result.insert(3 if layout == "NHWC" else 1, weights[0])
    x, w = (Tensor(name, shape, dtype(kind), layout) for name, shape in (("x", image), ("w", weights)))
    y = Tensor("y", tuple(result), dtype(kind), layout)
    attrs = Attrs.of({"format": layout, "stride": (1, 1, 1, 1), "dilation": (1, 1, 1, 1), "group": 1})
    return linked(Document("convolution", (x, w), (y,), (Operation("Conv2D", (x, w), (y,), attrs),)))


def in_squares(rows: int, columns: int, terms: int, kind: str) -> KernelDesc:
    """A product of matrices that are stored as ``[columns / 16, rows / 16, 16, 16]``, and its absolute value."""
    shapes = ((terms, rows), (columns, terms), (columns, rows))
    a, b, c = (
        Tensor(name, (n // 16, m // 16, 16, 16), dtype(kind), "FRACTAL_NZ")
        for name, (n, m) in zip("abc", shapes, strict=True)
    )
    y = Tensor("y", c.shape, c.dtype, "FRACTAL_NZ")
    ops = (Operation("MatMul", (a, b), (c,)), Operation("Abs", (c,), (y,)))
    return linked(Document("in_squares", (a, b), (y,), ops))
