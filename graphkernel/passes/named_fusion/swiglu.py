"""The pass inference_swiglu_fusion.

Before and after::

    a, b = SplitWithSize(x, split_sizes=(4, 4), axis=-1); y = Mul(b, SiLU(a))    ==>    y = Swiglu(x, axis=-1)
"""

from __future__ import annotations

from graphkernel.expanders.base import Declined
from graphkernel.ops.composite.activation import SILU
from graphkernel.ops.composite.split_sizes import SPLIT_WITH_SIZE
from graphkernel.ops.fused.fused_transformer import SWIGLU
from graphkernel.passes.named_fusion.apply_fusion import Fusion, Site, named_fusion, product
from graphkernel.passes.named_fusion.queries import both_orders, first_failure, made_by
from kernelgen.tensor.operators.elemwise import MUL
from kernelgen.tensor.operators.pieces import SPLIT


@named_fusion("inference_swiglu_fusion")
def inference_swiglu_fusion(site: Site) -> Fusion | Declined | None:
    """SiLU of the first half of a tensor times its second half as Swiglu. MindSpore takes any two pieces for halves."""
    if site.root.op is not MUL:
        return None
    for linear, gated in both_orders(site.root):
        silu = made_by(gated, SILU)
        split = made_by(silu.args[0], SPLIT_WITH_SIZE, SPLIT, index=None) if silu else None
        if silu is None or split is None or linear.node is not split:
            continue
        gate = silu.args[0]
        declined = first_failure(
            (
                (len(split.types) == 2, f"the split gives {len(split.types)} pieces, not two halves"),
                ((gate.index, linear.index) == (0, 1), "SiLU is on the second piece, Swiglu gates with the first"),
                (gate.type == linear.type, f"the pieces {gate.type} and {linear.type} are not halves"),
            )
        )
        axis = split.attrs.int("axis", 0)
        return declined or Fusion((split, silu, site.root), split.args, site.root.outs, product(SWIGLU, axis=axis))
    return None
