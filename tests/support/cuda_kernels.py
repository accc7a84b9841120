"""Hand-written CUDA kernels of the kinds that a code generator prints; each is right, the fault tests break them."""

from __future__ import annotations

ADD = """
extern "C" __global__ void add(const float* x, const float* y, float* z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
"""

ADD_FLOAT4 = """
extern "C" __global__ void add4(const float4* __restrict__ x, float4* __restrict__ y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = x[i];
  y[i] = make_float4(v.x + a, v.y + a, v.z + a, v.w + a);
}
"""

GRID_STRIDE = """
extern "C" __global__ void scale(const float* x, float* y, float a, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i];
}
"""

ROW_SUM = """
extern "C" __global__ void row_sum(const float* __restrict__ x, float* __restrict__ y, int n) {
  __shared__ float part[8];
  float sum = 0.f;
  for (int i = threadIdx.x; i < n; i += 256) sum += x[blockIdx.x * n + i];
  for (int o = 16; o; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < 8 ? part[threadIdx.x] : 0.f;
    for (int o = 4; o; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
  }
}
"""

TREE_SUM = """
extern "C" __global__ void tree_sum(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float part[128];
  int t = threadIdx.x;
  part[t] = x[blockIdx.x * 128 + t];
  __syncthreads();
  for (int o = 64; o; o >>= 1) {
    if (t < o) part[t] += part[t + o];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = part[0];
}
"""

COLUMN_SUM = """
extern "C" __global__ void column_sum(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  __shared__ float part[8][33];
  int c = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.f;
  if (c < columns) for (int r = threadIdx.y; r < rows; r += 8) sum += x[r * columns + c];
  part[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && c < columns) {
    for (int r = 1; r < 8; ++r) sum += part[r][threadIdx.x];
    y[c] = sum;
  }
}
"""

SOFTMAX = """
__device__ __forceinline__ float most(float v, float* part) {
  for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = part[threadIdx.x % 4];
  for (int o = 2; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
  __syncthreads();
  return v;
}
__device__ __forceinline__ float total(float v, float* part) {
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = part[threadIdx.x % 4];
  for (int o = 2; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}
extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ y, int n) {
  __shared__ float part[4];
  float row[4], peak = -INFINITY, sum = 0.f;
  #pragma unroll
  for (int k = 0; k < 4; ++k) {
    int i = threadIdx.x + k * 128;
    row[k] = i < n ? x[blockIdx.x * n + i] : -INFINITY;
    peak = fmaxf(peak, row[k]);
  }
  peak = most(peak, part);
  #pragma unroll
  for (int k = 0; k < 4; ++k) { row[k] = expf(row[k] - peak); sum += row[k]; }
  sum = total(sum, part);
  #pragma unroll
  for (int k = 0; k < 4; ++k) {
    int i = threadIdx.x + k * 128;
    if (i < n) y[blockIdx.x * n + i] = row[k] / sum;
  }
}
""".replace("-INFINITY", "__int_as_float(0xff800000)")

TRANSPOSE = """
extern "C" __global__ void transpose(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  __shared__ float tile[32][33];
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (r + k < rows && c < columns) tile[threadIdx.y + k][threadIdx.x] = x[(r + k) * columns + c];
  __syncthreads();
  c = blockIdx.y * 32 + threadIdx.x, r = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (r + k < columns && c < rows) y[(r + k) * rows + c] = tile[threadIdx.x][threadIdx.y + k];
}
"""

HISTOGRAM = """
extern "C" __global__ void histogram(const int* __restrict__ x, int* __restrict__ counts, float* total, int n) {
  __shared__ int mine[16];
  if (threadIdx.x < 16) mine[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { atomicAdd(&mine[x[i]], 1); atomicAdd(total, 0.5f); }
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}
"""

HALVES = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void halves(const __half2* x, __half2* y, const __nv_bfloat16* b, __nv_bfloat16* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = __hfma2(x[i], x[i], __float2half2_rn(0.25f));
  c[i] = b[i] * __float2bfloat16(1.5f) + b[i];
}
"""

MATMUL = """
// one warp: D (16 x 8, f32) = A (16 x 16, f16, row major) * B (16 x 8, f16, column major) + C
extern "C" __global__ void matmul(const unsigned* a, const unsigned* b, const float* c, float* d) {
  int group = threadIdx.x / 4, member = threadIdx.x % 4;
  unsigned a0 = a[group * 8 + member], a1 = a[(group + 8) * 8 + member];
  unsigned a2 = a[group * 8 + member + 4], a3 = a[(group + 8) * 8 + member + 4];
  unsigned b0 = b[group * 8 + member], b1 = b[group * 8 + member + 4];
  const float* row = c + group * 8 + 2 * member;
  float d0 = row[0], d1 = row[1], d2 = row[64], d3 = row[65];
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
    : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  float* out = d + group * 8 + 2 * member;
  out[0] = d0; out[1] = d1; out[64] = d2; out[65] = d3;
}
"""

STAGED_MATMUL = """
// the same through shared memory: cp.async brings the tiles, ldmatrix reads them
extern "C" __global__ void staged(const uint4* a, const uint4* b, float* d) {
  __shared__ __align__(16) unsigned short tile_a[16 * 16], tile_b[8 * 16];
  unsigned to_a = (unsigned)__cvta_generic_to_shared(tile_a), to_b = (unsigned)__cvta_generic_to_shared(tile_b);
  int lane = threadIdx.x;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to_a + lane * 16), "l"(a + lane));
  if (lane < 16) asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(to_b + lane * 16), "l"(b + lane));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group 0;");
  __syncthreads();
  unsigned a0, a1, a2, a3, b0, b1;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
    : "=r"(a0), "=r"(a1), "=r"(a2), "=r"(a3) : "r"(to_a + (lane % 16) * 32 + (lane / 16) * 16));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
    : "=r"(b0), "=r"(b1) : "r"(to_b + (lane % 8) * 32 + (lane / 8 % 2) * 16));
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
    : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  float* out = d + lane / 4 * 8 + lane % 4 * 2;
  out[0] = d0; out[1] = d1; out[64] = d2; out[65] = d3;
}
"""

WARP_ROWS = """
// neighbours exchange through shared memory within a warp: ordered by __syncwarp alone
extern "C" __global__ void reverse(const int* x, int* y) {
  __shared__ int line[64];
  int t = threadIdx.x;
  line[t] = x[t];
  __syncwarp();
  y[t] = line[t ^ 31];
}
"""

PARTIAL_SUMS = """
extern "C" __global__ void partial(const float* x, float* total) {
  float v = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  if (threadIdx.x % 32 == 0) atomicAdd(total, v);
}
"""

LAST_BLOCK = """
// a split reduction in one launch: the block that comes last adds the parts, in a fixed order
extern "C" __global__ void last_block(const float* x, float* parts, unsigned* ticket, float* total) {
  __shared__ float line[128];
  __shared__ bool last;
  int t = threadIdx.x;
  line[t] = x[blockIdx.x * 128 + t];
  __syncthreads();
  if (t == 0) {
    float sum = 0;
    for (int k = 0; k < 128; ++k) sum += line[k];
    parts[blockIdx.x] = sum;
    __threadfence();
    last = atomicAdd(ticket, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && t == 0) {
    float sum = 0;
    for (int k = 0; k < gridDim.x; ++k) sum += ((volatile float*)parts)[k];
    *total = sum;
    atomicExch(ticket, 0u);
  }
}
"""

LOCAL_TABLE = """
extern "C" __global__ void table(const int* x, int* y) {
  int t = threadIdx.x, kept[8];
  for (int k = 0; k < 8; ++k) kept[x[k] & 7] = t * k;
  y[t] = kept[x[t & 7] & 7];
}
"""
