"""CUDA C, as NVRTC compiles it."""

from __future__ import annotations

from dataclasses import replace

from kernelgen.targets.gpu.dialects.dialect import Dialect, HalfType, TileInstructions, mathematics
from kernelgen.tensor.dtypes import (
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
)

TILES = TileInstructions(
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
)

FLOATS = {**mathematics("f"), "rsqrt": "rsqrtf({0})"}
"""Functions of floats that C's library and CUDA's have."""

EXTREME = """\
static __device__ __forceinline__ float {name}(float a, float b) {{
#if __CUDA_ARCH__ >= 800
  float c;
  asm("{instruction}.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
#else
  return a != a || a {relation} b ? a : b;
#endif
}}"""
"""The larger or smaller number, or NaN if one is: one instruction in place of four."""

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
        FLOAT16: HalfType(
            "__half2float({0})", "__float2half_rn({0})", "__double2half({0})", "__ushort_as_half({0})",
            {"add": "__hadd_rn({0}, {1})", "sub": "__hsub_rn({0}, {1})", "mul": "__hmul_rn({0}, {1})"},
        ),
        BFLOAT16: HalfType(
            "__bfloat162float({0})", "__float2bfloat16_rn({0})", "__double2bfloat16({0})", "__ushort_as_bfloat16({0})"
        ),
    },
    headers={FLOAT16: "#include <cuda_fp16.h>", BFLOAT16: "#include <cuda_bf16.h>"},
    indices={"bx": "blockIdx.x", "tx": "threadIdx.x", "ty": "threadIdx.y"},
    constant="const {type}* __restrict__ {name}",
    pointer="{type}* __restrict__ {name}",
    common="{type}* {name}",
    spaces={},
    elsewhere="",
    shared="__shared__ ",
    dynamic_shared="extern __shared__ __align__(16) unsigned char {name}[];",
    aligned="__align__(16) ",
    barrier="__syncthreads();",
    shuffle="__shfl_xor_sync({mask}, {value}, {lanes})",
    functions={**FLOATS, "maximum": "larger_of({0}, {1})", "minimum": "smaller_of({0}, {1})"},
    helpers={
        "larger_of": EXTREME.format(name="larger_of", instruction="max", relation=">"),
        "smaller_of": EXTREME.format(name="smaller_of", instruction="min", relation="<"),
    },
    double_functions={**mathematics(), "rsqrt": "(1.0 / sqrt({0}))"},
    float_of_bits="__int_as_float({0})",
    double_of_bits="__longlong_as_double({0})",
    long_suffix="LL",
    vectors={16: "uint4", 8: "uint2", 4: "unsigned int", 2: "unsigned short", 1: "unsigned char"},
    copy="*({vector}*){target} = *(const {vector}*){source};",
    copy_out="__stwb(({vector}*){target}, *(const {vector}*){source});",  # NVRTC takes plain stores apart
    tiles=TILES,
)  # fmt: skip

TURING = replace(
    CUDA,
    tiles=replace(
        TILES,
        multiply_fragments=" ".join(
            'asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.{type}.{type}.f32 {{%0, %1, %2, %3}}, {{%4, %5}}, {{%6}}, '
            '{{%0, %1, %2, %3}};" : "+f"({d0}), "+f"({d1}), "+f"({d2}), "+f"({d3}) '
            f': "r"({{a{first}}}), "r"({{a{first + 1}}}), "r"({{b{first // 2}}}));'
            for first in (0, 2)
        ),
    ),
)
"""The same for devices whose instruction multiplies matrices of 8 terms: the halves of the registers, one after the other."""
