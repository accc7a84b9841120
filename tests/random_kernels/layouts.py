"""Steps that change the layout of a tensor, and back."""

from __future__ import annotations

from kernelgen.tensor.dims import Shape, Sym
from tests.random_kernels.values import Value
from tests.random_kernels.writer import Writer

BLOCKED = ("NCHW4c", "NCHW8c", "NCHW16c", "NC1HWC0")


def fractal(w: Writer) -> None:
    """TransData to FRACTAL_NZ, at times one operator there, and back."""
    x = w.pick(lambda v: len(v.shape) > 1 and w.size(v.shape) > 0 and not any(isinstance(d, Sym) for d in v.shape[-2:]))
    if x is None:
        return
    *outer, rows, columns = (*x.shape[:-2], w.extent(x.shape[-2]), w.extent(x.shape[-1]))
    shape = (*outer, -(-columns // 16), -(-rows // 16), 16, 16)
    if len(shape) > 7 or w.size(shape) > 4 * w.elements:
        return
    blocks = w.op(
        "TransData", (x,), (shape, x.dtype), x.bound, x.error, "FRACTAL_NZ",
        src_format="DefaultFormat", dst_format="FRACTAL_NZ",
    )  # fmt: skip
    if w.chance() and x.is_number:
        blocks = w.op("Abs", (blocks,), (shape, x.dtype), x.bound, x.error, "FRACTAL_NZ")
    attrs = {"src_format": "FRACTAL_NZ", "dst_format": "DefaultFormat"}
    w.op("TransData", (blocks,), (x.shape, x.dtype), x.bound, x.error, **attrs)


def spelled(w: Writer) -> None:
    """TransData and LayoutTransform between NCHW, NHWC and blocked layouts."""
    x = w.pick(lambda v: len(v.shape) == 4 and isinstance(v.shape[1], int) and w.size(v.shape) > 0)
    if x is None:
        return
    target = w.one(("NHWC", *BLOCKED))
    shape = _shape(x.shape, target)
    if w.size(shape) > 4 * w.elements:
        return
    moved = _moved(w, x, shape, "NCHW", target)
    if w.chance():
        _moved(w, moved, x.shape, target, "NCHW")


def _shape(shape: Shape, target: str) -> Shape:
    batch, channels, height, width = shape
    if target == "NHWC":
        return (batch, height, width, channels)
    block = 16 if target == "NC1HWC0" else int(target[4:-1])
    assert isinstance(channels, int)
    return (batch, -(-channels // block), height, width, block)


def _moved(w: Writer, x: Value, shape: Shape, source: str, target: str) -> Value:
    name = "TransData" if "NC1HWC0" in (source, target) else "LayoutTransform"
    return w.op(name, (x,), (shape, x.dtype), x.bound, x.error, src_format=source, dst_format=target)
