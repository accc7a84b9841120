"""The passes add_layer_norm_fusion, add_layer_norm_v3_fusion and add_layer_norm_ext_fusion.

Before and after::

    s = Add(x1, x2)                                  y, mean, rstd, s = AddLayerNorm(x1, x2, gamma, beta)
    y, mean, var = LayerNorm(s, gamma, beta)   ==>   z = Neg(s)
    z = Neg(s)
"""

from __future__ import annotations

from collections.abc import Mapping

from graphkernel.expanders.base import Declined
from graphkernel.ops.composite.normalize import LAYER_NORM
from graphkernel.ops.fused.fused_norm import ADD_LAYER_NORM, ADD_LAYER_NORM_V2, LAYER_NORM_EXT, LAYER_NORM_V3
from graphkernel.passes.named_fusion.apply_fusion import Fusion, Site, named_fusion, product
from graphkernel.passes.named_fusion.queries import made_by
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.elemwise import ADD


@named_fusion("add_layer_norm_fusion")
def add_layer_norm_fusion(site: Site) -> Fusion | Declined | None:
    """LayerNorm(Add(x1, x2)) as AddLayerNorm, which also gives the sum. A variance that is used has no counterpart."""
    add = _added(site, LAYER_NORM)
    if not isinstance(add, Node):
        return add
    norm = site.root
    y, mean, _ = norm.outs
    operands = (*add.args, *norm.args[1:])
    return Fusion((add, norm), operands, (y, mean, None, add.out), product(ADD_LAYER_NORM, **norm.attrs))


@named_fusion("add_layer_norm_v3_fusion")
def add_layer_norm_v3_fusion(site: Site) -> Fusion | Declined | None:
    """LayerNormV3(Add(x1, x2)) as AddLayerNormV2, which gives the sum where somebody needs it."""
    add = _added(site, LAYER_NORM_V3)
    return _second_version(site, add, site.root.attrs) if isinstance(add, Node) else add


@named_fusion("add_layer_norm_ext_fusion")
def add_layer_norm_ext_fusion(site: Site) -> Fusion | Declined | None:
    """LayerNormExt(Add(x1, x2)) as AddLayerNormV2 over the axes of normalized_shape."""
    add = _added(site, LAYER_NORM_EXT)
    if not isinstance(add, Node):
        return add
    norm = site.root
    axis = add.out.type.rank - len(norm.attrs.dims("normalized_shape"))
    epsilon = norm.attrs.float("epsilon", 1e-5)
    return _second_version(site, add, {"begin_norm_axis": axis, "begin_params_axis": axis, "epsilon": epsilon})


def _added(site: Site, norm: Operator) -> Node | Declined | None:
    """The addition in front of a norm."""
    add = made_by(site.root.args[0], ADD) if site.root.op is norm else None
    if add is not None and add.args[0].type != add.args[1].type:
        return Declined(f"the addends are {add.args[0].type} and {add.args[1].type}, which is a broadcast")
    return add


def _second_version(site: Site, add: Node, attrs: Mapping[str, object]) -> Fusion:
    norm = site.root
    needed = site.is_used(add.out, besides=(norm,))
    gives = (*norm.outs, add.out) if needed else norm.outs
    build = product(ADD_LAYER_NORM_V2, **attrs, additional_output=needed)
    return Fusion((add, norm), (*add.args, *norm.args[1:]), gives, build)
