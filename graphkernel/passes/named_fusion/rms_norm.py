"""The passes add_rms_norm_fusion and add_cast_rms_norm_cast_fusion.

Before and after::

    s = Add(x1, x2); y, rstd = RmsNorm(s, gamma)                 ==>  y, rstd, s = AddRmsNorm(x1, x2, gamma)
    s = Add(x1, x2); c = Cast(s); n = RmsNorm(c, gamma); y = Cast(n)  ==>  y, _, s = AddRmsNorm(x1, x2, gamma)
"""

from __future__ import annotations

from graphkernel.expanders.base import Declined
from graphkernel.ops.composite.normalize import RMS_NORM
from graphkernel.ops.fused.fused_norm import ADD_RMS_NORM
from graphkernel.passes.named_fusion.apply_fusion import Fusion, Site, named_fusion, product
from graphkernel.passes.named_fusion.queries import first_failure, made_by
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.elemwise import ADD


@named_fusion("add_rms_norm_fusion")
def add_rms_norm_fusion(site: Site) -> Fusion | Declined | None:
    """RmsNorm(Add(x1, x2)) as AddRmsNorm, which also gives the sum."""
    norm = site.root
    add = made_by(norm.args[0], ADD) if norm.op is RMS_NORM else None
    if add is None:
        return None
    if add.args[0].type != add.args[1].type:
        return Declined(f"the addends are {add.args[0].type} and {add.args[1].type}, which is a broadcast")
    operands = (*add.args, norm.args[1])
    return Fusion((add, norm), operands, (*norm.outs, add.out), product(ADD_RMS_NORM, **norm.attrs))


@named_fusion("add_cast_rms_norm_cast_fusion")
def add_cast_rms_norm_cast_fusion(site: Site) -> Fusion | Declined | None:
    """Cast(RmsNorm(Cast(Add(x1, x2)), gamma)) as AddRmsNorm in the outer type, which computes in gamma's.

    Nothing else may use a result of the RmsNorm or of the inner Cast.
    """
    outer = site.root
    norm = made_by(outer.args[0], RMS_NORM) if outer.op is CAST else None
    inner = made_by(norm.args[0], CAST) if norm is not None else None
    add = made_by(inner.args[0], ADD) if inner is not None else None
    if norm is None or inner is None or add is None:
        return None
    declined = first_failure(
        (
            (add.args[0].type == add.args[1].type, "the addends differ in type, which is a broadcast"),
            (outer.out.type == add.out.type, f"the last Cast gives {outer.out.type}, the Add {add.out.type}"),
            (
                inner.out.type.dtype.is_float and inner.out.type.dtype.bits > add.out.type.dtype.bits,
                f"the norm is computed in {inner.out.type.dtype}, which is no wider than {add.out.type.dtype}",
            ),
        )
    )
    if declined:
        return declined
    operands = (*add.args, norm.args[1])
    build = product(ADD_RMS_NORM, **norm.attrs)
    return Fusion((add, inner, norm, outer), operands, (outer.out, None, add.out), build)
