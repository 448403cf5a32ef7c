// Operations on rows of activations. Those without sums take one thread an element.

static __device__ __forceinline__ u64 element() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }

// A block's share of a row or head: out = x · (1 / sqrt(mean(x²) + eps)) · weight, all of n elements; `out` may be `x`.
static __device__ __forceinline__ void norm(float *out, const float *x, const float *weight, u32 n, float eps) {
  SHARED_ARRAY(float, lanes, LANES);
  if (threadIdx.x < LANES) {
    float sum = 0.0f;
    for (u32 i = threadIdx.x; i < n; i += LANES) sum = __fmaf_rn(x[i], x[i], sum);
    lanes[threadIdx.x] = sum;
  }
  if (!PLANTED(NORM_NO_SYNC)) __syncthreads();
  const float mean = __fdiv_rn(fold_lanes(lanes), (float)n);
  const float scale = __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(mean, eps)));
  const u32 end = PLANTED(NORM_PAST_END) ? n + 1 : n;
  for (u32 i = threadIdx.x; i < end; i += blockDim.x) out[i] = __fmul_rn(__fmul_rn(x[i], scale), weight[i]);
}

// grid: rows
extern "C" __global__ void rms_norm(float *out, const float *x, const float *weight, u32 n, float eps) {
  norm(out + (u64)blockIdx.x * n, x + (u64)blockIdx.x * n, weight, n, eps);
}
REGISTER_KERNEL(rms_norm)

// grid: (rows, heads + kv_heads)
extern "C" __global__ void qk_norm(float *qkv, const float *q_weight, const float *k_weight, u32 heads, u32 dim, u32 width, float eps) {
  float *head = qkv + (u64)blockIdx.x * width + (u64)blockIdx.y * dim;
  norm(head, head, blockIdx.y < heads ? q_weight : k_weight, dim, eps);
}
REGISTER_KERNEL(qk_norm)

extern "C" __global__ void add(float *x, const float *y, u64 count) {
  const u64 i = element();
  if (i < count) x[i] = __fadd_rn(x[i], y[i]);
}
REGISTER_KERNEL(add)

// gate_up: (rows, 2n)
extern "C" __global__ void silu_mul(float *out, const float *gate_up, u32 n, u64 count) {
  const u64 i = element();
  if (i >= count) return;
  const float *row = gate_up + i / n * 2 * n;
  out[i] = __fmul_rn(silu(row[i % n]), row[n + i % n]);
}
REGISTER_KERNEL(silu_mul)

// One thread a pair. `turned` is the number of heads that are turned; pairs lie `half` apart, or side by side.
extern "C" __global__ void rope(float *qkv, const u32 *positions, const float *cosines, const float *sines, u32 turned, u32 dim,
                                u32 width, u32 side_by_side, u64 count) {
  const u64 i = element();
  if (i >= count) return;
  const u32 half = dim / 2, pair = (u32)(i % half), head = (u32)(i / half % turned);
  const u64 row = i / half / turned;
  float *at = qkv + row * width + (u64)head * dim;
  const u32 first = side_by_side ? 2 * pair : pair, second = side_by_side ? 2 * pair + 1 : pair + half;
  const u64 turn = (u64)positions[row] * half + pair;
  const float c = cosines[turn], s = sines[turn], a = at[first], b = at[second];
  at[first] = __fsub_rn(__fmul_rn(a, c), __fmul_rn(b, s));
  at[second] = __fadd_rn(__fmul_rn(b, c), __fmul_rn(a, s));
}
REGISTER_KERNEL(rope)

// out (rows of `from`, n) = those rows of x
extern "C" __global__ void gather(float *out, const float *x, const u32 *from, u32 n, u64 count) {
  const u64 i = element();
  if (i < count) out[i] = x[(u64)from[i / n] * n + i % n];
}
REGISTER_KERNEL(gather)

// Rows of a part of the table, those that lie in it: the part holds rows `first` to `first + rows`.
template <class W>
static __device__ __forceinline__ void embed(float *out, const u8 *table, const u32 *tokens, u32 first, u32 rows, u32 cols, u64 count) {
  const u64 i = element();
  if (i >= count) return;
  const u32 token = tokens[i / cols];
  if (token >= first && token - first < rows) out[i] = W::at(table, token - first, (u32)(i % cols), cols);
}
#define EMBED(name, W)                                                                                                              \
  extern "C" __global__ void name(float *out, const u8 *table, const u32 *tokens, u32 first, u32 rows, u32 cols, u64 count) {       \
    embed<W>(out, table, tokens, first, rows, cols, count);                                                                         \
  }                                                                                                                                 \
  REGISTER_KERNEL(name)
EMBED(embed_f32, F32)
EMBED(embed_f16, F16)
EMBED(embed_bf16, Bf16)
EMBED(embed_q8_0, Q8_0)
EMBED(embed_q4_0, Q4_0)
EMBED(embed_q4_1, Q4_1)
