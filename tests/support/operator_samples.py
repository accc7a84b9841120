"""Operands and attributes to try each operator with.

``sample("*[N, 3]", "i32[2] = 0 2", axis=1)`` has one operand of each data type that is tried, of symbolic shape, and one
of fixed data type and content. An operator needs no entry when it is element-wise without attributes or a plain reduction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphkernel.errors import TypeRuleError
from kernelgen.tensor.bind import concrete_attrs, concrete_shape
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.types import Attrs, DType, TensorType, dtype, parse_type, sym
from tests.support.operator_values import Values

DTYPES = tuple(
    map(dtype, ("float16", "bfloat16", "float32", "float64", "int32", "int64", "uint8", "bool", "complex64"))
)
SYMBOLS: Mapping[str, int] = {"N": 3, "M": 2}
N, M = sym("N"), sym("M")
TAKE_TWO = frozenset({"Send", "Receive"})
"""Operators that one process alone cannot compute."""


@dataclass(frozen=True)
class Operand:
    """A type as text, whose data type ``*`` stands for the one that is tried, and perhaps the content."""

    text: str
    content: tuple[float, ...] | None = None

    @staticmethod
    def of(text: str) -> Operand:
        spec, _, content = text.partition("=")
        return Operand(spec.strip(), tuple(map(float, content.split())) if content else None)

    def type(self, of: DType) -> TensorType:
        return parse_type(self.text.replace("*", of.name, 1) if self.text.startswith("*") else self.text)


@dataclass(frozen=True)
class Sample:
    """Operands and attributes, still without a data type."""

    operands: tuple[Operand, ...]
    attrs: Attrs

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """What to put in place of ``*``."""
        return DTYPES if any(operand.text.startswith("*") for operand in self.operands) else DTYPES[:1]

    def types(self, of: DType) -> tuple[TensorType, ...]:
        return tuple(operand.type(of) for operand in self.operands)


@dataclass(frozen=True)
class Case:
    """An operator with operands that its type rule accepts."""

    op: Operator
    sample: Sample
    of: DType

    @property
    def types(self) -> tuple[TensorType, ...]:
        return self.sample.types(self.of)

    @property
    def bound(self) -> tuple[TensorType, ...]:
        return tuple(bound(type_) for type_ in self.types)

    @property
    def attrs(self) -> Attrs:
        return concrete_attrs(self.sample.attrs, SYMBOLS)

    def arrays(self, values: Values) -> list[np.ndarray]:
        """One array for each operand."""
        return [
            values(type_, place) if operand.content is None else filled(operand.content, type_)
            for place, (operand, type_) in enumerate(zip(self.sample.operands, self.bound, strict=True))
        ]

    def results(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        found = self.op.meaning(*arrays, attrs=self.attrs)
        return [np.asarray(result) for result in (found if isinstance(found, tuple) else (found,))]

    def __str__(self) -> str:
        return f"{self.op.name}({', '.join(map(str, self.types))}; {dict(self.sample.attrs)})"


def bound(type_: TensorType) -> TensorType:
    """The type when the symbols have their values."""
    return TensorType(concrete_shape(type_.shape, SYMBOLS), type_.dtype, type_.layout)


def filled(content: Sequence[float], type_: TensorType) -> np.ndarray:
    shape = concrete_shape(type_.shape, SYMBOLS)
    return np.asarray(content).astype(type_.dtype.numpy).reshape(shape)


def sample(*operands: str, **attrs: object) -> Sample:
    return Sample(tuple(Operand.of(text) for text in operands), Attrs.of(attrs))


def samples_of(op: Operator) -> Sequence[Sample]:
    """The entry of an operator, or what fits its family."""
    if op.name in SAMPLES:
        return SAMPLES[op.name]
    if op.attribute_names == ("axis", "keep_dims"):
        return REDUCTION
    if op.attributes or op.arity is None:
        return []
    return [
        sample(*["*[N, 1, 5]"] * op.arity),
        sample(*["*[]"] * op.arity),
        sample(*["*[2, 0]"] * op.arity),
        sample(*["*[2, 1, N]", "*[4, 1]", "*[N]"][: op.arity]),
    ]


def computed_cases(op: Operator) -> Iterator[Case]:
    """Those that one process can compute."""
    return iter(()) if op.name in TAKE_TWO else cases(op)


def cases(op: Operator) -> Iterator[Case]:
    """Every sample with every data type that the type rule accepts."""
    for entry in samples_of(op):
        for of in entry.dtypes:
            try:
                op.infer(entry.types(of), entry.attrs)
            except TypeRuleError:
                continue
            yield Case(op, entry, of)


REDUCTION = [
    sample("*[N, 3, 4]", axis=(1,), keep_dims=True),
    sample("*[2, N, 4]", axis=(-1, 0), keep_dims=False),
    sample("*[2, 3]", axis=()),
    sample("*[]"),
]
INDPTR, INDICES = "i32[4] = 0 2 3 5", "i32[5] = 0 3 1 2 3"
WINDOW = {"stride": (2, 1), "dilation": (2, 1), "group": 2}

SAMPLES: Mapping[str, Sequence[Sample]] = {
    # element-wise with attributes or data types of their own
    "Pow": [sample("*[N, 3]", "*[3] = 2 0 3"), sample("*[4] = 1 2 -1 0", "*[] = 2")],
    "Cast": [sample("*[N, 3]", dst_type=d.name) for d in DTYPES if d.name != "complex64"],
    "Select": [sample("bool[N, 3]", "*[N, 3]", "*[3]"), sample("bool[3]", "*[]", "*[N, 1]")],
    "AddN": [sample(*["*[N, 3]"] * 3), sample("*[2]")],
    "Assign": [sample("*[N, 3]", "*[N, 3]")],
    "AssignAdd": [sample("*[N, 3]", "*[3]")],
    "AddExt": [sample("*[N, 3]", "*[3]", alpha=2), sample("*[2]", "*[2]", alpha=0.5), sample("*[2]", "*[2]")],
    "SubExt": [sample("*[N, 3]", "*[3]", alpha=3), sample("*[2]", "*[2]", alpha=-0.5), sample("*[2]", "*[2]")],
    "Muls": [sample("*[N, 3]", other=2), sample("*[N, 3]", other=-0.3)],
    "Addcmul": [sample("*[N, 3]", "*[3]", "*[N, 1]", "*[]")],
    "ClampScalar": [
        sample("*[N, 3]", min=-1, max=2), sample("*[4]", max=1), sample("*[4]", min=0.5), sample("*[4]", min=2, max=1),
    ],
    "DivMod": [sample("*[N, 3]", "*[3]", rounding_mode=mode) for mode in ("floor", "trunc", "none")],
    "ZerosLikeExt": [sample("*[N, 3]"), sample("*[N, 3]", dtype="int32")],
    # complex numbers
    "CReal": [sample("*[N, 3]"), sample("c128[2]")],
    "CImag": [sample("*[N, 3]"), sample("c128[2]")],
    "CAbs": [sample("*[N, 3]"), sample("c128[2]")],
    "Complex": [sample("*[N, 3]", "*[N, 3]"), sample("*[N, 1]", "*[3]")],
    **dict.fromkeys(
        ("CAdd", "CSub", "CMul", "CDiv", "CRealDiv"),
        (
            sample("c64[N, 3]", "c64[N, 3]"), sample("c64[N, 3]", "f32[3]"), sample("f32[3]", "c64[N, 3]"),
            sample("c128[3]", "c128[]"), sample("f64[3]", "c128[3]"),
        ),
    ),
    # reductions
    **dict.fromkeys(("Argmax", "Argmin"), (sample("*[N, 3, 4]", axis=1), sample("*[5]", axis=-1, output_type="int64"))),
    **dict.fromkeys(
        ("ArgMaxWithValue", "ArgMinWithValue"),
        (sample("*[N, 3, 4]", axis=1), sample("*[N, 4]", axis=-1, keep_dims=True), sample("*[5]")),
    ),
    "SumExt": [
        sample("*[N, 3, 4]", axis=(1,)), sample("*[N, 3]", axis=(-1,), keep_dims=True, dtype="float32"), sample("*[2, 3]"),
        sample("*[4]", dtype="int32"),
    ],
    "SquareSumAll": [sample("*[N, 3]", "*[N, 3]"), sample("*[2]", "*[M, 2]")],
    "EqualCount": [sample("*[N, 3]", "*[N, 3]"), sample("*[4] = 1 2 3 4", "*[4] = 1 3 3 4")],
    "ElemAny": [sample("*[N, 3]"), sample("*[2, 0]"), sample("*[3] = 0 0 0", dst_type="int32")],
    "FloatStatus": [sample("*[N, 3]"), sample("*[]"), sample("*[3] = inf 1 2")],
    **dict.fromkeys(
        ("CumSum", "CumProd"),
        (sample("*[N, 3]", axis=1), sample("*[N, 3]", axis=0, reverse=True),
         sample("*[4]", axis=-1, exclusive=True, reverse=True)),
    ),
    # shapes
    "Reshape": [
        sample("*[N, 6]", shape=(N * 3, 2)), sample("*[1, 1]", shape=()), sample("*[0, 3]", shape=(3, 0)),
    ],
    "ExpandDims": [sample("*[N, 3]", axis=(0, -1)), sample("*[]", axis=0)],
    "Squeeze": [sample("*[1, N, 1]", axis=(0,)), sample("*[1, 3, 1]")],
    "Flatten": [sample("*[N, 3, 4]", axis=axis) for axis in (0, 1, 2, 3, -1)],
    "Transpose": [sample("*[N, 3, M]", perm=(2, 0, 1)), sample("*[]", perm=())],
    "BroadcastTo": [sample("*[N, 1]", shape=(2, N, 4)), sample("*[]", shape=(2,))],
    "Tile": [sample("*[N, 3]", multiples=(2, 1, 3)), sample("*[1, 3]", multiples=(N, 1))],
    "Shape": [sample("*[N, 3]"), sample("*[]")],
    "FillV2": [sample("*[]", shape=(N, 3)), sample("*[1]", shape=())],
    "ConstantOfShape": [
        sample("i64[2] = 3 2", shape=(N, 2), value=1.5), sample("i32[1] = 4", shape=(4,), value=-1, dtype="int32"),
    ],
    "RepeatInterleaveInt": [
        sample("*[N, 3]", repeats=2, dim=-1), sample("*[N, 1]", repeats=3, dim=1), sample("*[N, 2]", repeats=2),
        sample("*[2, 3]", repeats=0, dim=0),
    ],
    # pieces
    "StoredMatMul": [
        sample("*[N, 6]", "i8[2, 3, 4]", "f32[2, 4]", "f32[2, 4]"), sample("*[3, 6]", "i8[1, 6, 4]"),
        sample("*[2, N, 8]", "u8[2, 2, 5]", "f32[2, 5]", bits=4),
    ],
    "Concat": [sample("*[N, 3]", "*[M, 3]", "*[0, 3]", axis=0), sample("*[2, 3]", "*[2, 1]", axis=-1)],
    "Split": [sample("*[6, N]", axis=0, size_splits=(1, 2, 3))],
    "SplitWithSize": [sample("*[N, 6]", axis=-1, split_sizes=(1, 2, 3)), sample("*[4]", split_sizes=(4,))],
    "StridedSlice": [
        sample("*[6, 5]", begin=(1, 4), end=(6, -1), strides=(2, -1)), sample("*[6]", begin=(3,), end=(2,), strides=(1,)),
        sample("*[N, 4]", begin=(1, 0), end=(N, 2), strides=(1, 1)),
    ],
    "Slice": [sample("*[6, 5]", begin=(1, 0), size=(2, 5)), sample("*[N, 4]", begin=(0, 1), size=(N, 2))],
    "Pad": [sample("*[N, 3]", paddings=(1, 0, 0, 2), value=1.0)],
    "PadAkg": [sample("*[N, 3]", head=(0, 0), tail=(13, 1), pad_val=2), sample("*[N, 3]", head=(1, 0), tail=(1, 0))],
    "UnPadAkg": [sample("*[N, 3]", tail=(0, 2)), sample("*[4]", tail=(1,))],
    "TransData": [
        sample("*[M, 20, 3]", src_format="NCHW", dst_format="FRACTAL_NZ"),
        sample(f"*[M, {N * 16}, 16]", src_format="DefaultFormat", dst_format="FRACTAL_NZ"),
        sample("*[M, 1, 2, 16, 16]@FRACTAL_NZ", src_format="FRACTAL_NZ", dst_format="DefaultFormat", shape=(M, 20, 3)),
    ],
    "LayoutTransform": [
        sample("*[N, 32, 2, M]", src_format="NCHW", dst_format="NCHW16c"),
        sample("*[N, 2, 3, M, 16]@NCHW16c", src_format="NCHW16c", dst_format="NCHW8c"),
        sample("*[N, 2, 3, M]", src_format="DefaultFormat", dst_format="NHWC"),
        sample("*[8, 4, 1, 1]@OIHW", src_format="OIHW", dst_format="OIHW4i2o"),
    ],
    # indices
    "Gather": [
        sample("*[4, N]", "i32[2, 2] = 0 3 -1 1", axis=0), sample("*[N, 4]", "i64[3] = 0 0 2", axis=-1),
        sample("*[4]", "i32[] = 2"),
    ],
    "GatherNd": [
        sample("*[4, N]", "i32[3, 1] = 0 -1 3"), sample("*[4, 2]", "i64[2, 2, 2] = 0 1 3 0 4 0 1 1"),
        sample("*[4, 2]", "i32[2, 0] ="),
    ],
    "TensorScatterAdd": [
        sample("*[4, N]", "i32[3, 1] = 1 1 4", "*[3, N]"), sample("*[4, 2]", "i64[3, 2] = 0 1 0 1 -1 0", "*[3]"),
        sample("*[4, 2]", "i32[3, 0] =", "*[3, 4, 2]"),
    ],
    "UnsortedSegmentSum": [
        sample("*[4, N]", "i32[4] = 2 0 2 -1", num_segments=3), sample("*[2, 2, 3]", "i64[2, 2] = 0 1 1 9", num_segments=N),
    ],
    "Places": [sample("i64[2, 2] = 0 3 -1 1", extent=4), sample("i32[3] = 2 -5 4", extent=5)],
    "OneHot": [
        sample("i32[N]", "*[]", "*[]", depth=4, axis=-1), sample("i64[N, 2]", "*[1]", "*[]", depth=3, axis=0),
    ],
    # sparse rows of a 3 x 4 matrix
    **dict.fromkeys(
        ("CSRMul", "CSRDiv"),
        (
            sample(INDPTR, INDICES, "*[5]", "*[3, 4]", dense_shape=(3, 4)),
            sample(INDPTR, INDICES, "*[5, N]", "*[1, 4, N]", dense_shape=(3, 4, N)),
        ),
    ),
    "CSRGather": [
        sample(INDPTR, INDICES, "*[3, 4]", dense_shape=(3, 4)), sample(INDPTR, INDICES, "*[3, 4, N]", dense_shape=(3, 4, N)),
    ],
    "CSRReduceSum": [
        sample(INDPTR, INDICES, "*[5]", dense_shape=(3, 4), axis=1), sample(INDPTR, INDICES, "*[5, N]", dense_shape=(3, 4, N)),
    ],
    "CSRMV": [sample(INDPTR, INDICES, "*[5]", "*[4, 1]", dense_shape=(3, 4))],
    "CSRMM": [sample(INDPTR, INDICES, "*[5]", "*[4, N]", dense_shape=(3, 4)), sample(INDPTR, INDICES, "*[5]", "*[4, 2]")],
    "CSR2COO": [sample(INDPTR, nnz=5)],
    "COO2CSR": [sample("i32[5] = 0 0 1 2 2", height=3)],
    # products, windows, attention
    "MatMul": [
        sample("*[N, 1]", "*[1, M]"), sample("*[1, N]", "*[M, 1]", transpose_a=True, transpose_b=True),
        sample("*[N, 3]", "*[3, M]"), sample("*[3, N]", "*[M, 3]", transpose_a=True, transpose_b=True),
    ],
    "MatMulInteger": [
        sample("u8[N, 3]", "i8[3, M]"), sample("i8[2, N, 5]", "i8[5, 4]"), sample("u8[N, 1, 1, 4]", "u8[5, 4, M]"),
    ],
    "BatchMatMul": [
        sample("*[N, 1, 1, 4]", "*[5, M, 1]", transpose_a=True, transpose_b=True), sample("*[N, 2, 1]", "*[N, 1, M]"),
        sample("*[N, 1, 2, 3]", "*[7, 3, M]"), sample("*[N, 3, 2]", "*[N, 4, 3]", transpose_a=True, transpose_b=True),
    ],
    "GroupedMatmul": [
        sample("*[5, N]", "*[2, N, M]", "i64[2] = 2 4"),
        sample("*[5, 4]", "*[2, 3, 4]", "i64[2] = 5 5", split_item=3, group_type=0, transpose_b=True),
        sample("*[5, N]", "*[5, M]", "i32[3] = 1 1 5", group_type=2, transpose_a=True),
    ],
    "Conv2D": [
        sample("*[N, 4, 7, 6]", "*[6, 2, 3, 2]", pad=(1, 0, 2, 1), **WINDOW), sample("*[1, 3, 5, 5]", "*[2, 3, 1, 1]"),
        sample("*[N, 7, 6, 4]", "*[3, 2, 2, 6]", pad=(1, 0, 2, 1), format="NHWC", **WINDOW),
        sample("u8[N, 4, 7, 6]", "i8[6, 4, 3, 2]", pad=(1, 0, 2, 1), stride=(2, 1)),
        sample("u8[N, 7, 6, 5]", "i8[3, 2, 5, 6]", pad=(1, 0, 2, 1), format="NHWC"),
    ],
    "Conv2DBackpropInput": [
        sample("*[2, 6, 3, 7]", "*[6, 2, 3, 2]", input_size=(2, 4, 7, 6), pad=(1, 1, 2, 1), **{**WINDOW, "dilation": (2, 2)})
    ],
    "Conv2DBackpropFilter": [
        sample("*[2, 6, 3, 7]", "*[2, 4, 7, 6]", filter_size=(6, 2, 3, 2), pad=(1, 1, 2, 1), **{**WINDOW, "dilation": (2, 2)}),
        sample("*[2, 4, 6, 5]", "*[2, 4, 6, 3]", filter_size=(3, 3, 3, 5), pad=(1, 1, 1, 1), format="NHWC"),
    ],
    "MaxPool": [sample("*[N, 2, 7, 7]", kernel_size=(3, 2), stride=(2, 3), pad=(1, 1, 0, 1), ceil_mode=True)],
    "AvgPool": [
        sample("*[N, 2, 7, 7]", kernel_size=(3, 3), stride=(2, 2), pad=(1, 1, 1, 1), count_include_pad=c) for c in (False, True)
    ],
    "Pool2D": [
        sample("*[N, 2, 7, 6]", pool_type="max", kernel_size=(3, 2), strides=(2, 3), pad=(1, 0, 1, 1), round_mode="ceil"),
        sample("*[N, 2, 7, 6]", pool_type="avg", kernel_size=(3, 2), strides=(3, 2), pad=(1, 0, 0, 1), round_mode="ceil"),
        sample("*[N, 2, 7, 6]", pool_type="avg", kernel_size=(2, 2), strides=(2, 2)),
        sample("*[N, 2, 4, M]", pool_type="avg", **{"global": True}),
    ],
    "ReshapeAndCache": [
        sample("*[N, 8]", "*[N, 8]", "*[3, 2, 2, 4]", "*[3, 2, 2, 4]", "i32[N] = 5 0 -1"),
        sample("*[1, 2, 2, 4]", "*[1, 2, 2, 4]", "*[3, 2, 2, 4]", "*[3, 2, 2, 4]", "i32[2] = 1 6"),
    ],
    "PagedAttention": [
        sample("*[2, 16]", "*[3, 2, 2, 4]", "*[3, 2, 2, 4]", "i32[2, 2] = 2 0 1 1", "i32[2] = 3 0", head_num=4),
        sample("*[N, 1, 8]", "*[3, 2, 2, 4]", "*[3, 2, 2, 4]", "i32[N, 1] = 2 0 1", "i32[N] = 1 2 2", head_num=2,
               kv_head_num=2, scale_value=0.3),
    ],
    # activations with numbers, and their gradients
    "GeLUGrad": [sample(*["*[N, 3]"] * 2), sample(*["*[N, 3]"] * 3)],
    "Gelu": [sample("*[N, 3]", approximate="none"), sample("*[N, 3]", approximate="tanh")],
    **dict.fromkeys(("LeakyReLU", "Elu", "EluExt"), (sample("*[N, 3]", alpha=0.7), sample("*[]"),)),
    "LeakyReLUExt": [sample("*[N, 3]", negative_slope=0.2), sample("*[]")],
    "SoftplusExt": [sample("*[N, 3]", beta=2.0, threshold=3.0), sample("*[]")],
    "SoftplusGradExt": [sample("*[N, 3]", "*[N, 3]", beta=2.0, threshold=3.0), sample("*[]", "*[]")],
    "HShrink": [sample("*[N, 3]", lambd=0.3), sample("*[]")],
    **dict.fromkeys(
        ("MaximumGrad", "MinimumGrad"),
        (
            sample("*[N, 3, 4]", "*[N, 3, 4]", "*[N, 3, 4]"), sample("*[N, 3, 4]", "*[4]", "*[N, 3, 4]"),
            sample("*[3, 1]", "*[N, 1, 1]", "*[N, 3, 1]"), sample("*[]", "*[N, 2]", "*[N, 2]"),
        ),
    ),
    # softmax and its gradients
    **dict.fromkeys(("Softmax", "LogSoftmax"), (sample("*[N, 3, 4]", axis=(-1,)), sample("*[N, 3, 4]", axis=(0, 2)))),
    **dict.fromkeys(
        ("SoftmaxGrad", "LogSoftmaxGrad"),
        (sample("*[N, 3, 4]", "*[N, 3, 4]", axis=(-1,)), sample("*[N, 3, 4]", "*[N, 3, 4]", axis=(0, 1))),
    ),
    "SoftmaxBackward": [sample("*[N, 3]", "*[N, 3]", dim=-1), sample("*[N, 3]", "*[N, 3]", dim=0)],
    "SoftmaxGradExt": [
        sample("*[N, 3]", "*[N, 3]", "*[]", axis=(-1,)), sample("*[N, 3, 4]", "*[N, 3, 4]", "*[3, 1]", axis=(0, 2)),
    ],
    # norms and biases
    "LayerNorm": [
        sample("*[N, 3, 4]", "*[4]", "*[4]", begin_norm_axis=-1, begin_params_axis=-1, epsilon=1e-3),
        sample("*[N, 3, 4]", "*[3, 4]", "*[3, 4]", begin_norm_axis=1, begin_params_axis=1),
        sample("*[N, 3, 4]", "*[4]", "*[4]", begin_norm_axis=1, begin_params_axis=2),
        sample("*[N, 3]", "*[N, 3]", "*[N, 3]", begin_norm_axis=0, begin_params_axis=0, epsilon=1e-3),
    ],
    "LayerNormGrad": [
        sample("*[N, 3, 4]", "*[N, 3, 4]", "*[N, 3, 1]", "*[N, 3, 1]", "*[4]", epsilon=1e-3),
        sample("*[N, 3, 4]", "*[N, 3, 4]", "*[N, 1, 1]", "*[N, 1, 1]", "*[3, 4]", begin_norm_axis=1, begin_params_axis=1),
        sample("*[N, 3, 4]", "*[N, 3, 4]", "*[N, 1, 1]", "*[N, 1, 1]", "*[3, 4]", begin_norm_axis=-2, begin_params_axis=-2),
        sample("*[N, 3, 4]", "*[N, 3, 4]", "*[N, 1, 1]", "*[N, 1, 1]", "*[4]", begin_norm_axis=1, begin_params_axis=-1),
        sample("*[N, 3]", "*[N, 3]", "*[1, 1]", "*[1, 1]", "*[N, 3]", begin_norm_axis=0, begin_params_axis=0),
    ],
    "RmsNorm": [
        sample("*[N, 3, 4]", "*[4]", epsilon=1e-5), sample("*[N, 3, 4]", "*[3, 4]"), sample("*[2, N]", "*[2, N]"),
        sample("*[N, 3]", "*[]"),
    ],
    "RmsNormGrad": [
        sample("*[N, 3, 4]", "*[N, 3, 4]", "*[N, 3, 1]", "*[4]"), sample("*[N, 3]", "*[N, 3]", "*[1, 1]", "*[N, 3]"),
        sample("*[N, 3]", "*[N, 3]", "*[N, 3]", "*[]"),
    ],
    "BatchNorm": [
        sample("*[N, 3, 2, 4]", *["*[3]"] * 4, epsilon=1e-3), sample("*[N, 3]", *["f32[3]"] * 4),
        sample("*[N, 2, 4, 3]", *["*[3]"] * 4, data_format="NHWC"),
        sample("*[N, 3, 2, 4]", *["*[3]"] * 4, is_training=True, momentum=0.2),
        sample("*[5, 3, 2, 2]", *["f32[3]"] * 4, is_training=True, epsilon=1e-3),
        sample("*[N, 2, 4, 3]", *["*[3]"] * 4, is_training=True, data_format="NHWC"),
    ],
    "BatchNormGrad": [
        sample("*[N, 3, 2, 4]", "*[N, 3, 2, 4]", *["*[3]"] * 3, is_training=True),
        sample("*[N, 2, 4, 3]", "*[N, 2, 4, 3]", *["f32[3]"] * 3, is_training=True, data_format="NHWC"),
        sample("*[N, 3, 2]", "*[N, 3, 2]", *["*[3]"] * 3, epsilon=1e-3), sample("*[5, 3]", "*[5, 3]", *["*[3]"] * 3),
    ],
    "BiasAdd": [
        sample("*[N, 3, 4, 5]", "*[3]"), sample("*[N, 3, 4, 5]", "*[5]", data_format="NHWC"), sample("*[N, 3]", "*[3]"),
    ],
    "BiasAddGrad": [
        sample("*[N, 3, 4, 5]"), sample("*[N, 3, 4, 5]", data_format="NHWC"), sample("*[N, 3]"), sample("*[N, 3, 4]"),
    ],
    # losses
    "SoftmaxCrossEntropyWithLogits": [sample("*[N, 4]", "*[N, 4]"), sample("*[5]", "*[5]")],
    "BinaryCrossEntropy": [
        *(sample("*[N, 3]", "*[N, 3]", "*[3]", reduction=reduction) for reduction in ("none", "mean", "sum")),
        sample("*[N, 3]", "*[N, 3]"), sample("*[]", "*[]", reduction="sum"), sample("*[]", "*[]"),
    ],
    "BCEWithLogitsLoss": [
        sample("*[N, 3]", "*[N, 3]", "*[N, 1]", "*[3]", reduction=reduction) for reduction in ("none", "mean", "sum")
    ],
    # optimizers; scalars may be wider than the tensors
    "Adam": [
        sample(*["*[N, 3]"] * 3, *["f32[]"] * 6, "*[N, 3]"), sample(*["*[3]"] * 3, *["*[]"] * 6, "*[3]", use_nesterov=True),
    ],
    "AdamWeightDecay": [sample("*[N, 3]", *["f32[N, 3]"] * 2, *["f32[]"] * 5, "*[N, 3]")],
    **dict.fromkeys(
        ("AdamApplyOneWithDecay", "AdamApplyOneWithDecayAssign"), (sample(*["*[N, 3]"] * 4, *["f32[]"] * 7),)
    ),
    "ApplyMomentum": [
        sample("*[N, 3]", "*[N, 3]", "*[]", "*[N, 3]", "*[]"),
        sample("*[3]", "*[3]", "f32[]", "*[3]", "f32[]", use_nesterov=True, gradient_scale=0.5),
    ],
    "LambApplyOptimizerAssign": [
        sample(*["*[N, 3]"] * 4, *["f32[]"] * 5, "f32[] = 7", "f32[]", "f32[]"),
    ],
    "LambApplyWeightAssign": [
        sample("f32[]", "f32[]", "f32[]", "*[N, 3]", "*[N, 3]"), sample("f32[] = 0", "*[]", "f32[]", "*[3]", "*[3]"),
    ],
    "ClipByNorm": [sample("*[N, 3]", "*[]"), sample("*[N, 3, 4]", "*[N, 1, 1]", axis=(1, 2)), sample("*[]", "*[]")],
    # numbers of the shape
    "Extent": [sample(value=N * 3 + 1), sample(value=5, dst_type="float64")],
    # quantization
    "QuantV2": [
        sample("*[N, 3]", "*[3]", "*[1]"), sample("*[N, 3]", "f32[1]", "i32[1]", rounding_mode="FLOOR"),
        sample("*[N, 3]", "*[]", "i8[3]", sqrt_mode=True, rounding_mode="CEIL"),
        sample("*[2]", "*[]", "*[]", rounding_mode="TRUNC"),
    ],
    "DynamicQuant": [sample("*[N, 3, 4]"), sample("*[N, 4]", "*[4]")],
    "QuantBatchMatmul": [
        sample("i8[N, 4]", "i8[4, M]", "f32[M]"), sample("i8[2, 4, N]", "i8[3, 4]", "f32[1]", transpose_x1=True,
                                                         transpose_x2=True, dtype="bfloat16"),
        sample("i8[N, 4]", "i8[4, 3]", "f32[3]", "i32[3]", "f32[N]", optional=("bias", "pertoken_scale"), dtype="float32"),
        sample("i8[N, 4]", "i8[4, 3]", "f32[3]", "f32[N]", optional=("pertoken_scale",)),
    ],
    # products of the named fusion passes
    "LayerNormV3": [
        sample("*[N, 3, 4]", "*[4]", "*[4]", begin_norm_axis=-1, begin_params_axis=-1, epsilon=1e-3),
        sample("*[N, 3, 4]", "*[3, 4]", "*[3, 4]", begin_norm_axis=1, begin_params_axis=1),
    ],
    "LayerNormExt": [
        sample("*[N, 3, 4]", "*[4]", "*[4]", normalized_shape=(4,), epsilon=1e-3),
        sample("*[2, N]", "*[2, N]", "*[2, N]", normalized_shape=(2, N)),
    ],
    "AddLayerNorm": [
        sample("*[N, 3, 4]", "*[N, 3, 4]", "*[4]", "*[4]", begin_norm_axis=2, begin_params_axis=2, epsilon=1e-3),
    ],
    "AddLayerNormV2": [
        sample("*[N, 3, 4]", "*[N, 3, 4]", "*[4]", "*[4]", begin_norm_axis=2, begin_params_axis=2, additional_output=more)
        for more in (True, False)
    ],
    "AddRmsNorm": [sample("*[N, 4]", "*[N, 4]", "*[4]", epsilon=1e-5), sample("*[N, 4]", "*[N, 4]", "f32[4]")],
    "RmsNormQuant": [sample("*[N, 4]", "*[4]", "*[1]", "i8[1]"), sample("*[N, 4]", "*[4]", "*[4]", "*[1]", epsilon=1e-3)],
    "AddRmsNormQuantV2": [sample("*[N, 4]", "*[N, 4]", "*[4]", "f32[1]", "i32[1]", epsilon=1e-5)],
    "AddRmsNormDynamicQuant": [sample("*[N, 4]", "*[N, 4]", "*[4]"), sample("*[N, 4]", "*[N, 4]", "*[4]", "*[4]")],
    **dict.fromkeys(
        ("MatmulSplitOut2", "MatmulSplitSiluOut2"),
        (sample("*[N, 2, 4]", "*[5, 4]", n_lens=(2, 3)), sample("*[N, 4]", "*[4, 4]", n_lens=(1, 3))),
    ),
    "MatmulSplitOut3": [sample("*[N, 2, 4]", "*[5, 4]", n_lens=(2, 1, 2))],
    **dict.fromkeys(
        ("MatmulBiasSplitOut2", "MatmulBiasSplitSiluOut2"), (sample("*[N, 2, 4]", "*[5, 4]", "*[5]", n_lens=(2, 3)),)
    ),
    "MatmulBiasSplitOut3": [sample("*[N, 2, 4]", "*[5, 4]", "*[5]", n_lens=(2, 1, 2))],
    **dict.fromkeys(
        ("QuantbatchmatmulSplitOut2", "QuantbatchmatmulSplitSiluOut2"),
        (
            sample("i8[N, 2, 4]", "i8[5, 4]", "f32[5]", n_lens=(2, 3)),
            sample("i8[3, 2, 4]", "i8[5, 4]", "f32[5]", "i32[5]", "f32[6]", n_lens=(2, 3), dtype="float32",
                   optional=("bias", "pertoken_scale")),
        ),
    ),
    "QuantbatchmatmulSplitOut3": [sample("i8[N, 2, 4]", "i8[5, 4]", "f32[5]", n_lens=(2, 1, 2))],
    "FusedMatmulElemBinary": [
        sample("*[N, 3]", "*[3, M]", "*[M]", elemwise="bias_add"), sample("*[3, N]", "*[2, 3]", "*[2]", transpose_a=True,
                                                                         transpose_b=True),
    ],
    "FusedMatmulElemUnary": [sample("*[N, 3]", "*[3, M]", elemwise=name) for name in ("relu", "gelu")],
    "MatMulAllReduce": [
        sample("*[N, 3]", "*[3, M]", op="sum", group="world"), sample("*[N, 2, 3]", "*[4, 3]", transpose_b=True, rank_size=1),
    ],
    "PromptFlashAttention": [
        sample(*["*[N, 2, M, 4]"] * 3, num_heads=2, num_key_value_heads=2, scale_value=0.5),
        sample("*[N, 2, 3, 4]", *["*[N, 2, M, 4]"] * 2, "*[N, 1, 1, M]", num_heads=2, num_key_value_heads=2, scale_value=0.5),
        sample("*[N, 4, 3, 8]", *["*[N, 2, M, 8]"] * 2, "*[N, 1, 3, M]", num_heads=4, num_key_value_heads=2, scale_value=0.5,
               optional=("pse_shift",), zero_hidden=True),
    ],
    "Swiglu": [sample("*[N, 8]"), sample("*[4, N]", axis=0)],
    "RotaryPositionEmbedding": [
        sample("*[N, 2, M, 8]", "*[1, 1, M, 8]", "*[1, 1, M, 8]"), sample("*[3, 4]", "*[3, 4]", "*[4]", mode=0),
    ],
    "DynamicReshape": [sample("*[N, 6]", "i64[2] = 9 2", shape=(N * 3, 2)), sample("*[4]", "i32[2] = 2 2", shape=(2, 2))],
    "ReshapeExt": [
        sample("*[N, 6]", "f32[N, 2]", shape=(N * 3, 2), only_depend_shape=(1,)), sample("*[4]", shape=(2, 2)),
    ],
    "SolveTriangular": [
        sample("*[2, 3, 3] = 4 1 1 1 4 1 1 1 4 4 1 1 1 4 1 1 1 4", "*[2, 3, N]", lower=lower, trans=trans)
        for lower in (False, True) for trans in (False, True)
    ] + [sample("*[N, N]", "*[N, 2]", unit_diagonal=True)],
    "Lu": [sample("*[M, 3, 3] = 4 1 1 1 4 1 1 1 4 4 1 1 1 5 1 1 1 4"), sample("*[2, 2] = 0 1 2 3")],
    # random numbers and devices
    "UniformReal": [
        sample(shape=(4, 3), seed=1, seed2=2), sample("i64[]", shape=(), seed=3), sample("i32[N]", shape=(2,), seed2=1),
    ],
    "StandardNormal": [sample(shape=(4, 3), seed=1), sample("i64[]", shape=(2,), seed2=3)],
    "Dropout": [sample("*[N, 8]", keep_prob=0.7, Seed0=3), sample("*[4]", "i64[]", keep_prob=1.0, Seed1=1)],
    "DropoutGrad": [sample("*[N, 3]", "*[N, 3]", keep_prob=0.8)],
    "Onnx": [sample("f32[3]", op_type="Neg", opset=18, result_types=("f32[3]",))],
    "AllReduce": [sample("*[N, 3]", op="max", group="world"), sample("*[N, 3]", "bool[0]")],
    "AllGather": [sample("*[N, 3]", rank_size=1)],
    "ReduceScatter": [sample("*[N, 3]", op="sum", rank_size=1)],
    "Broadcast": [sample("*[N, 3]", root_rank=0)],
    "AllToAll": [sample("*[4, N]", rank_size=1)],
    "Send": [sample("*[N, 3]", dest_rank=1, rank_size=2), sample("*[3]", "bool[0]", dest_rank=0, sr_tag=3)],
    "Receive": [sample(shape=(2, 3), dtype="float16", src_rank=1, rank_size=2), sample("bool[0]", shape=(4,), src_rank=0)],
}  # fmt: skip
