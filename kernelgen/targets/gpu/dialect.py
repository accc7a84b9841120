"""Dialects of C for devices, as tables: what differs between them in the programs that we print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelgen.dtypes import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
)


@dataclass(frozen=True)
class HalfType:
    """A 16-bit float: the header it needs, how it becomes a float and is made of one, and how it is made of its bits."""

    header: str
    widen: str
    narrow: str
    of_bits: str
    functions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Computed without a float between: one rounding of the exact result is what a float, rounded, gives too."""


@dataclass(frozen=True)
class Dialect:
    """The spellings of a language. ``{0}``, ``{1}`` stand for operands; ``functions`` are those of floats."""

    name: str
    kernel: str  # before a kernel's name; {threads} is the size of its blocks
    device: str  # before a function of our own
    types: Mapping[DType, str]
    halves: Mapping[DType, HalfType]
    indices: Mapping[str, str]  # of the nest's thread and block numbers
    constant: str  # a pointer that is only read
    pointer: str  # to what a thread writes and no other thread reads
    common: str  # to what threads of a block pass on to each other
    shared: str  # before an array that a block shares
    dynamic_shared: str  # declares shared memory whose size the launch gives
    aligned: str  # before an array that is accessed 16 bytes at once
    barrier: str
    shuffle: str  # the value {0} of the lane whose number differs in the bits of {1}, among the lanes of the mask {2}
    functions: Mapping[str, str]  # of float; double ones in double_functions
    double_functions: Mapping[str, str]
    vectors: Mapping[int, str]  # bytes -> a type of so many, for copies
    whole_store: str  # stores the vector {1} at {0} as one: compilers take plain stores apart
    async_copy: str  # 16 bytes from {source} to shared {target} where {condition}, else zeros
    commit_copies: str
    await_copies: str  # all groups but the last {pending}
    load_fragments: str  # 8 x 8 matrices of 16-bit numbers: {count}, {order}, {outputs}, registers {targets}, {address}
    multiply_fragments: str  # {type}s: four numbers d0..d3, four registers a0..a3, two registers b0 and b1
    orders: Mapping[bool, str]  # of rows in registers; True: transposed
    fragment_types: Mapping[DType, str]


_UNARY = ("floor", "ceil", "trunc", "sqrt", "exp", "expm1", "log", "log1p", "tanh", "erf", "sin", "cos", "tan", "sinh",
          "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh")  # fmt: skip
_BINARY = ("pow", "atan2", "fmod")


def _math(suffix: str) -> dict[str, str]:
    unary = {name: f"{name}{suffix}({{0}})" for name in _UNARY}
    binary = {name: f"{name}{suffix}({{0}}, {{1}})" for name in _BINARY}
    return {**unary, **binary, "abs": f"fabs{suffix}({{0}})", "round": f"rint{suffix}({{0}})",
            "copysign": f"copysign{suffix}({{0}}, {{1}})"}  # fmt: skip


CUDA = Dialect(
    name="CUDA C",
    kernel='extern "C" __global__ void __launch_bounds__({threads})',
    device="static __device__ __forceinline__",
    types={
        BOOL: "bool", INT8: "signed char", INT16: "short", INT32: "int", INT64: "long long", UINT8: "unsigned char",
        UINT16: "unsigned short", UINT32: "unsigned int", UINT64: "unsigned long long", FLOAT16: "__half",
        BFLOAT16: "__nv_bfloat16", FLOAT32: "float", FLOAT64: "double",
    },
    halves={
        FLOAT16: HalfType("cuda_fp16.h", "__half2float({0})", "__float2half_rn({0})", "__ushort_as_half({0})",
            {"add": "__hadd_rn({0}, {1})", "sub": "__hsub_rn({0}, {1})", "mul": "__hmul_rn({0}, {1})"},
        ),
        BFLOAT16: HalfType(
            "cuda_bf16.h", "__bfloat162float({0})", "__float2bfloat16_rn({0})", "__ushort_as_bfloat16({0})"
        ),
    },
    indices={"bx": "blockIdx.x", "tx": "threadIdx.x", "ty": "threadIdx.y"},
    constant="const {type}* __restrict__ {name}",
    pointer="{type}* __restrict__ {name}",
    common="{type}* {name}",
    shared="__shared__",
    dynamic_shared="extern __shared__ __align__(16) unsigned char {name}[];",
    aligned="__align__(16)",
    barrier="__syncthreads();",
    shuffle="__shfl_xor_sync({2}, {0}, {1})",
    functions={**_math("f"), "rsqrt": "rsqrtf({0})"},
    double_functions={**_math(""), "rsqrt": "(1.0 / sqrt({0}))"},
    async_copy=(
        'asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"((unsigned int)'
        '__cvta_generic_to_shared({target})), "l"(__cvta_generic_to_global({source})), "r"({condition} ? 16 : 0) '
        ': "memory");'
    ),
    commit_copies='asm volatile("cp.async.commit_group;" : : : "memory");',
    await_copies='asm volatile("cp.async.wait_group {pending};" : : : "memory");',
    load_fragments=(
        'asm volatile("ldmatrix.sync.aligned.m8n8.x{count}{order}.shared.b16 {{{outputs}}}, [%{count}];" : {targets} '
        ': "r"((unsigned int)__cvta_generic_to_shared({address})) : "memory");'
    ),
    multiply_fragments=(
        'asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.{type}.{type}.f32 {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, '
        '{{%8, %9}}, {{%0, %1, %2, %3}};" : "+f"({d0}), "+f"({d1}), "+f"({d2}), "+f"({d3}) '
        ': "r"({a0}), "r"({a1}), "r"({a2}), "r"({a3}), "r"({b0}), "r"({b1}));'
    ),
    orders={False: "", True: ".trans"},
    fragment_types={FLOAT16: "f16", BFLOAT16: "bf16"},
    whole_store="__stwb({0}, {1});",
    vectors={16: "uint4", 8: "uint2", 4: "unsigned int", 2: "unsigned short", 1: "unsigned char"},
)  # fmt: skip
