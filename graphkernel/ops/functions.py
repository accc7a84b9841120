"""Python functions of the operators that have attributes or defaults; they normalise what users may write loosely.

Operators without attributes need no entry here: ``ops.add`` and the like are derived from their declarations.
Tensors give Tensors (recorded), numpy arrays give numpy arrays (computed). ``None`` or ``()`` as axis means all axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphkernel.errors import FrontendError, TypeRuleError
from graphkernel.ir.opdef import OpDef
from graphkernel.ir.types import Dim, DType, Shape, Sym, divide_exactly, dtype, product
from graphkernel.ops import activation, effects, indexing, matmul as products, nn, normalize, reduce, select as selection, shape as shapes
from graphkernel.ops.cast import CAST
from graphkernel.ops.tensor import Operand, Tensor, TensorLike, apply, apply_all, rank_of, weak_array
from graphkernel.ops.type_rules import axes_of, axis_of

Axes = int | Sequence[int] | None


def cast(x: TensorLike, dst_type: str | DType) -> TensorLike:
    """To another data type; floats truncate towards zero, bool tests != 0."""
    return apply(CAST, x, dst_type=dtype(dst_type).name)


def select(condition: TensorLike, x: Operand, y: Operand) -> TensorLike:
    """``x`` where the condition holds, else ``y``. Scalars take the data type of the other branch, else float32."""
    branch = next((operand for operand in (x, y) if hasattr(operand, "dtype")), None)
    like = dtype(getattr(branch, "dtype", "float32"))
    branches = (operand if isinstance(operand, Tensor) else weak_array(operand, like) for operand in (x, y))
    return apply(selection.SELECT, condition, *branches)


def _reduce(op: OpDef, x: TensorLike, axis: Axes, keep_dims: bool) -> TensorLike:
    return apply(op, x, axis=_axes(axis, x), keep_dims=keep_dims)


def reduce_sum(x: TensorLike, axis: Axes = None, keep_dims: bool = False) -> TensorLike:
    """The sum over axes."""
    return _reduce(reduce.REDUCE_SUM, x, axis, keep_dims)


def reduce_prod(x: TensorLike, axis: Axes = None, keep_dims: bool = False) -> TensorLike:
    """The product over axes."""
    return _reduce(reduce.REDUCE_PROD, x, axis, keep_dims)


def reduce_max(x: TensorLike, axis: Axes = None, keep_dims: bool = False) -> TensorLike:
    """The maximum over axes; NaN wins."""
    return _reduce(reduce.REDUCE_MAX, x, axis, keep_dims)


def reduce_min(x: TensorLike, axis: Axes = None, keep_dims: bool = False) -> TensorLike:
    """The minimum over axes; NaN wins."""
    return _reduce(reduce.REDUCE_MIN, x, axis, keep_dims)


def reduce_mean(x: TensorLike, axis: Axes = None, keep_dims: bool = False) -> TensorLike:
    """The mean over axes."""
    return _reduce(normalize.REDUCE_MEAN, x, axis, keep_dims)


def reduce_all(x: TensorLike, axis: Axes = None, keep_dims: bool = False) -> TensorLike:
    """Whether all elements along axes hold."""
    return _reduce(reduce.REDUCE_ALL, x, axis, keep_dims)


def reduce_any(x: TensorLike, axis: Axes = None, keep_dims: bool = False) -> TensorLike:
    """Whether any element along axes holds."""
    return _reduce(reduce.REDUCE_ANY, x, axis, keep_dims)


def argmax(x: TensorLike, axis: int = -1, output_type: str | DType = "int32") -> TensorLike:
    """The index of the first maximum along an axis."""
    return apply(reduce.ARGMAX, x, axis=_axis(axis, x), output_type=dtype(output_type).name)


def argmin(x: TensorLike, axis: int = -1, output_type: str | DType = "int32") -> TensorLike:
    """The index of the first minimum along an axis."""
    return apply(reduce.ARGMIN, x, axis=_axis(axis, x), output_type=dtype(output_type).name)


def cum_sum(x: TensorLike, axis: int, exclusive: bool = False, reverse: bool = False) -> TensorLike:
    """The running sum along an axis."""
    return apply(reduce.CUM_SUM, x, axis=_axis(axis, x), exclusive=exclusive, reverse=reverse)


def reshape(x: TensorLike, shape: int | Sequence[Dim]) -> TensorLike:
    """The same elements in another shape; one extent may be -1, which is worked out."""
    return apply(shapes.RESHAPE, x, shape=_resolved_shape(x, _dims(shape)))


def flatten(x: TensorLike, axis: int = 1) -> TensorLike:
    """To two dims: those before ``axis`` and those from it on."""
    return apply(shapes.FLATTEN, x, axis=axis)


def expand_dims(x: TensorLike, axis: int | Sequence[int]) -> TensorLike:
    """New axes of extent 1 at the given positions of the result."""
    axes = _ints(axis)
    return apply(shapes.EXPAND_DIMS, x, axis=axes_of(axes, rank_of(x) + len(axes), empty_means_all=False))


def squeeze(x: TensorLike, axis: Axes = None) -> TensorLike:
    """Without the given axes of extent 1; without all of them when none is given."""
    ones = tuple(index for index, dim in enumerate(x.shape) if dim == 1)
    return apply(shapes.SQUEEZE, x, axis=ones if axis is None else axes_of(_ints(axis), rank_of(x)))


def transpose(x: TensorLike, perm: Sequence[int] | None = None) -> TensorLike:
    """Result axis i is operand axis ``perm[i]``; without ``perm`` the axes are reversed."""
    rank = rank_of(x)
    order = tuple(reversed(range(rank))) if perm is None else tuple(axis_of(axis, rank) for axis in perm)
    return apply(shapes.TRANSPOSE, x, perm=order)


def broadcast_to(x: TensorLike, shape: int | Sequence[Dim]) -> TensorLike:
    """Repeats axes of extent 1; -1 keeps the operand's extent."""
    dims = _dims(shape)
    padded = (1,) * (len(dims) - rank_of(x)) + tuple(x.shape)
    return apply(shapes.BROADCAST_TO, x, shape=tuple(p if d == -1 else d for p, d in zip(padded, dims, strict=True)))


def tile(x: TensorLike, multiples: int | Sequence[Dim]) -> TensorLike:
    """Repeats the whole tensor along each axis."""
    return apply(shapes.TILE, x, multiples=_dims(multiples))


def concat(tensors: Sequence[Any], axis: int = 0) -> Any:  # noqa: ANN401  # Tensors give a Tensor, arrays an array
    """Joins along an axis."""
    return apply(shapes.CONCAT, *tensors, axis=axis_of(axis, rank_of(tensors[0])))


def split(x: TensorLike, sizes: int | Sequence[int], axis: int = 0) -> tuple[TensorLike, ...]:
    """Cuts an axis into parts of the given sizes; one int is the number of equal parts."""
    resolved = axis_of(axis, rank_of(x))
    return apply_all(shapes.SPLIT, x, axis=resolved, size_splits=_split_sizes(x.shape[resolved], sizes))


def strided_slice(
    x: TensorLike, begin: Sequence[Dim], end: Sequence[Dim], strides: Sequence[int] | None = None
) -> TensorLike:
    """``begin:end:stride`` of every axis, counted from the front."""
    steps = tuple(strides) if strides is not None else (1,) * len(begin)
    return apply(shapes.STRIDED_SLICE, x, begin=tuple(begin), end=tuple(end), strides=steps)


def slice_(x: TensorLike, begin: Sequence[int], size: Sequence[Dim]) -> TensorLike:
    """``size`` elements from ``begin`` of every axis."""
    return apply(shapes.SLICE, x, begin=tuple(begin), size=tuple(size))


def pad(x: TensorLike, paddings: Sequence[tuple[int, int]], value: float = 0.0) -> TensorLike:
    """Puts ``value`` before and after each axis."""
    return apply(shapes.PAD, x, paddings=tuple(amount for pair in paddings for amount in pair), value=float(value))


def matmul(a: TensorLike, b: Operand, transpose_a: bool = False, transpose_b: bool = False) -> TensorLike:
    """The matrix product; more than two dims are batches that broadcast (MatMul or BatchMatMul)."""
    op = products.MATMUL if rank_of(a) == 2 and rank_of(b) == 2 else products.BATCH_MATMUL
    return apply(op, a, b, transpose_a=transpose_a, transpose_b=transpose_b)


def batch_matmul(a: TensorLike, b: Operand, transpose_a: bool = False, transpose_b: bool = False) -> TensorLike:
    """Products of the last two dims; the dims before them broadcast."""
    return apply(products.BATCH_MATMUL, a, b, transpose_a=transpose_a, transpose_b=transpose_b)


def gather(x: TensorLike, indices: Operand, axis: int = 0) -> TensorLike:
    """The slices of ``axis`` at the indices."""
    return apply(indexing.GATHER, x, indices, axis=_axis(axis, x))


def one_hot(indices: TensorLike, depth: int, on_value: Operand, off_value: Operand, axis: int = -1) -> TensorLike:
    """The on value where the position along the new axis equals the index. Python scalars are float32."""
    values = (v if isinstance(v, Tensor | np.ndarray) else weak_array(v, dtype("float32")) for v in (on_value, off_value))
    return apply(indexing.ONE_HOT, indices, *values, depth=depth, axis=axis_of(axis, rank_of(indices) + 1))


def gelu(x: TensorLike, approximate: str = "none") -> TensorLike:
    """x * Phi(x) through erf; ``approximate="tanh"`` is MindSpore's GeLU primitive."""
    if approximate == "tanh":
        return apply(activation.GELU_TANH, x)
    return apply(activation.GELU, x, approximate=approximate)


def leaky_relu(x: TensorLike, alpha: float = 0.01) -> TensorLike:
    """x where x >= 0, else alpha * x."""
    return apply(activation.LEAKY_RELU, x, alpha=float(alpha))


def elu(x: TensorLike, alpha: float = 1.0) -> TensorLike:
    """x where x >= 0, else alpha * (exp(x) - 1)."""
    return apply(activation.ELU, x, alpha=float(alpha))


def softmax(x: TensorLike, axis: int | Sequence[int] = -1) -> TensorLike:
    """exp(x) divided by its sum over the axes."""
    return apply(normalize.SOFTMAX, x, axis=_axes(axis, x))


def log_softmax(x: TensorLike, axis: int | Sequence[int] = -1) -> TensorLike:
    """The logarithm of :func:`softmax`."""
    return apply(normalize.LOG_SOFTMAX, x, axis=_axes(axis, x))


def layer_norm(
    x: TensorLike,
    gamma: Operand,
    beta: Operand,
    begin_norm_axis: int = -1,
    begin_params_axis: int = -1,
    epsilon: float = 1e-7,
) -> tuple[TensorLike, TensorLike, TensorLike]:
    """Layer normalisation over the axes from ``begin_norm_axis`` on: (y, mean, variance), as MindSpore's LayerNorm."""
    norm, parameters = _axis(begin_norm_axis, x), _axis(begin_params_axis, x)
    y, mean, variance = apply_all(
        normalize.LAYER_NORM, x, gamma, beta, begin_norm_axis=norm, begin_params_axis=parameters, epsilon=float(epsilon)
    )
    return y, mean, variance


def rms_norm(x: TensorLike, gamma: Operand, epsilon: float = 1e-6) -> tuple[TensorLike, TensorLike]:
    """(x / rms(x) * gamma, 1 / rms(x)) over the dims of gamma."""
    y, rstd = apply_all(normalize.RMS_NORM, x, gamma, epsilon=float(epsilon))
    return y, rstd


def bias_add(x: TensorLike, bias: Operand, data_format: str = "NCHW") -> TensorLike:
    """Adds a vector along the channel axis."""
    return apply(normalize.BIAS_ADD, x, bias, data_format=data_format)


def bias_add_grad(dy: TensorLike, data_format: str = "NCHW") -> TensorLike:
    """The sum over all axes but that of the channels."""
    return apply(normalize.BIAS_ADD_GRAD, dy, data_format=data_format)


def batch_norm(
    x: TensorLike, scale: Operand, bias: Operand, mean: Operand, variance: Operand, epsilon: float = 1e-5
) -> TensorLike:
    """Batch normalisation with known statistics, channels on axis 1."""
    return apply(normalize.BATCH_NORM, x, scale, bias, mean, variance, epsilon=float(epsilon))


def conv2d(
    x: TensorLike,
    weight: Operand,
    stride: int | Sequence[int] = 1,
    pad: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    group: int = 1,
) -> TensorLike:
    """Two-dimensional convolution, NCHW and OIHW; ``pad`` is one amount or (top, bottom, left, right)."""
    window = {"stride": _times(stride, 2), "pad": _times(pad, 4), "dilation": _times(dilation, 2)}
    return apply(nn.CONV2D, x, weight, **window, group=group)


def max_pool(
    x: TensorLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    pad: int | Sequence[int] = 0,
    ceil_mode: bool = False,
) -> TensorLike:
    """The maximum of each window, NCHW."""
    window = {"kernel_size": _times(kernel_size, 2), "stride": _times(stride, 2), "pad": _times(pad, 4)}
    return apply(nn.MAX_POOL, x, **window, ceil_mode=ceil_mode)


def avg_pool(
    x: TensorLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    pad: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> TensorLike:
    """The mean of each window, NCHW."""
    window = {"kernel_size": _times(kernel_size, 2), "stride": _times(stride, 2), "pad": _times(pad, 4)}
    return apply(nn.AVG_POOL, x, **window, ceil_mode=ceil_mode, count_include_pad=count_include_pad)


def assign(target: Tensor, value: Operand) -> Tensor:
    """Writes ``value`` into an input of the graph. Use the result where the new content is meant."""
    return _effect(effects.ASSIGN, target, value)


def assign_add(target: Tensor, value: Operand) -> Tensor:
    """Adds ``value`` to an input of the graph, in place. Use the result where the new content is meant."""
    return _effect(effects.ASSIGN_ADD, target, value)


def _effect(op: OpDef, target: Tensor, value: Operand) -> Tensor:
    if not target.value.is_parameter:
        raise FrontendError(f"{op.name}: only an input of the graph can be assigned to, this is a {target.value.op.name}")
    result: Tensor = apply(op, target, value)
    target.builder.effects.append((target.value, result.value))
    return result


def _axis(axis: int, x: Any) -> int:  # noqa: ANN401  # a Tensor or array
    return axis_of(axis, rank_of(x))


def _axes(axis: Axes, x: Any) -> tuple[int, ...]:  # noqa: ANN401  # a Tensor or array
    return axes_of(() if axis is None else _ints(axis), rank_of(x))


def _ints(value: int | Sequence[int]) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)


def _times(value: int | Sequence[int], count: int) -> tuple[int, ...]:
    return (value,) * count if isinstance(value, int) else tuple(value)


def _dims(value: int | Sequence[Dim]) -> Shape:
    return (value,) if isinstance(value, int | Sym) else tuple(value)


def _resolved_shape(x: Any, shape: Shape) -> Shape:  # noqa: ANN401  # a Tensor or array
    if shape.count(-1) == 0:
        return shape
    known = product(dim for dim in shape if dim != -1)
    missing = divide_exactly(product(x.shape), known) if shape.count(-1) == 1 and known != 0 else None
    if missing is None:
        raise TypeRuleError(f"Reshape: cannot work out the -1 of {shape} from {product(x.shape)} elements")
    return tuple(missing if dim == -1 else dim for dim in shape)


def _split_sizes(extent: Dim, sizes: int | Sequence[int]) -> tuple[int, ...]:
    if not isinstance(sizes, int):
        return tuple(sizes)
    if not isinstance(extent, int) or sizes <= 0 or extent % sizes:
        raise TypeRuleError(f"Split: extent {extent} does not split into {sizes} equal parts")
    return (extent // sizes,) * sizes
