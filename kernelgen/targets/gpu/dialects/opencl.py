"""OpenCL C 1.2, which every vendor's devices run: no registers are exchanged, shared arrays live where the kernel starts.

float16 and bfloat16 are their 16 bits, because half is a type of memory only without ``cl_khr_fp16``; a half is widened by
``vload_half``. A bool is a byte, as no argument of a kernel may be one.
"""

from __future__ import annotations

from kernelgen.nest.nodes import Space
from kernelgen.targets.gpu.dialects.bfloat16 import by_bits, helpers
from kernelgen.targets.gpu.dialects.dialect import Dialect, HalfType, mathematics
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

DEVICE = "static inline"
TYPES = {
    BOOL: "uchar", INT8: "char", INT16: "short", INT32: "int", INT64: "long", UINT8: "uchar", UINT16: "ushort",
    UINT32: "uint", UINT64: "ulong", FLOAT16: "ushort", BFLOAT16: "ushort", FLOAT32: "float", FLOAT64: "double",
}  # fmt: skip
MATHEMATICS = {**mathematics(), "rsqrt": "rsqrt({0})"}
HALF_HELPERS = {
    "float_of_half": f"""\
{DEVICE} float float_of_half(ushort a) {{
  uchar2 bits = as_uchar2(a);
  return vload_half(0, (const __private half*)&bits);
}}""",
    "half_of_float": f"""\
{DEVICE} ushort half_of_float(float a) {{
  uchar2 bits;
  vstore_half_rte(a, 0, (__private half*)&bits);
  return as_ushort(bits);
}}""",
    "half_of_double": f"""\
{DEVICE} ushort half_of_double(double a) {{
  uchar2 bits;
  vstore_half_rte(a, 0, (__private half*)&bits);
  return as_ushort(bits);
}}""",
}
"""Through characters, as a half and an integer in one place are two places to a compiler."""

COPY = "*({to}{vector}*){target} = *({of}const {vector}*){source};"
"""Characters may alias what they like."""

OPENCL = Dialect(
    name="OpenCL C",
    prelude=("#pragma OPENCL FP_CONTRACT OFF",),
    kernel="__kernel __attribute__((reqd_work_group_size({x}, {y}, 1))) void",
    device=DEVICE,
    types=TYPES,
    halves={
        FLOAT16: HalfType("float_of_half({0})", "half_of_float({0})", "half_of_double({0})", "((ushort){0})"),
        BFLOAT16: by_bits(TYPES),
    },
    headers={FLOAT64: "#pragma OPENCL EXTENSION cl_khr_fp64 : enable"},
    helpers={**HALF_HELPERS, **helpers(DEVICE, TYPES, "as_uint({0})", "as_float({0})")},
    indices={"bx": "get_group_id(0)", "tx": "get_local_id(0)", "ty": "get_local_id(1)"},
    constant="__global const {type}* restrict {name}",
    pointer="__global {type}* restrict {name}",
    common="__global {type}* {name}",
    spaces={Space.PRIVATE: "__private ", Space.SHARED: "__local "},
    elsewhere="__global ",
    shared="__local ",
    dynamic_parameter="__local uchar* {name}",
    aligned="__attribute__((aligned(16))) ",
    barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    functions=MATHEMATICS,
    double_functions=MATHEMATICS,
    float_of_bits="as_float({0})",
    double_of_bits="as_double({0})",
    long_suffix="L",
    copy=COPY,
    copy_out=COPY,
    vectors={16: "uchar16", 8: "uchar8", 4: "uchar4", 2: "uchar2", 1: "uchar"},
)
