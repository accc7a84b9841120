"""Which operators kernels may hold: a list for each target, in levels that ``fusion_ops_level`` admits.

The lists up to the marked entries are MindSpore's. Its CPU list is short because AKG's CPU back end was: Select and Less are
in it, Greater is not. Ours adds what kernelgen compiles on the CPU, since a kernel with a hole (a gelu cut in two at its
Erf) costs two trips through memory: comparisons, logic, classification, rounding, trigonometry, Div, Erf, BroadcastTo,
pieces that are cut and joined, CumSum, OneHot, sums by ids and all reductions. On the GPU it adds the
same where MindSpore has gaps, and matrix products, which MindSpore admits on one generation of devices only: a product stays
with the library unless an epilogue joins it. On Ascend it adds the other reductions, without which a softmax falls in two,
and Erfc, without which a gelu does; and what MindSpore admits there from level 1 on or not at all, though its patterns ask
for it: products, reshapes, slices and ElemAny.
"""

from __future__ import annotations

from collections.abc import Mapping

Levels = tuple[frozenset[str], ...]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_EVERYWHERE: Levels = (
    _names("Abs Add Cast Equal Exp Log Maximum Minimum Mul Neg Pow RealDiv Reciprocal Round Rsqrt Sqrt Sub Tanh"),
    _names("ReduceSum Reshape Transpose"),
    frozenset(),
)
_CPU: Levels = (_names("LogicalNot Mod Select Less LessEqual"), _names("ReduceMax"), frozenset())
_CPU_OURS: Levels = (
    _names(
        "ACos Acosh Asin Asinh Assign Atan Atan2 Atanh BroadcastTo Ceil Concat Cos Cosh Div Erf Erfc Expm1 Floor FloorDiv "
        "FloorMod Greater GreaterEqual IsFinite IsInf IsNan Log1p LogicalAnd LogicalOr NotEqual PadAkg Sign Sin Sinh Split "
        "Square StridedSlice Tan TensorMove Trunc"
    ),
    _names("Argmax Argmin CumSum OneHot ReduceAll ReduceAny ReduceMin ReduceProd UnsortedSegmentSum"),
    frozenset(),
)
_GPU: Levels = (
    _names(
        "ACos Acosh Asin Asinh Assign Atan Atan2 Cos Div Erf Expm1 Floor FloorDiv FloorMod Greater GreaterEqual IsFinite "
        "IsInf IsNan Less LessEqual LogicalAnd LogicalNot LogicalOr Mod NotEqual Select Sign Sin StridedSlice Trunc"
    ),
    _names("CumSum OneHot ReduceMax ReduceMin"),
    _names("Argmax Argmin"),
)
_GPU_OURS: Levels = (
    _names("Atanh BroadcastTo Ceil Cosh Erfc Log1p Sinh Square Tan TensorMove"),
    _names("BatchMatMul MatMul ReduceAll ReduceAny ReduceProd"),
    frozenset(),
)
_ASCEND: Levels = (
    _names(
        "Abs Add Assign BroadcastTo Cast Ceil Div Equal Exp Floor Greater GreaterEqual IsFinite Less LessEqual Log "
        "LogicalAnd LogicalNot LogicalOr Maximum Minimum Mul Neg NotEqual Pow RealDiv Reciprocal ReduceSum Rsqrt Select "
        "Sqrt Sub Transpose Trunc"
    ),
    _names("BatchMatMul GroupedMatmul MatMul Reshape TransData"),
    _names("TensorMove"),
)
_ASCEND_OURS: Levels = (
    _names("BatchMatMul ElemAny Erfc MatMul ReduceMax ReduceMin Reshape Slice StridedSlice"),
    frozenset(),
    frozenset(),
)


def _union(*lists: Levels) -> Levels:
    return tuple(frozenset().union(*level) for level in zip(*lists, strict=True))


CLUSTER_OPS: Mapping[str, Levels] = {
    "cpu": _union(_EVERYWHERE, _CPU, _CPU_OURS),
    "gpu": _union(_EVERYWHERE, _GPU, _GPU_OURS),
    "ascend": _union(_ASCEND, _ASCEND_OURS),
}


def cluster_ops(target: str, level: int) -> frozenset[str]:
    """The operators of a target up to and including a level (0 to 2)."""
    return frozenset().union(*CLUSTER_OPS[target][: level + 1])
