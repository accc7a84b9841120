"""What lets NVRTC compile HIP text: its names, said in CUDA C, so that the PTX interpreter can run it."""

from __future__ import annotations

PRELUDE = """\
#define __HIPCC_RTC__
#include <cuda_fp16.h>
#define _Float16 __half
#define __builtin_bit_cast(type, bits) __ushort_as_half(bits)
#define __builtin_assume_aligned(pointer, bytes) (pointer)
#define __builtin_memcpy(target, source, bytes) *(Bytes<bytes>*)(target) = *(const Bytes<bytes>*)(source)
template <int N> struct __align__(N) Bytes { unsigned char of[N]; };
template <typename T> static __device__ __forceinline__ T __shfl_xor(T value, int lanes, int width) {
  const unsigned int row = (threadIdx.x + threadIdx.y * blockDim.x) % 32 / width;
  const unsigned int mask = width == 32 ? 0xffffffffu : ((1u << width) - 1) << row * width;
  return __shfl_xor_sync(mask, value, lanes, width);
}
"""


def as_cuda(text: str) -> str:
    """HIP text as text that NVRTC compiles."""
    return PRELUDE + text
