"""HIP C++, for hipcc and hiprtc: AMD's devices, with wavefronts of 32 or 64.

Groups of 32 lanes exchange registers, which is within a wavefront of either size. float16 is the compiler's own type;
products go to the vector units, as matrix cores differ from one family of devices to the next.
"""

from __future__ import annotations

from kernelgen.targets.gpu.dialects.bfloat16 import by_bits, helpers
from kernelgen.targets.gpu.dialects.cuda import CUDA, FLOATS
from kernelgen.targets.gpu.dialects.dialect import Dialect, HalfType
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16

TYPES = {**CUDA.types, FLOAT16: "_Float16", BFLOAT16: "unsigned short"}

COPY = "__builtin_memcpy(__builtin_assume_aligned({target}, {bytes}), __builtin_assume_aligned({source}, {bytes}), {bytes});"
"""An access by another type than the array's would let the compiler move it past the array's own accesses."""

HIP = Dialect(
    name="HIP C++",
    prelude=(
        "#ifndef __HIPCC_RTC__",
        "#include <hip/hip_runtime.h>",
        "#endif",
        "#pragma clang fp contract(off)",
    ),
    kernel=CUDA.kernel,
    device=CUDA.device,
    types=TYPES,
    halves={
        FLOAT16: HalfType(
            "(float){0}", "(_Float16)({0})", "(_Float16)({0})", "__builtin_bit_cast(_Float16, (unsigned short){0})"
        ),
        BFLOAT16: by_bits(TYPES),
    },
    headers={},
    helpers=helpers(CUDA.device, TYPES, "__float_as_uint({0})", "__uint_as_float({0})"),
    indices=CUDA.indices,
    constant=CUDA.constant,
    pointer=CUDA.pointer,
    common=CUDA.common,
    spaces={},
    elsewhere="",
    shared=CUDA.shared,
    dynamic_shared="extern __shared__ __attribute__((aligned(16))) unsigned char {name}[];",
    aligned="__attribute__((aligned(16))) ",
    barrier=CUDA.barrier,
    shuffle="__shfl_xor({value}, {lanes}, {width})",
    functions=FLOATS,
    double_functions=CUDA.double_functions,
    float_of_bits=CUDA.float_of_bits,
    double_of_bits=CUDA.double_of_bits,
    long_suffix=CUDA.long_suffix,
    copy=COPY,
    copy_out=COPY,
    vectors=CUDA.vectors,
)
