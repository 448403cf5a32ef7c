// out (rows, outs) = x (rows, cols) · wᵀ: each output is one chain of fused multiply-adds in ascending k, whatever the number of rows.
//
// A block makes 16 rows of 32 outputs; lanes are outputs, so a weight that is read serves all rows of the block.

#define TILE_OUTS 32
#define TILE_ROWS 16
#define TILE_K 32
// One column more than the tile has, so that lanes read different banks.
#define TILE_PITCH 33
#define WARPS 4

// grid: (outs / 32, rows / 16), both rounded up; block: 32 · WARPS
template <class W>
static __device__ __forceinline__ void matmul(float *out, const float *x, const u8 *weight, u32 rows, u32 cols, u32 outs, u32 width,
                                              u32 first) {
  SHARED_ARRAY(float, w_tile, TILE_OUTS *TILE_PITCH);
  SHARED_ARRAY(float, x_tile, TILE_ROWS *TILE_K);
  const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const u32 out0 = blockIdx.x * TILE_OUTS, row0 = blockIdx.y * TILE_ROWS;
  const u32 outs_here = min(outs - out0, (u32)TILE_OUTS), rows_here = min(rows - row0, (u32)TILE_ROWS);
  float sums[TILE_ROWS / WARPS];
#pragma unroll
  for (int i = 0; i < TILE_ROWS / WARPS; i++) sums[i] = 0.0f;
  for (u32 k0 = 0; k0 < cols; k0 += TILE_K) {
    const u32 ks = PLANTED(MATMUL_PAST_K) ? (u32)TILE_K : min(cols - k0, (u32)TILE_K);
    if (lane < ks) {
      for (u32 n = warp; n < outs_here; n += WARPS) w_tile[n * TILE_PITCH + lane] = W::at(weight, out0 + n, k0 + lane, cols);
      for (u32 r = warp; r < rows_here; r += WARPS) x_tile[r * TILE_K + lane] = x[(u64)(row0 + r) * cols + k0 + lane];
    }
    if (!PLANTED(MATMUL_NO_SYNC)) __syncthreads();
    if (lane < outs_here) {
#pragma unroll
      for (u32 i = 0; i < TILE_ROWS / WARPS; i++) {
        const u32 r = warp + i * WARPS;
        if (r < rows_here)
          for (u32 k = 0; k < ks; k++) sums[i] = __fmaf_rn(w_tile[lane * TILE_PITCH + k], x_tile[r * TILE_K + k], sums[i]);
      }
    }
    if (!PLANTED(MATMUL_NO_SYNC_LOOP)) __syncthreads();
  }
#pragma unroll
  for (u32 i = 0; i < TILE_ROWS / WARPS; i++) {
    const u32 r = warp + i * WARPS;
    if (r < rows_here && lane < outs_here) out[(u64)(row0 + r) * width + first + out0 + lane] = sums[i];
  }
}
// A part of a weight: its outputs go to columns `first` and on of rows of `width`.
#define MATMUL(name, W)                                                                                                        \
  extern "C" __global__ void name(float *out, const float *x, const u8 *weight, u32 rows, u32 cols, u32 outs, u32 width,      \
                                  u32 first) {                                                                                \
    matmul<W>(out, x, weight, rows, cols, outs, width, first);                                                                \
  }                                                                                                                           \
  REGISTER_KERNEL(name)
MATMUL(matmul_f32, F32)
MATMUL(matmul_f16, F16)
MATMUL(matmul_bf16, Bf16)
MATMUL(matmul_q8_0, Q8_0)
MATMUL(matmul_q4_0, Q4_0)
MATMUL(matmul_q4_1, Q4_1)
