"""Which operators each target expands unless flags say otherwise.

ANCESTOR is MindSpore's list. OURS adds what MindSpore leaves to library kernels on the target and we fuse into one
kernel with its neighbours: softmax, layer norm, their gradients, losses and optimizer steps are single kernels here, so
expanding them pays.
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
        "AdamWeightDecay AddN ArgMaxWithValue ArgMinWithValue AssignAdd BatchMatMul BiasAdd BiasAddGrad Dropout DropoutGrad "
        "EqualCount Erfc ExpandDims GeLU GeLUGrad Gelu IdentityMath LayerNorm LayerNormGrad LogSoftmax LogSoftmaxGrad MatMul "
        "MaximumGrad MinimumGrad OnesLike ReLU ReduceMean ReluGrad Sigmoid SigmoidCrossEntropyWithLogits "
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
    "AcoshExt Adam AdamApplyOneWithDecay AdamApplyOneWithDecayAssign AdamWeightDecay Addcmul AddExt ApplyMomentum "
    "ArgMaxWithValue ArgMinWithValue AsinhExt BatchMatMul BatchNorm BatchNormGrad BCEWithLogitsLoss "
    "BinaryCrossEntropy CAbs CAdd CDiv ClampScalar ClipByNorm ClipByNormNoDivSum CMul ConstantOfShape CRealDiv CSub "
    "DivMod Dropout DropoutGrad DynamicReshape Elu EluExt EqualCount ExpandDims FastGelu FastGeLU "
    "FastGeLUGrad FastGeluGrad FillV2 Flatten FloatStatus FusedMulAdd HShrink HSigmoid HSwish IdentityMath "
    "LambApplyOptimizerAssign LambApplyWeightAssign LayerNorm LayerNormExt LayerNormGrad LayerNormV3 LeakyReLU "
    "LeakyReLUExt LogicalXor LogSoftmax LogSoftmaxGrad MatMul MaximumGrad MeanExt MinimumGrad Muls "
    "ReduceMean ReLU6 ReluGrad RepeatInterleaveInt RmsNorm RmsNormGrad RsqrtGrad Sigmoid "
    "SigmoidCrossEntropyWithLogits SigmoidCrossEntropyWithLogitsGrad SigmoidGrad SiLU SiLUGrad Softmax "
    "SoftmaxBackward SoftmaxCrossEntropyWithLogits SoftmaxGrad SoftmaxGradExt Softplus SoftplusExt SoftplusGrad "
    "SoftplusGradExt Softsign SplitWithSize SqrtGrad SquaredDifference SquareSumAll Squeeze StandardNormal StopGradient SubExt "
    "SumExt TanhGrad ZerosLike ZerosLikeExt"
)

# The products of the named fusion passes and what they start from: Ascend has kernels for these, other targets do not.
NATIVE_ON_ASCEND: frozenset[str] = _names(
    "AddLayerNorm AddLayerNormV2 AddRmsNorm AddRmsNormDynamicQuant AddRmsNormQuantV2 DynamicQuant FusedMatmulElemBinary "
    "FusedMatmulElemUnary MatMulAllReduce MatmulBiasSplitOut2 MatmulBiasSplitOut3 MatmulBiasSplitSiluOut2 "
    "MatmulSplitOut2 MatmulSplitOut3 MatmulSplitSiluOut2 PromptFlashAttention QuantBatchMatmul QuantV2 "
    "QuantbatchmatmulSplitOut2 QuantbatchmatmulSplitOut3 QuantbatchmatmulSplitSiluOut2 ReshapeExt RmsNormQuant "
    "RotaryPositionEmbedding Swiglu"
)


def expand_ops(target: str) -> frozenset[str]:
    """The operators that a target expands by default."""
    return ANCESTOR[target] | OURS | (NATIVE_ON_ASCEND if target != "ascend" else frozenset())
