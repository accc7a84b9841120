"""Recipes of reductions, scans, orders and normalisations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.fuzz.models.draft import SETS, Draft, Known, Proposal, Rejected, is_static
from tests.fuzz.models.elementwise import Make, Range

REDUCTIONS: Mapping[str, Range] = {
    "ReduceSum": (None, None), "ReduceMean": (None, None), "ReduceMax": (None, None), "ReduceMin": (None, None),
    "ReduceProd": (-2, 2), "ReduceSumSquare": (-50, 50), "ReduceL1": (None, None), "ReduceL2": (-50, 50),
    "ReduceLogSum": (0.1, 50), "ReduceLogSumExp": (-10, 10),
}  # fmt: skip


def reduction(limits: Range) -> Make:
    """Over some axes or all; axes are an attribute or an operand, by opset; may be empty or absent."""

    def make(d: Draft) -> Proposal:
        x = d.operand(low=limits[0], high=limits[1], rank=(0, 4))
        chosen = d.random.sample(range(x.rank), d.random.randint(0, x.rank))
        axes = [axis - x.rank if d.chance(0.3) else axis for axis in chosen] or None
        given: dict[str, Any] = {"keepdims": 0} if d.chance(0.5) else {}
        if d.takes("axes"):
            return Proposal([x], {**given, "axes": axes})
        if d.takes("noop_with_empty_axes") and d.chance(0.1):
            given["noop_with_empty_axes"] = 1
        empty = d.parameters([]) if d.chance(0.1) else None
        return Proposal([x, empty if axes is None else d.parameters(axes)], given)

    return make


def arg_extreme(d: Draft) -> Proposal:
    """The first or last of equal ones."""
    x = d.operand(rank=(1, 4))
    given: dict[str, Any] = {"axis": d.axis(x)} if d.chance(0.8) else {}
    given |= {"keepdims": 0} if d.chance(0.5) else {}
    return Proposal([x], given | ({"select_last_index": 1} if d.takes("select_last_index") and d.chance(0.2) else {}))


def scan(d: Draft) -> Proposal:
    """CumSum and CumProd, forwards or backwards."""
    x = d.operand(rank=(1, 4), low=-2, high=2)
    given = {name: 1 for name in ("exclusive", "reverse") if d.chance(0.3)}
    kind = d.random.choice(("int32", "int64"))
    return Proposal([x, d.fresh(kind, (), *((float(d.axis(x)),) * 2), constant=True)], given)


def top_k(d: Draft) -> Proposal:
    """The number is an attribute before opset 10."""
    x = d.operand(rank=(1, 3))
    axis = d.axis(x, lambda extent: min(extent) > 0)
    k = d.random.randint(1, min(x.dims[axis]))
    given: dict[str, Any] = {"axis": axis}
    if d.takes("k"):
        return Proposal([x], {**given, "k": k}, 2)
    given |= {"largest": 0} if d.takes("largest") and d.chance(0.3) else {}
    return Proposal([x, d.parameters([k])], given, 2)


def along_axis(d: Draft) -> Proposal:
    """Softmax and its like."""
    x = d.operand(rank=(1, 4), low=-30, high=30)
    return Proposal([x], {"axis": d.axis(x)} if d.chance(0.7) else {})


def lp_normalization(d: Draft) -> Proposal:
    """By the sum of absolutes or of squares."""
    x = d.operand(rank=(1, 3), low=0.1)
    return Proposal([x], {"axis": d.axis(x), "p": d.random.choice((1, 2))})


def _axes_from(d: Draft, x: Known) -> tuple[int, Any]:
    axis = d.random.randrange(x.rank)
    if not all(map(is_static, x.dims[axis:])):
        raise Rejected("a scale has a static shape here")
    return axis, x.dims[axis:]


def layer_normalization(d: Draft) -> Proposal:
    """With or without bias and statistics."""
    x = d.operand(rank=(1, 4))
    axis, dims = _axes_from(d, x)
    bias = d.fresh(x.dtype, dims) if d.chance(0.6) else None
    given = {"axis": axis - x.rank if d.chance(0.5) else axis, "epsilon": d.random.choice((1e-5, 1e-3))}
    return Proposal([x, d.fresh(x.dtype, dims), bias], given, 3 if d.chance(0.2) else 1)


def rms_normalization(d: Draft) -> Proposal:
    """Over the last axes."""
    x = d.operand(rank=(1, 4))
    axis, dims = _axes_from(d, x)
    return Proposal([x, d.fresh(x.dtype, dims)], {"axis": axis})


def batch_normalization(d: Draft) -> Proposal:
    """In inference."""
    x = d.operand(rank=(2, 4), where=lambda x: x.rank > 1 and is_static(x.dims[1]))
    dims = (x.dims[1],)
    scale, bias, mean = (d.fresh(x.dtype, dims) for _ in range(3))
    return Proposal([x, scale, bias, mean, d.fresh(x.dtype, dims, 0.2, 3)], {"epsilon": 1e-3} if d.chance(0.5) else {})


def instance_normalization(d: Draft) -> Proposal:
    """Over the extents of an image."""
    x = d.operand(rank=(3, 4), where=lambda x: x.rank > 2 and is_static(x.dims[1]))
    dims = (x.dims[1],)
    return Proposal([x, d.fresh(x.dtype, dims), d.fresh(x.dtype, dims)])


def group_normalization(d: Draft) -> Proposal:
    """Channels in groups."""
    x = d.operand(rank=(3, 4), where=lambda x: x.rank > 2 and is_static(x.dims[1]))
    channels = x.dims[1][0]
    groups = d.random.choice([g for g in range(1, channels + 1) if channels % g == 0])
    dims = (x.dims[1] if d.opset >= 21 else (groups,) * SETS,)
    return Proposal([x, d.fresh(x.dtype, dims), d.fresh(x.dtype, dims)], {"num_groups": groups})


def mean_variance(d: Draft) -> Proposal:
    """Over given axes, or those of an image."""
    x = d.operand(rank=(4, 4) if d.chance(0.5) else (2, 4))
    return Proposal([x], {} if x.rank == 4 and d.chance(0.5) else {"axes": [0, x.rank - 1]})


def local_response(d: Draft) -> Proposal:
    """Across channels."""
    return Proposal([d.operand(rank=(3, 4), low=-10, high=10, only=("float32",))], {"size": d.random.choice((1, 3, 5))})


RECIPES: Mapping[str, Make] = {
    **{name: reduction(limits) for name, limits in REDUCTIONS.items()},
    **dict.fromkeys(("ArgMax", "ArgMin"), arg_extreme), **dict.fromkeys(("CumSum", "CumProd"), scan), "TopK": top_k,
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), along_axis), "LpNormalization": lp_normalization,
    "LayerNormalization": layer_normalization, "RMSNormalization": rms_normalization,
    "BatchNormalization": batch_normalization, "InstanceNormalization": instance_normalization,
    "GroupNormalization": group_normalization, "MeanVarianceNormalization": mean_variance, "LRN": local_response,
}  # fmt: skip
