"""Matrix products fused with what follows them: a bias, an activation, a split, a sum over devices.

Source: the primitives MatmulSplitOut2 and its relatives, FusedMatmulElemBinary, FusedMatmulElemUnary and MatMulAllReduce of
MindSpore. The weight of a split product is [N, K], as a transposed operand; ``n_lens`` cuts the N columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphkernel.errors import TypeRuleError
from graphkernel.ops.composite.activation import GELU_TANH, RELU, SILU
from graphkernel.ops.fused.fused import Composition, composed
from graphkernel.ops.fused.fused_quant import QUANT_BATCH_MATMUL
from graphkernel.ops.library.communication import ALL_REDUCE
from graphkernel.ops.tensor.apply import apply, apply_all
from kernelgen.tensor.operator import Traits
from kernelgen.tensor.operators.attributes import data_type, ints, text, whole
from kernelgen.tensor.operators.elemwise import ADD
from kernelgen.tensor.operators.matmul import ATTRIBUTES, BATCH_MATMUL, MATMUL
from kernelgen.tensor.operators.pieces import SPLIT
from kernelgen.tensor.operators.shape import RESHAPE
from kernelgen.tensor.types import Attrs, product

Product = Callable[..., Any]
ELEMWISE = {"relu": RELU, "gelu": GELU_TANH}


def _matmul(rows: Any, weight: Any, *, attrs: Attrs) -> Any:
    return apply(MATMUL, rows, weight, transpose_a=False, transpose_b=True)


def _matmul_bias(rows: Any, weight: Any, bias: Any, *, attrs: Attrs) -> Any:
    return apply(ADD, _matmul(rows, weight, attrs=attrs), bias)


def _quant_matmul(rows: Any, weight: Any, *operands: Any, attrs: Attrs) -> Any:
    own = {name: attrs[name] for name in ("optional", "dtype") if name in attrs}
    return apply(QUANT_BATCH_MATMUL, rows, weight, *operands, transpose_x2=True, **own)


def _split(multiply: Product, pieces: int, formula: str, *, silu: bool) -> Composition:
    """The composition of ``multiply`` over the rows of x, whose result is cut into pieces along the last axis."""

    def composition(x: Any, weight: Any, *more: Any, attrs: Attrs) -> tuple[Any, ...]:
        sizes = attrs.ints("n_lens")
        if len(sizes) != pieces:
            raise TypeRuleError(f"n_lens must have {pieces} entries, got {sizes}")
        leading = tuple(x.shape[:-1])
        rows = apply(RESHAPE, x, shape=(product(leading), x.shape[-1]))
        result = multiply(rows, weight, *more, attrs=attrs)
        found = list(apply_all(SPLIT, result, axis=1, size_splits=sizes))
        if silu:
            at = attrs.int("silu_index", 0)
            if not 0 <= at < pieces:
                raise TypeRuleError(f"silu_index {at} is not one of the {pieces} pieces")
            found[at] = apply(SILU, found[at])
        return tuple(apply(RESHAPE, piece, shape=(*leading, size)) for piece, size in zip(found, sizes, strict=True))

    composition.__doc__ = f"the pieces n_lens of the last axis of {formula}{', one through SiLU' if silu else ''}"
    return composition


PLAIN, BIASED = "x @ weight.T", "x @ weight.T + bias"
QUANTIZED = "QuantBatchMatmul(x, weight.T, scale[, bias][, pertoken_scale])"

matmul_split_2 = _split(_matmul, 2, PLAIN, silu=False)
matmul_split_3 = _split(_matmul, 3, PLAIN, silu=False)
matmul_split_silu_2 = _split(_matmul, 2, PLAIN, silu=True)
matmul_bias_split_2 = _split(_matmul_bias, 2, BIASED, silu=False)
matmul_bias_split_3 = _split(_matmul_bias, 3, BIASED, silu=False)
matmul_bias_split_silu_2 = _split(_matmul_bias, 2, BIASED, silu=True)
quant_matmul_split_2 = _split(_quant_matmul, 2, QUANTIZED, silu=False)
quant_matmul_split_3 = _split(_quant_matmul, 3, QUANTIZED, silu=False)
quant_matmul_split_silu_2 = _split(_quant_matmul, 2, QUANTIZED, silu=True)

_LENGTHS, _QUANT = (ints("n_lens"),), (data_type("dtype", None), "optional")
_SILU = (*_LENGTHS, whole("silu_index", None))

MATMUL_SPLIT_OUT2 = composed("MatmulSplitOut2", matmul_split_2, 2, attributes=_LENGTHS)
MATMUL_SPLIT_OUT3 = composed("MatmulSplitOut3", matmul_split_3, 2, attributes=_LENGTHS)
MATMUL_SPLIT_SILU_OUT2 = composed("MatmulSplitSiluOut2", matmul_split_silu_2, 2, attributes=_SILU)
MATMUL_BIAS_SPLIT_OUT2 = composed("MatmulBiasSplitOut2", matmul_bias_split_2, 3, attributes=_LENGTHS)
MATMUL_BIAS_SPLIT_OUT3 = composed("MatmulBiasSplitOut3", matmul_bias_split_3, 3, attributes=_LENGTHS)
MATMUL_BIAS_SPLIT_SILU_OUT2 = composed("MatmulBiasSplitSiluOut2", matmul_bias_split_silu_2, 3, attributes=_SILU)
QUANT_SPLIT_OUT2 = composed("QuantbatchmatmulSplitOut2", quant_matmul_split_2, None, attributes=(*_LENGTHS, *_QUANT))
QUANT_SPLIT_OUT3 = composed("QuantbatchmatmulSplitOut3", quant_matmul_split_3, None, attributes=(*_LENGTHS, *_QUANT))
QUANT_SPLIT_SILU_OUT2 = composed(
    "QuantbatchmatmulSplitSiluOut2", quant_matmul_split_silu_2, None, attributes=(*_SILU, *_QUANT)
)


def _transposes(attrs: Attrs) -> dict[str, bool]:
    return {name: attrs.bool(name, False) for name in MATMUL.attribute_names}


def matmul_elem_binary(x: Any, weight: Any, bias: Any, *, attrs: Attrs) -> tuple[Any, ...]:
    """x @ weight + bias (elemwise="bias_add")"""
    if attrs.str("elemwise", "bias_add") != "bias_add":
        raise TypeRuleError(f"elemwise must be 'bias_add', got {attrs.str('elemwise')!r}")
    return (apply(ADD, apply(MATMUL, x, weight, **_transposes(attrs)), bias),)


def matmul_elem_unary(x: Any, weight: Any, *, attrs: Attrs) -> tuple[Any, ...]:
    """ReLU or GeLU (the tanh form) of x @ weight, as elemwise says: "relu" or "gelu" """
    if attrs.str("elemwise") not in ELEMWISE:
        raise TypeRuleError(f"elemwise must be one of {', '.join(ELEMWISE)}, got {attrs.str('elemwise')!r}")
    return (apply(ELEMWISE[attrs.str("elemwise")], apply(MATMUL, x, weight, **_transposes(attrs))),)


def matmul_all_reduce(x: Any, weight: Any, *token: Any, attrs: Attrs) -> tuple[Any, ...]:
    """AllReduce(x @ weight) over the devices of the group"""
    multiply = MATMUL if len(x.shape) == 2 else BATCH_MATMUL
    partial_sum = apply(multiply, x, weight, **_transposes(attrs))
    told = {name: attrs[name] for name in ALL_REDUCE.attribute_names if name in attrs}
    return apply_all(ALL_REDUCE, partial_sum, *token, **told)


FUSED_MATMUL_ELEM_BINARY = composed(
    "FusedMatmulElemBinary", matmul_elem_binary, 3, attributes=(text("elemwise", None), *ATTRIBUTES)
)
FUSED_MATMUL_ELEM_UNARY = composed(
    "FusedMatmulElemUnary", matmul_elem_unary, 2, attributes=(text("elemwise"), *ATTRIBUTES)
)
MATMUL_ALL_REDUCE = composed(
    "MatMulAllReduce",
    matmul_all_reduce,
    None,
    attributes=(*ATTRIBUTES, *ALL_REDUCE.attributes),
    traits=Traits(ordered=ALL_REDUCE.traits.ordered),
)
