"""Recipes of products, convolutions, pools, quantization, images, recurrences and attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.fuzz.models.draft import SETS, Dims, Draft, Extent, Known, Proposal, Rejected, is_static
from tests.fuzz.models.elementwise import Make

SMALL = ("float32", "float64", "float16", "int32", "int64", "uint32", "uint64", "bfloat16")


def fixed(*extents: int) -> Dims:
    """Static axes."""
    return tuple((extent,) * SETS for extent in extents)


def matmul(d: Draft) -> Proposal:
    """Vectors, matrices, and batches of them that broadcast."""
    a = d.operand(rank=(1, 4), low=-30, high=30, only=SMALL)
    shared = a.dims[-1]
    columns: Dims = () if d.chance(0.2) else (d.extent(),)
    batch = a.dims[:-2] if d.chance(0.5) and columns else ()
    return Proposal([a, d.fresh(a.dtype, (*batch, shared, *columns), -3, 3)])


def gemm(d: Draft) -> Proposal:
    """With factors, transposed operands, and a third that broadcasts or is absent."""
    a = d.operand(rank=(2, 2), low=-30, high=30, only=SMALL)
    given: dict[str, Any] = {name: 1 for name in ("transA", "transB") if d.chance(0.3)}
    rows, shared = a.dims[::-1] if "transA" in given else a.dims
    columns = d.extent()
    b = d.fresh(a.dtype, (columns, shared) if "transB" in given else (shared, columns), -3, 3)
    third = d.random.choice([(rows, columns), (columns,), (rows, *fixed(1)), ()])
    c = d.fresh(a.dtype, third) if d.opset < 11 or d.chance(0.6) else None
    given |= {name: d.random.choice((0.5, 2.0)) for name in ("alpha", "beta") if d.chance(0.2)}
    return Proposal([a, b, c], given)


def _image(d: Draft, channels: Extent | None = None, only: tuple[str, ...] | None = None) -> Known:
    """Batch, channels and one or two spatial extents of 4 to 7."""
    rank = d.random.choice((1, 2, 2))
    dims = (d.extent(), channels or d.extent(), *fixed(*(d.random.randint(4, 7) for _ in range(rank))))
    dtype = d.data_type([name for name in d.allowed(0) if only is None or name in only])
    fitting = [y for y in d.values if y.dtype == dtype and y.rank in (3, 4) and all(map(is_static, y.dims[1:]))]
    fitting = [y for y in fitting if channels is None or y.dims[1] == channels]
    return d.random.choice(fitting) if fitting and d.chance(0.5) else d.fresh(dtype, dims)


def _window(d: Draft, x: Known, pooling: bool) -> dict[str, Any]:
    """Kernel, strides, padding and dilations that leave at least one place."""
    extents = [extent[0] for extent in x.dims[2:]]
    kernel = [d.random.randint(1, min(3, extent)) for extent in extents]
    given: dict[str, Any] = {"kernel_shape": kernel}
    if d.chance(0.5):
        given["strides"] = [d.random.choice((1, 2)) for _ in extents]
    if (
        d.chance(0.2)
        and (d.takes("dilations"))
        and all(extent > 2 * k for extent, k in zip(extents, kernel, strict=True))
    ):
        given["dilations"] = [2 for _ in extents]
    if d.chance(0.3):
        given["auto_pad"] = d.random.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
    elif d.chance(0.5):
        given["pads"] = [d.random.randint(0, max(k - 1, 0)) for k in kernel] * 2
    if pooling and d.takes("ceil_mode") and d.chance(0.3):
        given["ceil_mode"] = 1
    return given


def conv(d: Draft) -> Proposal:
    """Groups, padding, strides, dilations, with a bias or without."""
    groups = d.random.choice((1, 1, 2, 4))
    x = _image(d, (groups * d.random.choice((1, 2)),) * SETS)
    given = _window(d, x, pooling=False)
    channels = x.dims[1][0]
    made = groups * d.random.choice((1, 2))
    w = d.fresh(x.dtype, fixed(made, channels // groups, *given["kernel_shape"]))
    bias = d.fresh(x.dtype, fixed(made)) if d.chance(0.5) else None
    return Proposal([x, w, bias], given | ({"group": groups} if groups > 1 else {}))


def conv_transpose(d: Draft) -> Proposal:
    """Without output shapes."""
    x = _image(d, fixed(2)[0])
    given = _window(d, x, pooling=False)
    given.pop("auto_pad", None)
    w = d.fresh(x.dtype, fixed(2, d.random.choice((1, 3)), *given["kernel_shape"]))
    return Proposal([x, w], given)


def pool(d: Draft) -> Proposal:
    """Largest, average and norm."""
    x = _image(d)
    given = _window(d, x, pooling=True)
    given |= {"count_include_pad": 1} if d.takes("count_include_pad") and d.chance(0.5) else {}
    given |= {"p": 2} if d.takes("p") else {}
    return Proposal([x], given, 2 if d.op == "MaxPool" and d.opset >= 8 and d.chance(0.15) else 1)


def image(d: Draft) -> Proposal:
    """Pools over everything."""
    return Proposal([_image(d)])


def _eight_bits(d: Draft, dims: Dims, kind: str) -> Known:
    return d.fresh(kind, dims, 0 if kind == "uint8" else -100, 100)


def _scale(d: Draft, dims: Dims = ()) -> Known:
    return d.fresh("float32", dims, 0.01, 0.5, constant=True)


def quantize(d: Draft) -> Proposal:
    """To 8 bits, by one scale or one for each channel."""
    x = d.operand(only=("float32",), rank=(0, 4), low=-50, high=50)
    kind = d.random.choice(("uint8", "int8"))
    if x.rank > 1 and is_static(x.dims[1]) and d.takes("axis") and d.chance(0.4):
        dims = x.dims[1:2]
        return Proposal([x, _scale(d, dims), d.fresh(kind, dims, 0, 20, constant=True)], {"axis": 1})
    return Proposal([x, _scale(d), d.fresh(kind, (), 0, 20, constant=True)])


def dequantize(d: Draft) -> Proposal:
    """From 8 bits."""
    x = d.operand(only=("uint8", "int8"), rank=(0, 4))
    return Proposal([x, _scale(d), d.fresh(x.dtype, (), 0, 20, constant=True) if d.chance(0.7) else None])


def dynamic_quantize(d: Draft) -> Proposal:
    """Scale and zero point are results."""
    return Proposal([d.operand(only=("float32",))], {}, 3)


def matmul_integer(d: Draft) -> Proposal:
    """8 bits into 32."""
    a = d.operand(only=("uint8", "int8"), rank=(2, 3))
    b = _eight_bits(d, (a.dims[-1], d.extent()), "uint8" if d.chance(0.5) else a.dtype.name)
    zeros = [d.fresh(x.dtype, (), 0, 9, constant=True) if d.chance(0.5) else None for x in (a, b)]
    return Proposal([a, b, *zeros])


def conv_integer(d: Draft) -> Proposal:
    """8 bits into 32."""
    x = _eight_bits(d, (d.extent(), *fixed(2, 5, 5)), "uint8")
    w = _eight_bits(d, fixed(3, 2, 2, 2), "uint8")
    return Proposal([x, w, d.fresh("uint8", (), 0, 9, constant=True) if d.chance(0.5) else None])


def qlinear_matmul(d: Draft) -> Proposal:
    """8 bits into 8 bits."""
    a = _eight_bits(d, (d.extent(), *fixed(4)), "uint8")
    b = _eight_bits(d, fixed(4, 3), "uint8")
    zero = d.constant(np.array(5, np.uint8))
    return Proposal([a, _scale(d), zero, b, _scale(d), zero, _scale(d), zero])


def qlinear_conv(d: Draft) -> Proposal:
    """8 bits into 8 bits."""
    x = _eight_bits(d, (d.extent(), *fixed(2, 5, 5)), "uint8")
    w = _eight_bits(d, fixed(3, 2, 2, 2), "uint8")
    zero = d.constant(np.array(5, np.uint8))
    return Proposal([x, _scale(d), zero, w, _scale(d), zero, _scale(d), zero])


def resize(d: Draft) -> Proposal:
    """By scales or to sizes; the region and one of both are skipped operands."""
    x = d.fresh("float32", (*fixed(1, 2), *fixed(d.random.randint(2, 5), d.random.randint(2, 5))))
    mode = d.random.choice(("nearest", "linear"))
    scales = d.parameters(np.array([1, 1, *(d.random.choice((0.5, 1.5, 2.0)) for _ in range(2))], np.float32))
    if d.opset < 11:
        return Proposal([x, scales], {"mode": mode})
    form = d.random.choice(("half_pixel", "asymmetric", "align_corners"))
    given = {"mode": mode, "coordinate_transformation_mode": form, "nearest_mode": "floor"}
    region = d.parameters(np.zeros(0, np.float32)) if d.opset < 13 else None
    if d.chance(0.5):
        return Proposal([x, region, scales], given)
    empty = d.parameters(np.zeros(0, np.float32)) if d.opset < 13 else None
    sizes = [extent[0] for extent in x.dims[:2]] + [d.random.randint(2, 7) for _ in range(2)]
    return Proposal([x, region, empty, d.parameters(sizes)], given)


def upsample(d: Draft) -> Proposal:
    """Before Resize."""
    x = d.fresh("float32", fixed(1, 2, 3, 3))
    if d.takes("scales"):
        return Proposal([x], {"scales": [1.0, 1.0, 2.0, 2.0]})
    return Proposal([x, d.parameters(np.array([1, 1, 2, 2], np.float32))])


def grid_sample(d: Draft) -> Proposal:
    """At places between -1 and 1."""
    x = d.fresh("float32", (d.extent(), *fixed(2, 4, 4)))
    given = {"align_corners": 1, "padding_mode": d.random.choice(("zeros", "border"))}
    return Proposal([x, d.fresh("float32", (x.dims[0], *fixed(3, 3, 2)), -1, 1)], given)


def affine_grid(d: Draft) -> Proposal:
    """Of two spatial extents."""
    return Proposal(
        [d.fresh("float32", fixed(2, 2, 3)), d.parameters([2, 3, 4, 5])], {"align_corners": d.random.randint(0, 1)}
    )


def roi_align(d: Draft) -> Proposal:
    """One region for each of a few images."""
    x = d.fresh("float32", fixed(2, 3, 6, 6))
    rois = d.constant(np.array([[0, 0, 3, 3], [1, 1, 5, 4]], np.float32))
    return Proposal([x, rois, d.parameters([0, 1])], {"output_height": 2, "output_width": 2, "sampling_ratio": 2})


def max_roi_pool(d: Draft) -> Proposal:
    """The batch index stands in the region."""
    x = d.fresh("float32", fixed(2, 3, 6, 6))
    return Proposal([x, d.constant(np.array([[0, 0, 0, 3, 3], [1, 1, 1, 5, 4]], np.float32))], {"pooled_shape": [2, 2]})


def col2im(d: Draft) -> Proposal:
    """Blocks back into an image."""
    x = d.fresh("float32", (d.extent(), *fixed(8, 4)))
    return Proposal([x, d.parameters([4, 4]), d.parameters([2, 2])], {"strides": [2, 2]})


def determinant(d: Draft) -> Proposal:
    """Of small square matrices."""
    return Proposal([d.fresh(d.data_type(["float32", "float64"]), (d.extent(), *fixed(3, 3)))])


def einsum(d: Draft) -> Proposal:
    """The products and sums that models write this way."""
    a = d.fresh("float32", (d.extent(), d.extent(), d.extent()))
    b = d.fresh("float32", (a.dims[0], a.dims[2], d.extent()))
    return d.random.choice((
        Proposal([a, b], {"equation": "bij,bjk->bik"}), Proposal([a], {"equation": "bij->bji"}),
        Proposal([a], {"equation": "bij->b"}), Proposal([a, a], {"equation": "bij,bij->bi"}),
    ))  # fmt: skip


def recurrent(gates: int, states: int, bias: int) -> Make:
    """RNN, GRU and LSTM; results and operands in the middle are skipped."""

    def make(d: Draft) -> Proposal:
        hidden, features, steps, batch = 3, 4, d.random.randint(1, 4), d.extent()
        both = d.chance(0.3)
        ways = 2 if both else 1
        x = d.fresh("float32", ((steps,) * SETS, batch, *fixed(features)))
        w, r = (
            d.fresh("float32", fixed(ways, gates * hidden, features)),
            d.fresh("float32", fixed(ways, gates * hidden, hidden)),
        )
        b = d.fresh("float32", fixed(ways, bias * hidden)) if d.chance(0.5) else None
        first = d.fresh("float32", (*fixed(ways), batch, *fixed(hidden))) if d.chance(0.4) else None
        given = {"hidden_size": hidden} | ({"direction": "bidirectional"} if both else {})
        return Proposal([x, w, r, b, None, first], given, states)

    return make


def attention(d: Draft) -> Proposal:
    """Queries, keys and values in four axes, with a mask or without."""
    batch, heads = d.extent(), d.random.choice((1, 2))
    q = d.fresh("float32", (batch, *fixed(heads, 3, 4)))
    k, v = (d.fresh("float32", (batch, *fixed(heads, 5, 4))) for _ in range(2))
    mask = d.fresh("float32", fixed(3, 5)) if d.chance(0.3) else None
    return Proposal([q, k, v, mask], {"is_causal": 1} if mask is None and d.chance(0.3) else {})


def rotary(d: Draft) -> Proposal:
    """Cosines and sines by position."""
    x = d.fresh("float32", (d.extent(), *fixed(2, 3, 4)))
    tables = [d.fresh("float32", fixed(6, 2), -1, 1) for _ in range(2)]
    places = np.array([[0, 1, 2]] * x.dims[0][0], np.int64)
    if not is_static(x.dims[0]):
        raise Rejected("places for each row")
    return Proposal([x, *tables, d.parameters(places)], {"interleaved": d.random.randint(0, 1)})


def loss(d: Draft) -> Proposal:
    """Scores against classes; the mean, the sum, or each."""
    x = d.operand(only=("float32",), rank=(2, 3), where=lambda x: x.rank > 1 and is_static(x.dims[1]), low=-30, high=30)
    classes = d.fresh("int64", (x.dims[0], *x.dims[2:]), 0, x.dims[1][0] - 1)
    weight = d.fresh("float32", (x.dims[1],), 0.1, 1) if d.chance(0.3) else None
    return Proposal([x, classes, weight], {"reduction": d.random.choice(("none", "mean", "sum"))})


def window(d: Draft) -> Proposal:
    """Of a given length."""
    return Proposal([d.parameters(np.array(d.random.randint(2, 9)))], {"periodic": d.random.randint(0, 1)})


def mel_weights(d: Draft) -> Proposal:
    """A table of weights from five numbers."""
    numbers = [np.array(8), np.array(16), np.array(8000)]
    edges = [np.array(20.0, np.float32), np.array(3000.0, np.float32)]
    return Proposal([d.parameters(number) for number in (*numbers, *edges)])


def fourier(d: Draft) -> Proposal:
    """Of a real signal."""
    x = d.fresh("float32", (d.extent(), *fixed(8, 1)))
    return Proposal([x], {"axis": 1} if d.takes("axis") else {})


def short_fourier(d: Draft) -> Proposal:
    """In frames. Whether one side is wanted is always said: ONNX's own inference takes the default for the other."""
    x = d.fresh("float32", (d.extent(), *fixed(16, 1)))
    return Proposal(
        [x, d.parameters(np.array(4)), None, d.parameters(np.array(8))], {"onesided": d.random.randint(0, 1)}
    )


def non_maximum(d: Draft) -> Proposal:
    """The number of boxes that stay depends on data."""
    corners = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [2, 2, 3, 3]]], np.float32)
    return Proposal([d.constant(corners), d.fresh("float32", fixed(1, 1, 3), 0, 1), d.parameters([2])])


RECIPES: Mapping[str, Make] = {
    "MatMul": matmul, "Gemm": gemm, "Conv": conv, "ConvTranspose": conv_transpose, "MaxPool": pool, "AveragePool": pool,
    "LpPool": pool, "GlobalAveragePool": image, "GlobalMaxPool": image, "GlobalLpPool": image, "QuantizeLinear": quantize,
    "DequantizeLinear": dequantize, "DynamicQuantizeLinear": dynamic_quantize, "MatMulInteger": matmul_integer,
    "ConvInteger": conv_integer, "QLinearMatMul": qlinear_matmul, "QLinearConv": qlinear_conv, "Resize": resize,
    "Upsample": upsample, "GridSample": grid_sample, "AffineGrid": affine_grid, "RoiAlign": roi_align,
    "MaxRoiPool": max_roi_pool, "Col2Im": col2im, "Det": determinant, "Einsum": einsum, "RNN": recurrent(1, 2, 2),
    "GRU": recurrent(3, 2, 6), "LSTM": recurrent(4, 3, 8), "Attention": attention, "RotaryEmbedding": rotary,
    "NegativeLogLikelihoodLoss": loss, "SoftmaxCrossEntropyLoss": loss, "BlackmanWindow": window, "HammingWindow": window,
    "HannWindow": window, "MelWeightMatrix": mel_weights, "DFT": fourier, "STFT": short_fourier,
    "NonMaxSuppression": non_maximum,
}  # fmt: skip
