"""Steps that append matrix products, convolutions and pools."""

from __future__ import annotations

from math import prod
from typing import Any

from kernelgen.tensor.dims import Shape
from kernelgen.tensor.dtypes import BFLOAT16, COMPLEX64, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, UINT8, DType
from tests.random_kernels.values import Value, wrapped
from tests.random_kernels.writer import PLAIN, Writer

KINDS = (FLOAT32, FLOAT32, FLOAT16, BFLOAT16, FLOAT64, INT32, COMPLEX64)
NZ = "FRACTAL_NZ"
EXTENTS = (1, 2, 3, 4, 5, 7, 8, 16, 17)


def _operand(w: Writer, shape: Shape, kind: DType, layout: str = PLAIN) -> Value:
    """A value of that shape, or a new input."""

    def suits(v: Value) -> bool:
        same = (v.shape, v.dtype, v.tensor.layout) == (shape, kind, layout)
        return same and (v.bound <= 8 or kind.is_integer)

    return w.pick(suits) or w.parameter(shape, kind, layout=layout)


def _product(
    w: Writer, name: str, operands: list[Value], shape: Shape, terms: int, layout: str = PLAIN, **attrs: Any
) -> None:
    """Appends an operator that sums ``terms`` products of its first two operands, and a bias."""
    x, y = operands[:2]
    bound = max(terms * x.bound * y.bound, 1) + sum(v.bound for v in operands[2:])
    error = terms * (x.bound * y.error + y.bound * x.error) + bound * x.rounding + sum(v.error for v in operands[2:])
    if (bound < 30000 or x.dtype.is_integer) and w.fits(shape):
        w.op(name, operands, (shape, x.dtype), wrapped(bound, x.dtype), error, layout, **attrs)


def matmul(w: Writer) -> None:
    """MatMul and BatchMatMul: all transposes, broadcast batches, a bias."""
    kind = w.one(KINDS)
    rows, columns, inner = (w.dim(EXTENTS) for _ in range(3))
    batch: Shape = tuple(w.dim((1, 2, 3)) for _ in range(w.number(1, 2))) if w.chance() else ()
    other = () if batch and w.chance(4) else tuple(1 if w.chance(4) else b for b in batch)
    shape = (*batch, rows, columns)
    if not w.fits(shape) or w.size(shape) * w.extent(inner) > 20 * w.elements:
        return
    turned: dict[str, Any] = {"transpose_a": w.chance(), "transpose_b": w.chance()}
    left = _operand(w, (*batch, *((inner, rows) if turned["transpose_a"] else (rows, inner))), kind)
    right = _operand(w, (*other, *((columns, inner) if turned["transpose_b"] else (inner, columns))), kind)
    operands = [left, right]
    if w.chance(3):
        operands.append(_operand(w, (columns,), kind))
    _product(
        w, "BatchMatMul" if batch else w.one(("MatMul", "BatchMatMul")), operands, shape, w.extent(inner), **turned
    )


def matmul_integer(w: Writer) -> None:
    """MatMulInteger of bytes with and without signs, in batches."""
    rows, columns, inner = (w.dim(EXTENTS) for _ in range(3))
    batch: Shape = (w.dim((1, 2, 3)),) if w.chance() else ()
    shape, terms = (*batch, rows, columns), w.extent(inner)
    if not w.fits(shape) or w.size(shape) * terms > 20 * w.elements:
        return
    left = _operand(w, (*batch, rows, inner), w.one((UINT8, INT8)))
    right = _operand(w, (*(batch if w.chance() else ()), inner, columns), w.one((INT8, UINT8)))
    w.op("MatMulInteger", [left, right], (shape, INT32), max(terms * left.bound * right.bound, 1))


def stored_matmul(w: Writer) -> None:
    """StoredMatMul of weights in all types that they are stored in, perhaps with scales and zero points, on rows and batches.

    Groups are as long as those of networks, or so short and odd that no unit fits them. What an infinite scale, or an infinite
    term of four bits, gives depends on the order of sums: where numbers may be infinite there are none.
    """
    bits, is_row = 0 if w.special else w.one((0, 0, 4)), w.chance()
    if is_row:  # of floats, and weights of bytes: what decoding has, and digits are for
        kind, held, rows, terms = FLOAT32, w.one((INT8, UINT8)), (1,), w.one((8, 16, 32, 40, 64))
    else:
        kind, held = w.one((FLOAT32, FLOAT32, FLOAT16, BFLOAT16, FLOAT64)), w.one((INT8, UINT8, FLOAT16, BFLOAT16))
        rows, terms = (*((2,) if w.chance(5) else ()), w.dim((1, 2, 4, 5, 9, 33))), w.one((1, 3, 4, 8, 16, 32, 40, 64))
    held = UINT8 if bits else held
    groups, columns = w.number(1, 4), w.one((1, 5, 16, 17, 33, 64))
    shape, inner = (*rows, columns), groups * terms * (2 if bits else 1)
    if not w.fits(shape) or inner * columns > 20 * w.elements or w.size(rows) * inner > 20 * w.elements:
        return
    operands = [_operand(w, (*rows, inner), kind), w.parameter((groups, terms, columns), held, protected=True)]
    most = 2 if held.is_integer and not w.special else 0
    operands += [_each_column(w, (groups, columns)) for _ in range(w.number(0, most))]
    x, stored, *each = operands
    bounds = [of.bound for of in each]
    number = ((8 if bits else stored.bound) + sum(bounds[1:])) * prod(bounds[:1])
    bound = max(inner * x.bound * number, 1)
    if kind != FLOAT16 or bound < 30000:
        w.op("StoredMatMul", operands, (shape, kind), bound, inner * number * x.error + bound * x.rounding, bits=bits)


def _each_column(w: Writer, shape: Shape) -> Value:
    """Scales or zero points: an input, or what is computed of one."""
    x = w.parameter(shape, FLOAT32, protected=True)
    return w.op("Mul", (x, w.constant(FLOAT32, (0.125,))), (shape, FLOAT32), x.bound * 0.125) if w.chance(4) else x


def fractal_matmul(w: Writer) -> None:
    """MatMul of FRACTAL_NZ operands, padded to blocks, with a plain or a blocked result."""
    kind = w.one((FLOAT16, FLOAT32))
    rows, columns, inner = (w.one((1, 5, 16, 17, 32)) for _ in range(3))
    turned: dict[str, Any] = {"transpose_a": w.chance(), "transpose_b": w.chance()}
    left = _operand(w, (inner, rows) if turned["transpose_a"] else (rows, inner), kind)
    right = _operand(w, (columns, inner) if turned["transpose_b"] else (inner, columns), kind)
    operands = [_to_blocks(w, x) for x in (left, right)]
    bound = max(inner * left.bound * right.bound, 1)
    error = inner * (left.bound * right.error + right.bound * left.error) + bound * left.rounding
    if w.chance():
        w.op("MatMul", operands, ((rows, columns), kind), bound, error, left_format=NZ, right_format=NZ, **turned)
        return
    blocks = (_blocks(columns), _blocks(rows), 16, 16)
    product = w.op("MatMul", operands, (blocks, kind), bound, error, NZ, left_format=NZ, right_format=NZ, **turned)
    w.op(
        "TransData",
        (product,),
        ((rows, columns), kind),
        bound,
        product.error,
        src_format=NZ,
        dst_format="DefaultFormat",
    )


def _to_blocks(w: Writer, x: Value) -> Value:
    rows, columns = (w.extent(dim) for dim in x.shape)
    shape = (_blocks(columns), _blocks(rows), 16, 16)
    return w.op("TransData", (x,), (shape, x.dtype), x.bound, x.error, NZ, src_format="DefaultFormat", dst_format=NZ)


def _blocks(extent: int) -> int:
    return -(-extent // 16)


def conv2d(w: Writer) -> None:
    """Conv2D in NCHW and NHWC, with strides, dilations and groups."""
    kind = w.one((FLOAT32, FLOAT32, FLOAT16))
    groups = w.one((1, 1, 2, 3))
    inner, outer = groups * w.number(1, 3), groups * w.number(1, 3)
    window = _Window(w)
    batch = w.dim((1, 2))
    if w.chance(3):
        image = _operand(w, (batch, *window.extents, inner), kind, "NHWC")
        weights = _operand(w, (outer, *window.kernel, inner // groups), kind, "NHWC")
        shape, layout = (batch, *window.counts, outer), "NHWC"
    else:
        image = _operand(w, (batch, inner, *window.extents), kind)
        weights = _operand(w, (outer, inner // groups, *window.kernel), kind)
        shape, layout = (batch, outer, *window.counts), PLAIN
    terms = window.kernel[0] * window.kernel[1] * (inner // groups)
    _product(w, "Conv2D", [image, weights], shape, terms, layout, **window.attrs, group=groups)


def blocked_conv2d(w: Writer) -> None:
    """Conv2D of NCHWc images, depth-wise too."""
    window, block, blocks, batch = _Window(w), w.one((2, 4)), w.number(1, 2), w.dim((1, 2))
    layout = f"NCHW{block}c"
    image = _operand(w, (batch, blocks, *window.extents, block), FLOAT32, layout)
    if w.chance():
        weights = _operand(w, (blocks, 1, *window.kernel, 1, block), FLOAT32)
        shape, terms, attrs = (batch, blocks, *window.counts, block), 1, {"is_depth_wise": True}
    else:
        outer, lanes = w.number(1, 2), w.one((2, 4))
        weights = _operand(w, (outer, blocks, *window.kernel, block, lanes), FLOAT32)
        shape, terms, attrs = (batch, outer, *window.counts, lanes), blocks * block, {"is_depth_wise": False}
    terms *= window.kernel[0] * window.kernel[1]
    _product(w, "Conv2D", [image, weights], shape, terms, layout, **window.attrs, **attrs)


class _Window:
    """The kernel, strides and dilations of a convolution, and extents that they fit."""

    def __init__(self, w: Writer) -> None:
        self.kernel, stride, dilation = (tuple(w.number(1, most) for _ in range(2)) for most in (3, 2, 2))
        self.counts = tuple(w.number(1, 5) for _ in range(2))
        self.extents = tuple(
            (c - 1) * s + (k - 1) * d + 1 + w.number(0, s - 1)
            for c, s, k, d in zip(self.counts, stride, self.kernel, dilation, strict=True)
        )
        self.attrs: dict[str, Any] = {
            "stride": (1, 1, *stride), "dilation": (1, 1, *dilation), "kernel_size": self.kernel, "pad_mode": "VALID",
            "pad_list": (0, 0, 0, 0),
        }  # fmt: skip


def pool2d(w: Writer) -> None:
    """Pool2D of both kinds, global too, with padding and either rounding."""
    kind = w.one((FLOAT32, FLOAT32, FLOAT16, FLOAT64))
    layout = w.one(("NCHW", "NCHW", "NHWC"))
    pooled = (2, 3) if layout == "NCHW" else (1, 2)

    def suits(v: Value) -> bool:
        is_image = len(v.shape) == 4 and w.size(v.shape) > 0 and v.dtype.is_float
        return is_image and all(isinstance(v.shape[d], int) for d in pooled)

    shape = tuple(w.number(1, 7) if d in pooled else w.dim(range(1, 8)) for d in range(4))
    x = w.tame(w.pick(suits) or w.parameter(shape, kind))
    size = tuple(w.number(1, 3) for _ in range(2))
    is_max = w.chance()
    attrs: dict[str, Any] = {
        "pool_type": "max" if is_max else "avg", "global": w.chance(4), "kernel_size": size,
        "strides": tuple(w.number(1, 3) for _ in range(2)), "round_mode": w.one(("floor", "ceil")), "data_layout": layout,
        "pad": tuple(w.number(0, k - 1) for k in (*size, *size)),
    }  # fmt: skip
    shape = w.shape_of("Pool2D", (x,), **attrs)
    if shape is None or not w.fits(shape) or _has_empty_window(w, x, shape, attrs):
        return
    w.op("Pool2D", (x,), (shape, x.dtype), x.bound, x.error if is_max else x.error + x.rounding, **attrs)


def _has_empty_window(w: Writer, x: Value, shape: Shape, attrs: dict[str, Any]) -> bool:
    """A window that starts beyond the elements, as rounding up may give: its maximum is minus infinity."""
    if attrs["global"]:
        return False
    places = (2, 3) if attrs["data_layout"] == "NCHW" else (1, 2)
    starts = (
        (w.extent(shape[p]) - 1) * s - before
        for p, s, before in zip(places, attrs["strides"], attrs["pad"][:2], strict=True)
    )
    return any(start >= w.extent(x.shape[p]) for p, start in zip(places, starts, strict=True))
