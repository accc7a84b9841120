"""What numpy and torch call operators that have another name here, each as it is written with our operators.

Every entry is an expression over ``x``, ``y`` (float tensors of one shape, two axes), ``w`` (a matrix that ``x`` can be
multiplied with), ``condition`` (a bool tensor) and ``i`` (indices); a test evaluates them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from graphkernel.errors import nearest


def _each(names: str, text: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), text)


def _ours(names: str, operands: str) -> dict[str, str]:
    return {name: f"ops.{name}({operands})" for name in names.split()}


WRITTEN: Mapping[str, str] = {
    **_each("where", "ops.select(condition, x, y)"),
    **_each("masked_fill", "ops.select(condition, 0.0, x)"),
    **_each("sum", "ops.reduce_sum(x, axis=-1)"),
    **_each("mean average", "ops.reduce_mean(x, axis=-1)"),
    **_each("max amax", "ops.reduce_max(x, axis=-1)"),
    **_each("min amin", "ops.reduce_min(x, axis=-1)"),
    **_each("prod", "ops.reduce_prod(x, axis=-1)"),
    **_each("any", "ops.reduce_any(condition, axis=-1)"),
    **_each("all", "ops.reduce_all(condition, axis=-1)"),
    **_each("var", "ops.reduce_mean(ops.square(x - ops.reduce_mean(x, axis=-1, keep_dims=True)), axis=-1)"),
    **_each("std", "ops.sqrt(ops.reduce_mean(ops.square(x - ops.reduce_mean(x, axis=-1, keep_dims=True)), axis=-1))"),
    **_each("norm", "ops.sqrt(ops.reduce_sum(ops.square(x), axis=-1))"),
    **_each("cumsum", "ops.cum_sum(x, axis=-1)"),
    **_each("cumprod", "ops.cum_prod(x, axis=-1)"),
    **_each("isnan", "ops.is_nan(x)"),
    **_each("isinf", "ops.is_inf(x)"),
    **_each("isfinite", "ops.is_finite(x)"),
    **_each("absolute fabs", "ops.abs(x)"),
    **_each("negative", "ops.neg(x)"),
    **_each("arccos", "ops.acos(x)"),
    **_each("arcsin", "ops.asin(x)"),
    **_each("arctan", "ops.atan(x)"),
    **_each("arctan2", "ops.atan2(x, y)"),
    **_each("arccosh", "ops.acosh(x)"),
    **_each("arcsinh", "ops.asinh(x)"),
    **_each("arctanh", "ops.atanh(x)"),
    **_each("rint", "ops.round(x)"),
    **_each("exp2", "2.0**x"),
    **_each("log2", "ops.log(x) * 1.4426950408889634"),
    **_each("log10", "ops.log(x) * 0.4342944819032518"),
    **_each("subtract", "x - y"),
    **_each("multiply", "x * y"),
    **_each("divide true_divide", "x / y"),
    **_each("floor_divide", "x // y"),
    **_each("remainder", "x % y"),
    **_each("power float_power", "x**y"),
    **_each("eq", "ops.equal(x, y)"),
    **_each("ne", "ops.not_equal(x, y)"),
    **_each("lt", "ops.less(x, y)"),
    **_each("le", "ops.less_equal(x, y)"),
    **_each("gt", "ops.greater(x, y)"),
    **_each("ge", "ops.greater_equal(x, y)"),
    **_each("fmax", "ops.maximum(x, y)"),
    **_each("fmin", "ops.minimum(x, y)"),
    **_each("clip clamp hardtanh", "ops.minimum(ops.maximum(x, 0.0), 1.0)"),
    **_each("hardswish", "ops.hswish(x)"),
    **_each("hardsigmoid", "ops.hsigmoid(x)"),
    **_each("swish", "ops.silu(x)"),
    **_each("mm dot linear", "x @ w"),
    **_each("bmm", "ops.batch_matmul(x, w)"),
    **_each("cat concatenate", "ops.concat([x, y], axis=0)"),
    **_each("stack", "ops.concat([ops.expand_dims(x, 0), ops.expand_dims(y, 0)], axis=0)"),
    **_each("unsqueeze", "ops.expand_dims(x, 0)"),
    **_each("view ravel", "x.reshape(-1)"),
    **_each("permute swapaxes moveaxis movedim", "x.transpose(1, 0)"),
    **_each("expand", "ops.broadcast_to(x, (3, *x.shape))"),
    **_each("chunk", "ops.split(x, 2, axis=0)"),
    **_each("take index_select", "ops.gather(x, i, axis=0)"),
    **_each("tril triu", "ops.select(np.tri(*x.shape, dtype=bool), x, 0.0)"),
    **_each("full_like", "ops.zeros_like(x) + 2.0"),
    **_each("to type float half double int long", "x.astype('float16')"),
    **_each("detach", "ops.stop_gradient(x)"),
    **_each("contiguous clone copy", "x"),
    **_each("numel", "x.size"),
    **_each("dim", "x.ndim"),
    **_each("zeros ones full empty", "np.zeros((4, 8), np.float32)"),
    **_each("arange linspace", "np.arange(8)"),
    **_each("eye identity", "np.eye(8, dtype=np.float32)"),
    **_each("array asarray from_numpy", "np.asarray([1.0, 2.0], np.float32)"),
}

SAME: Mapping[str, str] = {
    **_ours(
        "abs exp expm1 log log1p sqrt rsqrt square reciprocal sign floor ceil round trunc sin cos tan sinh cosh tanh erf erfc "
        "sigmoid relu gelu silu softmax log_softmax softplus softsign elu tile reshape transpose squeeze flatten argmax argmin",
        "x",
    ),
    **_ours("maximum minimum pow mod atan2 greater less equal", "x, y"),
}
"""Names that are ours as well, as whoever calls numpy's or torch's is told."""


def instead(name: str, known: Iterable[str]) -> str:
    """What to write for a name that numpy or torch has, or the nearest of the known names; empty when nothing is near."""
    return f"; write {WRITTEN[name]}" if name in WRITTEN else nearest(name, known)
