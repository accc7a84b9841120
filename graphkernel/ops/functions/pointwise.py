"""Python functions of the operators that have attributes or defaults; they normalise what users may write loosely.

Operators without attributes need no entry here: ``ops.add`` and the like are derived from their declarations.
Tensors give Tensors (recorded), numpy arrays give numpy arrays (computed). ``None`` or ``()`` as axis means all axes.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphkernel.errors import FrontendError
from graphkernel.ops.composite import activation, normalize
from graphkernel.ops.tensor.apply import TensorLike, apply, apply_all
from graphkernel.ops.tensor.arguments import Axes, normal_axes, repeated
from graphkernel.ops.tensor.tensor import Operand, Tensor, rank_of
from graphkernel.ops.tensor.weak_typing import weak_array
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators import effects, nn, reduce, scan
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL
from kernelgen.tensor.operators.select import SELECT
from kernelgen.tensor.operators.type_rules import axis_of
from kernelgen.tensor.types import DType, dtype


def cast(x: TensorLike, dst_type: str | DType) -> TensorLike:
    """To another data type; floats truncate towards zero, bool tests != 0."""
    return apply(CAST, x, dst_type=dtype(dst_type).name)


def select(condition: TensorLike, x: Operand, y: Operand) -> TensorLike:
    """``x`` where the condition holds, else ``y``. Scalars take the data type of the other branch, else float32."""
    branch = next((operand for operand in (x, y) if hasattr(operand, "dtype")), None)
    like = dtype(getattr(branch, "dtype", "float32"))
    branches = (operand if isinstance(operand, Tensor) else weak_array(operand, like) for operand in (x, y))
    return apply(SELECT, condition, *branches)


def _reduce(op: Operator, x: TensorLike, axis: Axes, keep_dims: bool) -> TensorLike:
    return apply(op, x, axis=normal_axes(axis, rank_of(x)), keep_dims=keep_dims)


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
    return apply(reduce.ARGMAX, x, axis=axis_of(axis, rank_of(x)), output_type=dtype(output_type).name)


def argmin(x: TensorLike, axis: int = -1, output_type: str | DType = "int32") -> TensorLike:
    """The index of the first minimum along an axis."""
    return apply(reduce.ARGMIN, x, axis=axis_of(axis, rank_of(x)), output_type=dtype(output_type).name)


def cum_sum(x: TensorLike, axis: int, exclusive: bool = False, reverse: bool = False) -> TensorLike:
    """The running sum along an axis."""
    return apply(scan.CUM_SUM, x, axis=axis_of(axis, rank_of(x)), exclusive=exclusive, reverse=reverse)


def matmul(a: TensorLike, b: Operand, transpose_a: bool = False, transpose_b: bool = False) -> TensorLike:
    """The matrix product; more than two dims are batches that broadcast (MatMul or BatchMatMul)."""
    op = MATMUL if rank_of(a) == 2 and rank_of(b) == 2 else BATCH_MATMUL
    return apply(op, a, b, transpose_a=transpose_a, transpose_b=transpose_b)


def batch_matmul(a: TensorLike, b: Operand, transpose_a: bool = False, transpose_b: bool = False) -> TensorLike:
    """Products of the last two dims; the dims before them broadcast."""
    return apply(BATCH_MATMUL, a, b, transpose_a=transpose_a, transpose_b=transpose_b)


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
    return apply(normalize.SOFTMAX, x, axis=normal_axes(axis, rank_of(x)))


def log_softmax(x: TensorLike, axis: int | Sequence[int] = -1) -> TensorLike:
    """The logarithm of :func:`softmax`."""
    return apply(normalize.LOG_SOFTMAX, x, axis=normal_axes(axis, rank_of(x)))


def layer_norm(
    x: TensorLike,
    gamma: Operand,
    beta: Operand,
    begin_norm_axis: int = -1,
    begin_params_axis: int = -1,
    epsilon: float = 1e-7,
) -> tuple[TensorLike, TensorLike, TensorLike]:
    """Layer normalisation over the axes from ``begin_norm_axis`` on: (y, mean, variance), as MindSpore's LayerNorm."""
    norm, parameters = axis_of(begin_norm_axis, rank_of(x)), axis_of(begin_params_axis, rank_of(x))
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


def conv2d(
    x: TensorLike,
    weight: Operand,
    stride: int | Sequence[int] = 1,
    pad: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    group: int = 1,
) -> TensorLike:
    """Two-dimensional convolution, NCHW and OIHW; ``pad`` is one amount or (top, bottom, left, right)."""
    window = {"stride": repeated(stride, 2), "pad": repeated(pad, 4), "dilation": repeated(dilation, 2)}
    return apply(nn.CONV2D, x, weight, **window, group=group)


def max_pool(
    x: TensorLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    pad: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    dilation: int | Sequence[int] = 1,
) -> TensorLike:
    """The maximum of each window, NCHW."""
    window = {"kernel_size": repeated(kernel_size, 2), "stride": repeated(stride, 2), "pad": repeated(pad, 4)}
    return apply(nn.MAX_POOL, x, **window, **_spread(dilation), ceil_mode=ceil_mode)


def avg_pool(
    x: TensorLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    pad: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    dilation: int | Sequence[int] = 1,
) -> TensorLike:
    """The mean of each window, NCHW."""
    window = {"kernel_size": repeated(kernel_size, 2), "stride": repeated(stride, 2), "pad": repeated(pad, 4)}
    return apply(
        nn.AVG_POOL, x, **window, **_spread(dilation), ceil_mode=ceil_mode, count_include_pad=count_include_pad
    )


def _spread(dilation: int | Sequence[int]) -> dict[str, tuple[int, ...]]:
    """The attribute of a window whose elements are not neighbours."""
    steps = repeated(dilation, 2)
    return {} if steps == (1, 1) else {"dilation": steps}


def assign(target: Tensor, value: Operand) -> Tensor:
    """Writes ``value`` into an input of the graph. Use the result where the new content is meant."""
    return _effect(effects.ASSIGN, target, value)


def assign_add(target: Tensor, value: Operand) -> Tensor:
    """Adds ``value`` to an input of the graph, in place. Use the result where the new content is meant."""
    return _effect(effects.ASSIGN_ADD, target, value)


def _effect(op: Operator, target: Tensor, value: Operand) -> Tensor:
    if not target.value.is_parameter:
        raise FrontendError(
            f"{op.name}: only an input of the graph can be assigned to, this is a {target.value.op.name}"
        )
    result: Tensor = apply(op, target, value)
    target.builder.effects.append((target.value, result.value))
    return result
