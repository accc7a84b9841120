"""The passes rms_norm_quant_fusion and add_rms_norm_quant_fusion.

Before and after::

    s = Add(x1, x2)
    y = RmsNorm(s, gamma)             ==>    q, y, s = AddRmsNormQuantV2(x1, x2, gamma, scale, offset)
    q = QuantV2(y, scale, offset)
"""

from __future__ import annotations

from graphkernel.expanders.base import Declined
from graphkernel.ops import Tensor
from graphkernel.ops.composite.normalize import RMS_NORM
from graphkernel.ops.fused import fused_quant
from graphkernel.ops.fused.fused_norm import as_dtype
from graphkernel.passes.named_fusion.apply_fusion import Fusion, Product, Site, named_fusion, product
from graphkernel.passes.named_fusion.queries import first_failure, is_half, made_by
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.elemwise import ADD

MOST_NORM_USERS = 3
LONGEST_SHARED_ROW = 8192


@named_fusion("rms_norm_quant_fusion")
def rms_norm_quant_fusion(site: Site) -> Fusion | Declined | None:
    """QuantV2(RmsNorm(x, gamma), scale, offset) as RmsNormQuant: float16 with an int8 offset, nothing else used.

    MindSpore's operator has a place for beta, which it fills with gamma; ours leaves it out.
    """
    quant = site.root
    norm = made_by(quant.args[0], RMS_NORM) if quant.op is fused_quant.QUANT_V2 else None
    if norm is None:
        return None
    _, scale, offset = quant.args
    declined = _quantized_plainly(quant) or first_failure(
        (
            (norm.args[0].type.dtype.name == "float16", f"x is {norm.args[0].type.dtype}, expected float16"),
            (offset.type.dtype.name == "int8", f"offset is {offset.type.dtype}, expected int8"),
        )
    )
    return declined or Fusion(
        (norm, quant), (*norm.args, scale, offset), quant.outs, product(fused_quant.RMS_NORM_QUANT, **norm.attrs)
    )


@named_fusion("add_rms_norm_quant_fusion")
def add_rms_norm_quant_fusion(site: Site) -> Fusion | Declined | None:
    """QuantV2(RmsNorm(Add(x1, x2), gamma), scale, offset) as AddRmsNormQuantV2; DynamicQuant as AddRmsNormDynamicQuant."""
    quant = site.root
    norm = made_by(quant.args[0], RMS_NORM) if quant.op in (fused_quant.QUANT_V2, fused_quant.DYNAMIC_QUANT) else None
    add = made_by(norm.args[0], ADD) if norm else None
    if norm is None or add is None:
        return None
    declined = _fits(site, norm, add)
    if quant.op is fused_quant.QUANT_V2:
        declined = declined or _quantized_plainly(quant) or _static_operands(quant)
    if declined:
        return declined
    op = (
        fused_quant.ADD_RMS_NORM_QUANT_V2
        if quant.op is fused_quant.QUANT_V2
        else fused_quant.ADD_RMS_NORM_DYNAMIC_QUANT
    )
    operands = (*add.args, norm.args[1], *quant.args[1:])
    gives = (*quant.outs, norm.outs[0], add.out)
    return Fusion((add, norm, quant), operands, gives, _with_whole_offset(product(op, **norm.attrs)))


def _with_whole_offset(build: Product) -> Product:
    """The product takes an offset of int32."""

    def widened(*operands: Tensor) -> tuple[Tensor, ...]:
        *others, last = operands
        return build(*others, as_dtype(last, fused_quant.INT32) if last.dtype.is_integer else last)

    return widened


def _fits(site: Site, norm: Node, add: Node) -> Declined | None:
    """The conditions on the norm and the addition in front of it."""
    y = norm.outs[0]
    row = y.type.shape[-1]
    shared = site.is_used(y, besides=(site.root,))
    return first_failure(
        (
            (add.args[0].type == add.args[1].type, "the addends differ in type, which is a broadcast"),
            (is_half(add.out), f"the addends are {add.out.type.dtype}, expected float16 or bfloat16"),
            (len(site.users(y)) <= MOST_NORM_USERS, f"the norm has more than {MOST_NORM_USERS} users"),
            (
                not shared or (isinstance(row, int) and row <= LONGEST_SHARED_ROW),
                f"the norm is needed elsewhere, and its rows of {row} are not static or longer than {LONGEST_SHARED_ROW}",
            ),
        )
    )


def _static_operands(quant: Node) -> Declined | None:
    _, scale, offset = quant.args
    return first_failure(
        (
            (scale.type.dtype.name == "float32", f"scale is {scale.type.dtype}, expected float32"),
            (_is_whole(offset), f"offset is {offset.type.dtype}, expected int32"),
        )
    )


def _is_whole(offset: Value) -> bool:
    """True for int32, and for int8 that is known: the cast costs nothing at run time."""
    name = offset.type.dtype.name
    return name == "int32" or (name == "int8" and offset.is_known)


def _quantized_plainly(quant: Node) -> Declined | None:
    """The products round to nearest with the scale as it is."""
    return first_failure(
        (
            (not quant.attrs.bool("sqrt_mode", False), "the scale is squared (sqrt_mode)"),
            (quant.attrs.str("rounding_mode", "ROUND") == "ROUND", "the rounding is not to nearest"),
        )
    )
