"""Which operators each target expands unless flags say otherwise.

ANCESTOR is MindSpore's list. OURS adds what MindSpore leaves to library kernels on the target and we fuse into one
kernel with its neighbours: softmax and layer norm are single kernels here, so expanding them pays.
"""

from __future__ import annotations

from collections.abc import Mapping


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ANCESTOR: Mapping[str, frozenset[str]] = {
    "cpu": _names(
        "Adam AddN AssignAdd BiasAdd BiasAddGrad ExpandDims GeLU GeLUGrad Gelu MaximumGrad MinimumGrad OnesLike ReLU "
        "Softplus SoftplusGrad SqrtGrad Square TanhGrad Tile"
    ),
    "gpu": _names(
        "AdamWeightDecay AddN ArgMaxWithValue ArgMinWithValue AssignAdd BiasAdd BiasAddGrad Dropout DropoutGrad EqualCount "
        "Erfc ExpandDims GeLU GeLUGrad Gelu IdentityMath LayerNorm LayerNormGrad LogSoftmax LogSoftmaxGrad MaximumGrad "
        "MinimumGrad OnesLike ReLU ReduceMean ReluGrad Sigmoid SigmoidCrossEntropyWithLogits "
        "SigmoidCrossEntropyWithLogitsGrad SigmoidGrad Slice Softmax SoftmaxCrossEntropyWithLogits SqrtGrad Square "
        "SquareSumAll SquaredDifference Squeeze StandardNormal Tile"
    ),
    "ascend": _names(
        "AcoshExt Adam AdamApplyOneWithDecay AdamApplyOneWithDecayAssign AddN Addcmul AsinhExt AssignAdd BCEWithLogitsLoss "
        "BiasAdd BiasAddGrad BinaryCrossEntropy ClampScalar ClipByNormNoDivSum Cosh DivMod EluExt Erf FastGeLU FastGeLUGrad "
        "FastGelu FastGeluGrad FillV2 FusedMulAdd GeLU GeLUGrad Gelu HShrink HSigmoid HSwish LambApplyOptimizerAssign "
        "LambApplyWeightAssign LeakyReLUExt MeanExt OnesLike ReLU ReduceMean ReluGrad RepeatInterleaveInt RsqrtGrad SiLU "
        "SiLUGrad Sigmoid SigmoidCrossEntropyWithLogits SigmoidCrossEntropyWithLogitsGrad SigmoidGrad Sinh SoftplusExt "
        "SoftplusGradExt SqrtGrad Square SquaredDifference Tanh TanhGrad Tile ZerosLike"
    ),
}

OURS: frozenset[str] = _names(
    "BatchNorm Elu Erfc ExpandDims FastGeLU Flatten HSigmoid HSwish LayerNorm LeakyReLU LogSoftmax ReLU6 ReduceMean ReluGrad "
    "RmsNorm RsqrtGrad SiLU SiLUGrad Sigmoid SigmoidGrad Softmax Softplus SoftplusGrad Softsign SquaredDifference Squeeze "
    "TanhGrad ZerosLike"
)


def expand_ops(target: str) -> frozenset[str]:
    """The operators that a target expands by default."""
    return ANCESTOR[target] | OURS
