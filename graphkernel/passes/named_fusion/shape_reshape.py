"""The pass shape_reshape: a reshape by computed extents depends on shapes only, not on a tensor that the host computes.

Before and after::

    s = Shape(y); r = DynamicReshape(x, s, shape=[N, 4])    ==>    r = ReshapeExt(x, y, shape=[N, 4])

The extents are checked as polynomials of symbols; they stand in the attribute ``shape``, so that ReshapeExt needs no scalar
arithmetic beside it. A Reshape has no operand for extents here and is left as it is.
"""

from __future__ import annotations

from graphkernel.expanders.base import Declined
from graphkernel.ops.fused.fused_shape import DYNAMIC_RESHAPE, RESHAPE_EXT
from graphkernel.passes.named_fusion.apply_fusion import Fusion, Site, named_fusion, product
from graphkernel.passes.shape.shape_values import asked_shapes, shape_value
from kernelgen.tensor.operators.type_rules import shape_text


@named_fusion("shape_reshape")
def shape_reshape(site: Site) -> Fusion | Declined | None:
    """DynamicReshape by arithmetic on Shape(y) as ReshapeExt(x, y), which reads nothing of y but its shape."""
    reshape = site.root
    if reshape.op is not DYNAMIC_RESHAPE:
        return None
    x, extents = reshape.args
    computed, shape = shape_value(extents), reshape.attrs.dims("shape")
    if computed is None:
        return Declined("the extents are not computed from shapes alone")
    if tuple(computed) != shape:
        return Declined(f"the extents come to {shape_text(computed)}, the reshape says {shape_text(shape)}")
    like = asked_shapes(extents)
    build = product(RESHAPE_EXT, shape=shape, only_depend_shape=tuple(range(1, len(like) + 1)))
    return Fusion((reshape,), (x, *like), reshape.outs, build)
