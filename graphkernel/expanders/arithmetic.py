"""Short formulas: fused multiply and add, clamping, divisions that round, counts and status."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.base import expander
from graphkernel.ops import Tensor
from graphkernel.ops.composite import arithmetic, sums
from graphkernel.ops.composite.sums import summed_dtype
from kernelgen.tensor.operators import status
from kernelgen.tensor.operators.families import scalar_of
from kernelgen.tensor.types import Attrs


@expander(arithmetic.IDENTITY_MATH, wide=False)
def identity_math(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x"""
    return x


@expander(arithmetic.STOP_GRADIENT, wide=False)
def stop_gradient(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x"""
    return x


def _xor_by_logic(x: Tensor, y: Tensor, *, attrs: Attrs) -> Tensor:
    """(x and not y) or (y and not x)"""
    return (x & ~y) | (y & ~x)


@expander(arithmetic.LOGICAL_XOR, wide=False, special={"ascend": _xor_by_logic})
def logical_xor(x: Tensor, y: Tensor, *, attrs: Attrs) -> Tensor:
    """x != y; on Ascend, whose kernels compare numbers only, (x and not y) or (y and not x)"""
    return ops.not_equal(x, y)


@expander(arithmetic.ADD_EXT)
def add_ext(x: Tensor, y: Tensor, *, attrs: Attrs) -> Tensor:
    """x + alpha * y"""
    return x + scalar_of(attrs, "alpha", x.dtype, 1) * y


@expander(arithmetic.SUB_EXT)
def sub_ext(x: Tensor, y: Tensor, *, attrs: Attrs) -> Tensor:
    """x - alpha * y"""
    return x - scalar_of(attrs, "alpha", x.dtype, 1) * y


@expander(arithmetic.MULS)
def muls(x: Tensor, *, attrs: Attrs) -> Tensor:
    """x * other"""
    return x * scalar_of(attrs, "other", x.dtype)


@expander(arithmetic.FUSED_MUL_ADD)
def fused_mul_add(x: Tensor, y: Tensor, z: Tensor, *, attrs: Attrs) -> Tensor:
    """x * y + z"""
    return x * y + z


@expander(arithmetic.ADDCMUL)
def addcmul(x: Tensor, first: Tensor, second: Tensor, value: Tensor, *, attrs: Attrs) -> Tensor:
    """x + value * (first * second)"""
    return x + value * (first * second)


@expander(arithmetic.CLAMP_SCALAR, wide=False)
def clamp_scalar(x: Tensor, *, attrs: Attrs) -> Tensor:
    """minimum(maximum(x, min), max), without a bound that is absent"""
    low = ops.maximum(x, scalar_of(attrs, "min", x.dtype)) if "min" in attrs else x
    return ops.minimum(low, scalar_of(attrs, "max", x.dtype)) if "max" in attrs else low


@expander(arithmetic.DIV_MOD)
def div_mod(x: Tensor, y: Tensor, *, attrs: Attrs) -> Tensor:
    """x / y, floor(x / y) or trunc(x / y), as rounding_mode says; of integers FloorDiv or Div"""
    mode = attrs.str("rounding_mode", "none")
    if x.dtype.is_integer:
        return ops.floor_div(x, y) if mode == "floor" else ops.div(x, y)
    quotient = x / y
    if mode == "none":
        return quotient
    return ops.floor(quotient) if mode == "floor" else ops.trunc(quotient)


@expander(sums.SQUARE_SUM_ALL)
def square_sum_all(x: Tensor, y: Tensor, *, attrs: Attrs) -> tuple[Tensor, Tensor]:
    """(sum(x * x), sum(y * y))"""
    return ops.reduce_sum(x * x), ops.reduce_sum(y * y)


@expander(sums.EQUAL_COUNT, wide=False)
def equal_count(x: Tensor, y: Tensor, *, attrs: Attrs) -> Tensor:
    """reshape(cast(sum(cast(x == y, int32))), [1]); MindSpore counts in float32, which stops at 2^24"""
    count = ops.reduce_sum(ops.cast(ops.equal(x, y), "int32"))
    return ops.reshape(ops.cast(count, x.dtype), (1,))


@expander(sums.SUM_EXT)
def sum_ext(x: Tensor, *, attrs: Attrs) -> Tensor:
    """sum(cast(x, dtype))"""
    wanted = summed_dtype(x.dtype, attrs)
    converted = x if x.dtype == wanted else ops.cast(x, wanted)
    return ops.reduce_sum(converted, attrs.ints("axis", ()), attrs.bool("keep_dims", False))


@expander(status.FLOAT_STATUS, wide=False)
def float_status(x: Tensor, *, attrs: Attrs) -> Tensor:
    """reshape(cast(any(not is_finite(x))), [1])"""
    return ops.reshape(ops.cast(ops.reduce_any(~ops.is_finite(x)), "float32"), (1,))
