"""Operators: declarations, and the Python functions that record or compute them. Made by `make docs`."""

from collections.abc import Sequence
from typing import Any

from graphkernel.ops import pickles as pickles
from graphkernel.ops.catalogue import OPS as OPS
from graphkernel.ops.catalogue import Tensor as Tensor
from graphkernel.ops.catalogue import apply as apply
from graphkernel.ops.catalogue import apply_all as apply_all
from graphkernel.ops.catalogue import snake_case as snake_case
from graphkernel.ops.functions.written import concat as concat
from graphkernel.ops.functions.written import extent as extent
from graphkernel.ops.functions.written import gelu as gelu
from graphkernel.ops.functions.written import matmul as matmul
from graphkernel.ops.functions.written import prompt_flash_attention as prompt_flash_attention
from graphkernel.ops.functions.written import quant_batch_matmul as quant_batch_matmul
from graphkernel.ops.functions.written import receive as receive
from graphkernel.ops.functions.written import reshape_ext as reshape_ext
from graphkernel.ops.functions.written import select as select
from graphkernel.ops.functions.written import send as send
from graphkernel.ops.functions.written import split as split
from graphkernel.ops.functions.written import split_with_size as split_with_size
from graphkernel.ops.functions.written import squeeze as squeeze
from graphkernel.ops.functions.written import strided_slice as strided_slice
from kernelgen.tensor.types import Dim, DType

def abs(x: Any) -> Any:
    """The operator Abs."""

def acos(x: Any) -> Any:
    """The operator ACos."""

def acosh(x: Any) -> Any:
    """The operator Acosh."""

def acosh_ext(x: Any) -> Any:
    """Acosh for targets without the function."""

def adam(var: Any, m: Any, v: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, gradient: Any, use_nesterov: bool = False, use_locking: Any = None) -> Any:
    """(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient) -> (var, m, v). One step of Adam; beta1_power and beta2_power are the betas to the power of the step. var, m and v in place."""

def adam_apply_one_with_decay(gradient: Any, v: Any, m: Any, var: Any, lr: Any, beta1: Any, one_minus_beta1: Any, beta2: Any, one_minus_beta2: Any, decay: Any, epsilon: Any) -> Any:
    """(gradient, v, m, var, lr, beta1, one_minus_beta1, beta2, one_minus_beta2, decay, epsilon) -> (v, m, var)."""

def adam_apply_one_with_decay_assign(gradient: Any, v: Any, m: Any, var: Any, lr: Any, beta1: Any, one_minus_beta1: Any, beta2: Any, one_minus_beta2: Any, decay: Any, epsilon: Any) -> Any:
    """(gradient, v, m, var, lr, beta1, one_minus_beta1, beta2, one_minus_beta2, decay, epsilon) -> (v, m, var). In place."""

def adam_weight_decay(var: Any, m: Any, v: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, decay: Any, gradient: Any, use_locking: Any = None) -> Any:
    """(var, m, v, lr, beta1, beta2, epsilon, decay, gradient) -> (var, m, v). One step of Adam with decoupled weight decay, without bias correction, as in MindSpore. var, m and v in place."""

def add(x: Any, y: Any) -> Any:
    """The operator Add."""

def add_ext(x: Any, y: Any, alpha: float = 1) -> Any:
    """x + alpha * y."""

def add_layer_norm(x1: Any, x2: Any, gamma: Any, beta: Any, begin_norm_axis: int = -1, begin_params_axis: int = -1, epsilon: float = 1e-07) -> Any:
    """(y, mean, rstd, s) with s = x1 + x2 and y = LayerNorm(s); statistics in the type of x1"""

def add_layer_norm_v2(x1: Any, x2: Any, gamma: Any, beta: Any, begin_norm_axis: int = -1, begin_params_axis: int = -1, epsilon: float = 1e-07, additional_output: bool | None = None) -> Any:
    """(y, mean, rstd[, s]) with s = x1 + x2 and y = LayerNormV3(s); s is a result if additional_output"""

def add_n(*arrays: Any) -> Any:
    """The sum of all operands, left to right."""

def add_rms_norm(x1: Any, x2: Any, gamma: Any, epsilon: float = 1e-06) -> Any:
    """(y, rstd, s) with s = x1 + x2 and y = RmsNorm(s), which is computed in the type of gamma"""

def add_rms_norm_dynamic_quant(x1: Any, x2: Any, gamma: Any, *smooth: Any, epsilon: float | None = None) -> Any:
    """(quantized, scale, y, s) with s = x1 + x2, y = RmsNorm(s) and (quantized, scale) = DynamicQuant(y[, smooth])"""

def add_rms_norm_quant_v2(x1: Any, x2: Any, gamma: Any, scale: Any, offset: Any, epsilon: float | None = None) -> Any:
    """(QuantV2(y, scale, offset), y, s) with s = x1 + x2 and y = RmsNorm(s)"""

def addcmul(x: Any, first: Any, second: Any, value: Any) -> Any:
    """x + value * (first * second); (x, first, second, value)."""

def all_gather(x: Any, group: str = 'world', rank_size: int = 1, *token: Any, fusion: Any = None) -> Any:
    """The operands of all processes, joined along axis 0, on every process."""

def all_reduce(x: Any, op: str = 'sum', group: str = 'world', rank_size: int = 1, *token: Any, fusion: Any = None) -> Any:
    """The sum (op: sum, max, min, prod) of the operands of all processes, on every process. rank_size=0: of however many."""

def all_to_all(x: Any, group: str = 'world', rank_size: int = 1, *token: Any, fusion: Any = None) -> Any:
    """Part i of axis 0 goes to process i; what comes from the processes is joined along axis 0 in their order."""

def apply_momentum(var: Any, accumulation: Any, lr: Any, gradient: Any, momentum: Any, use_nesterov: bool = False, gradient_scale: float = 1.0, use_locking: Any = None) -> Any:
    """(var, accumulation, lr, gradient, momentum) -> (var, accumulation). accumulation * momentum + gradient, and var minus lr times that. Both in place."""

def arg_max_with_value(x: Any, axis: int = 0, keep_dims: bool = False) -> Any:
    """(index of the first maximum along axis as int32, the maximum)."""

def arg_min_with_value(x: Any, axis: int = 0, keep_dims: bool = False) -> Any:
    """(index of the first minimum along axis as int32, the minimum)."""

def argmax(x: Any, axis: int = -1, output_type: str | DType = 'int32') -> Any:
    """The index of the first maximum along an axis."""

def argmin(x: Any, axis: int = -1, output_type: str | DType = 'int32') -> Any:
    """The index of the first minimum along an axis."""

def asin(x: Any) -> Any:
    """The operator Asin."""

def asinh(x: Any) -> Any:
    """The operator Asinh."""

def asinh_ext(x: Any) -> Any:
    """Asinh for targets without the function."""

def assign(target: Any, value: Any) -> Any:
    """Writes the value into an input of the graph. Use the result where the new content is meant."""

def assign_add(target: Any, value: Any) -> Any:
    """Adds a value to an input of the graph, in place. Use the result where the new content is meant."""

def atan(x: Any) -> Any:
    """The operator Atan."""

def atan2(x: Any, y: Any) -> Any:
    """The operator Atan2."""

def atanh(x: Any) -> Any:
    """The operator Atanh."""

def avg_pool(x: Any, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1, pad: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = False, dilation: int | Sequence[int] = 1, format: str = 'NCHW', places: Dim | Sequence[Dim] = ()) -> Any:
    """The mean of each window, NCHW or NHWC."""

def batch_matmul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, *bias: Any, Akg: Any = None) -> Any:
    """Products of the last two dims; the dims before them broadcast. A third operand is added to every row."""

def batch_norm(x: Any, scale: Any, bias: Any, mean: Any, variance: Any, epsilon: float = 1e-05, momentum: float = 0.1, data_format: str = 'NCHW', is_training: bool = False) -> Any:
    """(x, scale, bias, mean, variance) -> y; with is_training also new running mean and variance (momentum weighs the batch, the variance is unbiased), the batch's mean and 1 / sqrt(variance + epsilon)."""

def batch_norm_grad(dy: Any, x: Any, scale: Any, mean: Any, spread: Any, epsilon: float = 1e-05, data_format: str = 'NCHW', is_training: bool = False) -> Any:
    """(dy, x, scale, mean, spread) -> (dx, dscale, dbias); spread is the 1 / sqrt(variance + epsilon) that BatchNorm gave in training, the running variance otherwise."""

def bce_with_logits_loss(logits: Any, labels: Any, weight: Any, pos_weight: Any, reduction: str = 'mean') -> Any:
    """The binary cross entropy of sigmoid(logits); pos_weight weighs the term of positive labels; then none, mean or sum."""

def bias_add(x: Any, bias: Any, data_format: str = 'NCHW') -> Any:
    """Adds a vector along the channel axis."""

def bias_add_grad(dy: Any, data_format: str = 'NCHW') -> Any:
    """The sum over all axes but that of the channels."""

def binary_cross_entropy(probabilities: Any, labels: Any, weight: Any = None, reduction: str = 'mean') -> Any:
    """-(labels * log(p) + (1 - labels) * log(1 - p)) * weight of probabilities p, then none, mean or sum; a logarithm is taken as -100 at least, so that 0 log 0 is 0."""

def broadcast(x: Any, root_rank: int = 0, group: str = 'world', rank_size: int = 1, *token: Any, fusion: Any = None) -> Any:
    """The operand of process root_rank, on every process."""

def broadcast_to(x: Any, shape: Dim | Sequence[Dim]) -> Any:
    """Repeats axes of extent 1; -1 keeps the operand's extent."""

def cabs(x: Any) -> Any:
    """The absolute value."""

def cadd(x: Any, y: Any) -> Any:
    """x + y."""

def cast(x: Any, dst_type: str | DType) -> Any:
    """To the data type named by dst_type; floats truncate towards zero, bool tests != 0, of complex numbers the real part is taken."""

def cdiv(x: Any, y: Any) -> Any:
    """x / y."""

def ceil(x: Any) -> Any:
    """The operator Ceil."""

def cimag(x: Any) -> Any:
    """The imaginary part."""

def clamp_scalar(x: Any, min: float | None = None, max: float | None = None) -> Any:
    """Minimum(Maximum(x, min), max), where one of the two may be absent; max wins when min > max, NaN stays."""

def clip_by_norm(x: Any, clip_norm: Any, axis: int | Sequence[int] | None = None) -> Any:
    """(x, clip_norm): x scaled to the norm clip_norm where its norm over the axes (none means all) is larger."""

def clip_by_norm_no_div_sum(x: Any, threshold: Any, other: Any, least: Any) -> Any:
    """(sum of squares x, threshold, other, least): the root of x where it is larger than the threshold, else x, but never less than least."""

def cmul(x: Any, y: Any) -> Any:
    """x * y."""

def complex(real: Any, imaginary: Any) -> Any:
    """From real and imaginary part."""

def constant_of_shape(extents: Any, shape: Dim | Sequence[Dim], value: float = 0.0, dtype: str | DType | None = None) -> Any:
    """value in every element, of data type dtype (float32). The operand holds the extents; the attribute shape repeats them for the type."""

def conv2d(x: Any, weight: Any, stride: int | Sequence[int] = 1, pad: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, group: int = 1, format: str = 'NCHW', places: Dim | Sequence[Dim] = ()) -> Any:
    """Two-dimensional convolution, NCHW and OIHW or NHWC and HWIO; pad is one amount or (top, bottom, left, right); a bias is a BiasAdd. Images of uint8 and weights of int8 give sums of int32, those with weights of float32 sums of float32."""

def conv2d_backprop_filter(dy: Any, x: Any, filter_size: Dim | Sequence[Dim], stride: int | Sequence[int] = 1, pad: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, group: int = 1, format: str = 'NCHW') -> Any:
    """(dy, x) -> dweight, NCHW and OIHW or NHWC and HWIO."""

def conv2d_backprop_input(dy: Any, weight: Any, input_size: Dim | Sequence[Dim], stride: int | Sequence[int] = 1, pad: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, group: int = 1) -> Any:
    """(dy, weight) -> dx."""

def coo2csr(rows: Any, height: Dim) -> Any:
    """indptr, from sorted row numbers."""

def cos(x: Any) -> Any:
    """The operator Cos."""

def cosh(x: Any) -> Any:
    """The operator Cosh."""

def creal(x: Any) -> Any:
    """The real part."""

def creal_div(x: Any, y: Any) -> Any:
    """x / y, the same as CDiv."""

def csr2coo(indptr: Any, nnz: Dim) -> Any:
    """The row of each of the nnz stored elements."""

def csr_div(indptr: Any, indices: Any, values: Any, dense: Any, dense_shape: Dim | Sequence[Dim]) -> Any:
    """CSRMul with a quotient."""

def csr_gather(indptr: Any, indices: Any, dense: Any, dense_shape: Dim | Sequence[Dim]) -> Any:
    """(indptr, indices, dense): the dense elements at the stored places."""

def csr_mm(indptr: Any, indices: Any, values: Any, dense: Any, dense_shape: Dim | Sequence[Dim] | None = None) -> Any:
    """The matrix times a dense matrix."""

def csr_mul(indptr: Any, indices: Any, values: Any, dense: Any, dense_shape: Dim | Sequence[Dim]) -> Any:
    """(indptr, indices, values, dense): the stored values times the dense elements there."""

def csr_mv(indptr: Any, indices: Any, values: Any, dense: Any, dense_shape: Dim | Sequence[Dim] | None = None) -> Any:
    """The matrix times a column."""

def csr_reduce_sum(indptr: Any, indices: Any, values: Any, dense_shape: Dim | Sequence[Dim], axis: int | None = None) -> Any:
    """(indptr, indices, values): the sum of the stored values of every row, as [rows, 1, ...]."""

def csub(x: Any, y: Any) -> Any:
    """x - y."""

def cum_prod(x: Any, axis: int, exclusive: bool = False, reverse: bool = False) -> Any:
    """The running product along axis; exclusive leaves the element itself out, reverse runs from the end."""

def cum_sum(x: Any, axis: int, exclusive: bool = False, reverse: bool = False) -> Any:
    """The running sum along axis; exclusive leaves the element itself out, reverse runs from the end."""

def div(x: Any, y: Any) -> Any:
    """Division; of integers it rounds towards zero, as C and ONNX do, by 0 to 0."""

def div_mod(x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    """x / y ('none'), its floor ('floor') or its whole part ('trunc'); the quotient of floats is rounded before."""

def dropout(x: Any, *step: Any, keep_prob: float = 0.5, seed0: int = 0, seed1: int = 0) -> Any:
    """(x, [step]) -> (x / keep_prob * mask, mask); the mask is 1 with probability keep_prob, else 0; drawn anew each time where both seeds are 0."""

def dropout_grad(dy: Any, mask: Any, keep_prob: float = 0.5) -> Any:
    """(dy, mask) -> dy / keep_prob * mask."""

def dynamic_quant(x: Any, smooth: Any = None) -> Any:
    """(x[, smooth]) -> (int8(round(x * smooth / scale)), scale) with scale = max(|x * smooth|) / 127 of each row."""

def dynamic_reshape(x: Any, extents: Any, shape: Dim | Sequence[Dim]) -> Any:
    """(x, extents) -> x in the shape that extents holds; the attribute shape repeats them for the type."""

def elem_any(x: Any, dst_type: str | DType | None = None) -> Any:
    """[1] where any element is greater than 0, else [0]; the data type is dst_type, by default float32."""

def elu(x: Any, alpha: float = 1.0) -> Any:
    """x where x >= 0, else alpha * (exp(x) - 1)."""

def elu_ext(x: Any, alpha: float = 1.0) -> Any:
    """x where x >= 0, else alpha * (exp(x) - 1)."""

def equal(x: Any, y: Any) -> Any:
    """The operator Equal."""

def equal_count(x: Any, y: Any) -> Any:
    """In how many places two tensors are equal, as one element of their data type."""

def erf(x: Any) -> Any:
    """The operator Erf."""

def erfc(x: Any) -> Any:
    """1 - erf(x), with all digits where that is small."""

def exp(x: Any) -> Any:
    """The operator Exp."""

def expand_dims(x: Any, axis: int | Sequence[int]) -> Any:
    """New axes of extent 1 at the given positions of the result."""

def expm1(x: Any) -> Any:
    """The operator Expm1."""

def fast_gelu(x: Any) -> Any:
    """Another name of FastGeLU."""

def fast_gelu_grad(dy: Any, x: Any) -> Any:
    """Another name of FastGeLUGrad."""

def fill_v2(value: Any, shape: Dim | Sequence[Dim]) -> Any:
    """One value in every element of shape."""

def flatten(x: Any, axis: int = 1) -> Any:
    """To two dims: those before axis and those from axis on."""

def float_status(x: Any) -> Any:
    """[0.0] where all elements are finite, else [1.0]."""

def floor(x: Any) -> Any:
    """The operator Floor."""

def floor_div(x: Any, y: Any) -> Any:
    """The operator FloorDiv."""

def floor_mod(x: Any, y: Any) -> Any:
    """Remainder with the sign of the divisor."""

def fused_matmul_elem_binary(x: Any, weight: Any, bias: Any, elemwise: str | None = None, transpose_a: bool = False, transpose_b: bool = False, Akg: Any = None) -> Any:
    """x @ weight + bias (elemwise="bias_add")"""

def fused_matmul_elem_unary(x: Any, weight: Any, elemwise: str, transpose_a: bool = False, transpose_b: bool = False, Akg: Any = None) -> Any:
    """ReLU or GeLU (the tanh form) of x @ weight, as elemwise says: "relu" or "gelu" """

def fused_mul_add(x: Any, y: Any, z: Any) -> Any:
    """x * y + z; the product is rounded."""

def gather(x: Any, indices: Any, axis: int = 0) -> Any:
    """The slices of axis at the indices; negative indices count from the end, others out of range are an error."""

def gather_nd(x: Any, indices: Any) -> Any:
    """The slices of x at the addresses that indices hold."""

def gelu_grad(dy: Any, x: Any, *unused: Any) -> Any:
    """Gradient of GeLU (tanh form) from dy, x and optionally the result y, which is not needed."""

def greater(x: Any, y: Any) -> Any:
    """The operator Greater."""

def greater_equal(x: Any, y: Any) -> Any:
    """The operator GreaterEqual."""

def grouped_matmul(x: Any, weight: Any, groups: Any, split_item: int | None = None, group_type: int | None = None, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    """(x, weight, group_list), where group_list holds the end of each group. group_type 0: rows of x times the weight [groups, inner, columns] of their group, 0 behind the last end; 2: the inner extent is divided, one product a group."""

def hshrink(x: Any, lambd: float = 0.5) -> Any:
    """0 where |x| <= lambd, else x."""

def hsigmoid(x: Any) -> Any:
    """The operator HSigmoid."""

def hswish(x: Any) -> Any:
    """The operator HSwish."""

def identity_math(x: Any) -> Any:
    """The operand."""

def is_finite(x: Any) -> Any:
    """The operator IsFinite."""

def is_inf(x: Any) -> Any:
    """The operator IsInf."""

def is_nan(x: Any) -> Any:
    """The operator IsNan."""

def lamb_apply_optimizer_assign(gradient: Any, v: Any, m: Any, var: Any, beta1: Any, one_minus_beta1: Any, beta2: Any, one_minus_beta2: Any, epsilon: Any, step: Any, use_weight: Any, decay: Any) -> Any:
    """(gradient, v, m, var, beta1, one_minus_beta1, beta2, one_minus_beta2, epsilon, step, use_weight, decay) -> (gradient, v, m). The first result is the update that LambApplyWeightAssign takes; v and m in place."""

def lamb_apply_weight_assign(w_norm: Any, g_norm: Any, lr: Any, update: Any, var: Any) -> Any:
    """(w_norm, g_norm, lr, update, var) -> (var). var - lr * ratio * update in place; the ratio of the norms where both are positive, else 1."""

def layer_norm(x: Any, gamma: Any, beta: Any, begin_norm_axis: int = -1, begin_params_axis: int = -1, epsilon: float = 1e-07) -> Any:
    """(x, gamma, beta) -> (y, mean, variance), over the axes from begin_norm_axis on."""

def layer_norm_ext(x: Any, normalized_shape: Dim | Sequence[Dim], gamma: Any, beta: Any, epsilon: float = 1e-05) -> Any:
    """(x, gamma, beta) -> (y, mean, rstd) over the last axes, which are normalized_shape; statistics in float32."""

def layer_norm_grad(x: Any, dy: Any, variance: Any, mean: Any, gamma: Any, begin_norm_axis: int = -1, begin_params_axis: int = -1, epsilon: float = 1e-07) -> Any:
    """(x, dy, variance, mean, gamma) -> (dx, dgamma, dbeta), with the statistics that LayerNorm gave."""

def layer_norm_v3(x: Any, gamma: Any, beta: Any, begin_norm_axis: int = -1, begin_params_axis: int = -1, epsilon: float = 1e-07) -> Any:
    """(x, gamma, beta) -> (y, mean, rstd): LayerNorm with 1 / sqrt(variance + epsilon), statistics in float32."""

def layout_transform(x: Any, src_format: str, dst_format: str) -> Any:
    """The same elements in another order of axes and blocks, such as NCHW to NCHW16c; an axis must divide into whole blocks."""

def leaky_relu(x: Any, alpha: float = 0.01) -> Any:
    """x where x >= 0, else alpha * x."""

def leaky_relu_ext(x: Any, negative_slope: float = 0.01) -> Any:
    """x where x >= 0, else negative_slope * x."""

def less(x: Any, y: Any) -> Any:
    """The operator Less."""

def less_equal(x: Any, y: Any) -> Any:
    """The operator LessEqual."""

def log(x: Any) -> Any:
    """The operator Log."""

def log1p(x: Any) -> Any:
    """The operator Log1p."""

def log_softmax(x: Any, axis: int | Sequence[int] | None = -1) -> Any:
    """The logarithm of ops.softmax."""

def log_softmax_grad(y: Any, dy: Any, axis: int | Sequence[int] | None = -1) -> Any:
    """The gradient of ops.log_softmax from its result (the logarithms) and dy."""

def logical_and(x: Any, y: Any) -> Any:
    """The operator LogicalAnd."""

def logical_not(x: Any) -> Any:
    """The operator LogicalNot."""

def logical_or(x: Any, y: Any) -> Any:
    """The operator LogicalOr."""

def logical_xor(x: Any, y: Any) -> Any:
    """Whether exactly one operand holds."""

def lu(x: Any) -> Any:
    """x -> (both factors in one matrix, p) with partial pivoting: x[p] is L @ U, the diagonal of L is 1 and not stored."""

def matmul_all_reduce(x: Any, weight: Any, *token: Any, transpose_a: bool = False, transpose_b: bool = False, Akg: Any = None, op: str = 'sum', group: str = 'world', rank_size: int = 1, fusion: Any = None) -> Any:
    """AllReduce(x @ weight) over the devices of the group"""

def matmul_bias_split_out2(x: Any, weight: Any, *more: Any, n_lens: Sequence[int]) -> Any:
    """the pieces n_lens of the last axis of x @ weight.T + bias"""

def matmul_bias_split_out3(x: Any, weight: Any, *more: Any, n_lens: Sequence[int]) -> Any:
    """the pieces n_lens of the last axis of x @ weight.T + bias"""

def matmul_bias_split_silu_out2(x: Any, weight: Any, *more: Any, n_lens: Sequence[int], silu_index: int | None = None) -> Any:
    """the pieces n_lens of the last axis of x @ weight.T + bias, one through SiLU"""

def matmul_integer(a: Any, b: Any) -> Any:
    """The product of matrices of bytes, each with a sign or without, in int32; dims before the last two broadcast."""

def matmul_split_out2(x: Any, y: Any, n_lens: Sequence[int]) -> Any:
    """the pieces n_lens of the last axis of x @ weight.T"""

def matmul_split_out3(x: Any, y: Any, n_lens: Sequence[int]) -> Any:
    """the pieces n_lens of the last axis of x @ weight.T"""

def matmul_split_silu_out2(x: Any, y: Any, n_lens: Sequence[int], silu_index: int | None = None) -> Any:
    """the pieces n_lens of the last axis of x @ weight.T, one through SiLU"""

def max_pool(x: Any, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1, pad: int | Sequence[int] = 0, ceil_mode: bool = False, dilation: int | Sequence[int] = 1, format: str = 'NCHW', places: Dim | Sequence[Dim] = ()) -> Any:
    """The maximum of each window, NCHW or NHWC."""

def maximum(x: Any, y: Any) -> Any:
    """NaN wins."""

def maximum_grad(x: Any, y: Any, dout: Any, grad_x: Any = None, grad_y: Any = None) -> Any:
    """(x, y, dout) -> (dx, dy); equal operands give all to x. Both results are given whatever grad_x and grad_y say."""

def mean_ext(x: Any, axis: int | Sequence[int] | None = None, keep_dims: bool = False) -> Any:
    """ReduceMean, as mint.mean calls it."""

def minimum(x: Any, y: Any) -> Any:
    """NaN wins."""

def minimum_grad(x: Any, y: Any, dout: Any, grad_x: Any = None, grad_y: Any = None) -> Any:
    """(x, y, dout) -> (dx, dy); equal operands give all to x. Both results are given whatever grad_x and grad_y say."""

def mod(x: Any, y: Any) -> Any:
    """Remainder with the sign of the dividend."""

def mul(x: Any, y: Any) -> Any:
    """The operator Mul."""

def muls(x: Any, other: float) -> Any:
    """x * other, a number."""

def neg(x: Any) -> Any:
    """The operator Neg."""

def not_equal(x: Any, y: Any) -> Any:
    """The operator NotEqual."""

def one_hot(indices: Any, depth: Dim, on_value: Any, off_value: Any, axis: int = -1) -> Any:
    """The on value where the position along the new axis equals the index, else the off value."""

def ones_like(x: Any) -> Any:
    """The operator OnesLike."""

def onnx(*arrays: Any, op_type: Any = None, domain: Any = None, opset: Any = None, attributes: Any = None, result_types: Any = None, present: Any = None, wanted: Any = None, defines: Any = None, operand_types: Any = None, captured: Any = None, domains: Any = None) -> Any:
    """The meaning by onnxruntime; by onnx's reference evaluator where onnxruntime lacks the operator."""

def pad(x: Any, paddings: Sequence[tuple[int, int]], value: float = 0.0) -> Any:
    """Puts value before and behind each axis; paddings is (before, after) of each, which the operator holds flattened."""

def pad_akg(x: Any, head: Sequence[int], tail: Sequence[int], pad_val: float = 0.0) -> Any:
    """head elements of pad_val before each axis and tail elements behind it."""

def paged_attention(query: Any, key_cache: Any, value_cache: Any, block_tables: Any, context_lens: Any, head_num: int, scale_value: float | None = None, kv_head_num: int | None = None) -> Any:
    """(query, key_cache, value_cache, block_tables, context_lens): attention of one new token of each sequence over the context_lens tokens in its blocks. Fewer key-value heads than heads are shared in groups; scale_value defaults to 1 / sqrt(head size); no tokens give 0."""

def places(indices: Any, extent: Dim, reader: str = '') -> Any:
    """The places of an axis of so many elements: negative indices count from the end, others out of range are an error. Errors name the reader."""

def pool2d(x: Any, pool_type: str | None = None, global_: bool | None = None, kernel_size: Sequence[int] | None = None, strides: Sequence[int] | None = None, pad: Sequence[int] | None = None, round_mode: str | None = None, data_layout: str | None = None, places: Dim | Sequence[Dim] = ()) -> Any:
    """The maximum or mean ('max', 'avg') of each window, or of the whole image ('global'); pad is (top, left, bottom, right) and counts in a mean; round_mode 'ceil' pads on until the last window fits."""

def pow(x: Any, y: Any) -> Any:
    """The operator Pow."""

def quant_v2(x: Any, scale: Any, offset: Any, sqrt_mode: bool = False, rounding_mode: str = 'ROUND') -> Any:
    """(x, scale, offset) -> int8(round(x * scale + offset)), saturated, NaN to 0; sqrt_mode squares the scale."""

def quantbatchmatmul_split_out2(x: Any, weight: Any, *more: Any, n_lens: Sequence[int], dtype: str | DType | None = None, optional: Any = None) -> Any:
    """the pieces n_lens of the last axis of QuantBatchMatmul(x, weight.T, scale[, bias][, pertoken_scale])"""

def quantbatchmatmul_split_out3(x: Any, weight: Any, *more: Any, n_lens: Sequence[int], dtype: str | DType | None = None, optional: Any = None) -> Any:
    """the pieces n_lens of the last axis of QuantBatchMatmul(x, weight.T, scale[, bias][, pertoken_scale])"""

def quantbatchmatmul_split_silu_out2(x: Any, weight: Any, *more: Any, n_lens: Sequence[int], silu_index: int | None = None, dtype: str | DType | None = None, optional: Any = None) -> Any:
    """the pieces n_lens of the last axis of QuantBatchMatmul(x, weight.T, scale[, bias][, pertoken_scale]), one through SiLU"""

def real_div(x: Any, y: Any) -> Any:
    """True division."""

def reciprocal(x: Any) -> Any:
    """The operator Reciprocal."""

def reduce_all(x: Any, axis: int | Sequence[int] | None = None, keep_dims: bool = False) -> Any:
    """Whether all elements along axes hold."""

def reduce_any(x: Any, axis: int | Sequence[int] | None = None, keep_dims: bool = False) -> Any:
    """Whether any element along axes holds."""

def reduce_max(x: Any, axis: int | Sequence[int] | None = None, keep_dims: bool = False) -> Any:
    """The maximum over axes; NaN wins."""

def reduce_mean(x: Any, axis: int | Sequence[int] | None = None, keep_dims: bool = False) -> Any:
    """The mean over axes."""

def reduce_min(x: Any, axis: int | Sequence[int] | None = None, keep_dims: bool = False) -> Any:
    """The minimum over axes; NaN wins."""

def reduce_prod(x: Any, axis: int | Sequence[int] | None = None, keep_dims: bool = False) -> Any:
    """The product over axes."""

def reduce_scatter(x: Any, op: str = 'sum', group: str = 'world', rank_size: int = 1, *token: Any, fusion: Any = None) -> Any:
    """ops.all_reduce, of which each process keeps its part of axis 0."""

def reduce_sum(x: Any, axis: int | Sequence[int] | None = None, keep_dims: bool = False) -> Any:
    """The sum over axes."""

def relu(x: Any) -> Any:
    """The operator ReLU."""

def relu6(x: Any) -> Any:
    """The operator ReLU6."""

def relu_grad(dy: Any, y: Any) -> Any:
    """dy where the operand is positive."""

def repeat_interleave_int(x: Any, repeats: int, dim: int | None = None) -> Any:
    """Each element repeats times in a row along dim; without dim the elements are flattened first."""

def reshape(x: Any, shape: Dim | Sequence[Dim]) -> Any:
    """The same elements in row-major order in another shape; one extent may be -1, which is worked out."""

def reshape_and_cache(key: Any, value: Any, key_cache: Any, value_cache: Any, slot_mapping: Any) -> Any:
    """(key, value, key_cache, value_cache, slot_mapping) -> both caches, with the key and value of each token in its slot; slots out of range are skipped. Traced, the caches are inputs of the graph and written in place: use the results where the new content is meant."""

def rms_norm(x: Any, gamma: Any, epsilon: float = 1e-06) -> Any:
    """(x, gamma) -> (x / rms(x) * gamma, 1 / rms(x)), over the dims of gamma."""

def rms_norm_grad(dy: Any, x: Any, rstd: Any, gamma: Any) -> Any:
    """(dy, x, rstd, gamma) -> (dx, dgamma), with the rstd that RmsNorm gave."""

def rms_norm_quant(x: Any, gamma: Any, scale: Any, offset: Any, epsilon: float | None = None) -> Any:
    """QuantV2(RmsNorm(x, gamma), scale, offset)"""

def rotary_position_embedding(x: Any, cos: Any, sin: Any, mode: int | None = None) -> Any:
    """x * cos + concat(-b, a) * sin where a and b are the halves of the last axis of x; cos and sin broadcast"""

def round(x: Any) -> Any:
    """To nearest, ties to even."""

def rsqrt(x: Any) -> Any:
    """The operator Rsqrt."""

def rsqrt_grad(y: Any, dy: Any) -> Any:
    """From the result y and dy."""

def shape_of(x: Any) -> Any:
    """The extents, as an int64 tensor."""

def sigmoid(x: Any) -> Any:
    """The operator Sigmoid."""

def sigmoid_cross_entropy_with_logits(logits: Any, labels: Any) -> Any:
    """Of logits and labels, element by element."""

def sigmoid_cross_entropy_with_logits_grad(logits: Any, labels: Any, dout: Any) -> Any:
    """From logits, labels and dout."""

def sigmoid_grad(y: Any, dy: Any) -> Any:
    """From the result y and dy."""

def sign(x: Any) -> Any:
    """The operator Sign."""

def silu(x: Any) -> Any:
    """x * sigmoid(x)."""

def silu_grad(dy: Any, x: Any) -> Any:
    """From dy and the operand."""

def sin(x: Any) -> Any:
    """The operator Sin."""

def sinh(x: Any) -> Any:
    """The operator Sinh."""

def slice(x: Any, begin: Sequence[int], size: Dim | Sequence[Dim]) -> Any:
    """size elements from begin of every axis."""

def softmax(x: Any, axis: int | Sequence[int] | None = -1) -> Any:
    """exp(x) divided by its sum over the axes."""

def softmax_backward(dy: Any, y: Any, dim: int = -1) -> Any:
    """The gradient of ops.softmax from dy and its result y."""

def softmax_cross_entropy_with_logits(logits: Any, labels: Any) -> Any:
    """(logits, labels) -> (loss of each row, gradient of the loss by the logits), over the last axis."""

def softmax_grad(y: Any, dy: Any, axis: int | Sequence[int] | None = -1) -> Any:
    """The gradient of ops.softmax from its result y and dy."""

def softmax_grad_ext(dy: Any, y: Any, scale: Any, axis: int | Sequence[int] | None = -1) -> Any:
    """(dy, y, scale): the gradient of a softmax times a scale, (dy - sum(dy * y)) * y * scale."""

def softplus(x: Any) -> Any:
    """log(1 + exp(x)) without overflow."""

def softplus_ext(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + exp(beta * x)) / beta, x itself where beta * x > threshold."""

def softplus_grad(dy: Any, x: Any) -> Any:
    """From dy and the operand."""

def softplus_grad_ext(dy: Any, x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """dy * sigmoid(beta * x), dy itself where beta * x > threshold; from dy and the operand of SoftplusExt."""

def softsign(x: Any) -> Any:
    """The operator Softsign."""

def solve_triangular(a: Any, b: Any, lower: bool = False, trans: bool = False, unit_diagonal: bool = False) -> Any:
    """(a, b): x with a @ x = b, of a only the upper (or lower) triangle is read; trans solves with its transpose."""

def sqrt(x: Any) -> Any:
    """The operator Sqrt."""

def sqrt_grad(y: Any, dy: Any) -> Any:
    """From the result y and dy."""

def square(x: Any) -> Any:
    """The operator Square."""

def square_sum_all(x: Any, y: Any) -> Any:
    """(the sum of x * x, the sum of y * y), each over all elements."""

def squared_difference(x: Any, y: Any) -> Any:
    """The operator SquaredDifference."""

def standard_normal(shape: Dim | Sequence[Dim], *step: Any, seed: int = 0, seed2: int = 0) -> Any:
    """([step]): normal float32 numbers, mean 0 and variance 1, by Box and Muller's transform of two words; anew each time where both seeds are 0."""

def stop_gradient(x: Any) -> Any:
    """The operand, which counts as constant when differentiated."""

def stored_matmul(x: Any, stored: Any, *each: Any, bits: int = 0) -> Any:
    """x [.., terms] times the weights [groups, terms of a group, columns], of which each group and column may have a scale and a zero point. With bits=4 two terms share a byte, the first in its low half, and are 8 more than they stand for."""

def sub(x: Any, y: Any) -> Any:
    """The operator Sub."""

def sub_ext(x: Any, y: Any, alpha: float = 1) -> Any:
    """x - alpha * y."""

def sum_ext(x: Any, axis: int | Sequence[int] | None = None, keep_dims: bool = False, dtype: str | DType | None = None) -> Any:
    """The sum over axes (none means all) in another data type: dtype, else int64 for bool and integers."""

def swiglu(x: Any, axis: int = -1) -> Any:
    """SiLU(a) * b where a and b are the halves of x along axis"""

def tan(x: Any) -> Any:
    """The operator Tan."""

def tanh(x: Any) -> Any:
    """The operator Tanh."""

def tanh_grad(y: Any, dy: Any) -> Any:
    """From the result y and dy."""

def tensor_move(x: Any) -> Any:
    """A copy."""

def tensor_scatter_add(x: Any, indices: Any, updates: Any) -> Any:
    """(x, indices, updates): x plus the updates at their addresses; equal addresses add up."""

def tile(x: Any, multiples: Dim | Sequence[Dim]) -> Any:
    """Repeats the whole tensor along each axis."""

def trans_data(x: Any, src_format: str, dst_format: str, shape: Dim | Sequence[Dim] | None = None) -> Any:
    """To FRACTAL_NZ and back; on the way back shape says what the padding is cut to."""

def transpose(x: Any, perm: Sequence[int] | None = None) -> Any:
    """Result axis i is operand axis perm[i]; without perm the axes are reversed."""

def trunc(x: Any) -> Any:
    """The operator Trunc."""

def un_pad_akg(x: Any, tail: Sequence[int]) -> Any:
    """Without the last tail elements of each axis."""

def uniform_real(shape: Dim | Sequence[Dim], *step: Any, seed: int = 0, seed2: int = 0, word: Any = None) -> Any:
    """([step]): float32 numbers in [0, 1), multiples of 2^-24, from one word (0 to 3) of Philox4x32-10; anew each time where both seeds are 0."""

def unsorted_segment_sum(x: Any, ids: Any, num_segments: Dim) -> Any:
    """(x, ids): result[s] is the sum of x[i] over all places i where ids[i] is s."""

def zeros_like(x: Any) -> Any:
    """The operator ZerosLike."""

def zeros_like_ext(x: Any, dtype: str | DType | None = None) -> Any:
    """Zeros of the operand's shape; dtype is another data type than the operand's."""
