// K and V lie in (layers, blocks, BLOCK_TOKENS, kv_heads, dim); a row's sequence lists its blocks from `blocks[tables[row]]` on.

#define BLOCK_TOKENS 16
#define ATTENTION_THREADS 128

static __device__ __forceinline__ u64 place(const u32 *table, u32 position) {
  return (u64)table[position / BLOCK_TOKENS] * BLOCK_TOKENS + position % BLOCK_TOKENS;
}

// One thread an element of K and of V. `keys` and `values` begin at the layer.
extern "C" __global__ void kv_write(float *keys, float *values, const float *qkv, const u32 *positions, const u32 *tables,
                                    const u32 *blocks, u32 q_width, u32 kv_width, u64 count) {
  const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const u64 row = i / kv_width, element = i % kv_width;
  const float *from = qkv + row * (q_width + 2 * (u64)kv_width) + q_width + element;
  const u64 to = place(blocks + tables[row], positions[row]) * kv_width + element;
  keys[to] = from[0];
  values[to] = from[kv_width];
}
REGISTER_KERNEL(kv_write)

static __device__ __forceinline__ float score(const float *query, const float *key, u32 dim, float scale) {
  float sum = 0.0f;
  for (u32 d = 0; d < dim; d++) sum = __fmaf_rn(query[d], key[d], sum);
  return __fmul_rn(sum, scale);
}

// One block a row and head. The scores are worked out twice, for the largest and for the weights, so that no length needs room for
// them; sums run over positions in ascending order, so that neither the cut into chunks nor the other rows can change a bit.
//
// grid: (rows, heads); block: ATTENTION_THREADS; dynamic shared memory: 2 · dim floats
extern "C" __global__ void attention(float *out, const float *qkv, const float *keys, const float *values, const u32 *positions,
                                     const u32 *tables, const u32 *blocks, u32 heads, u32 kv_heads, u32 dim, float scale) {
  DYN_SHARED(float, query);
  SHARED_ARRAY(float, weights, ATTENTION_THREADS);
  SHARED_ARRAY(float, warp_highest, ATTENTION_THREADS / 32);
  SHARED_ARRAY(float, lanes, LANES);
  float *sums = query + dim;
  const u32 row = blockIdx.x, head = blockIdx.y, thread = threadIdx.x;
  const u64 width = (u64)(heads + 2 * kv_heads) * dim, kv_width = (u64)kv_heads * dim;
  const u32 *table = blocks + tables[row];
  const u32 count = positions[row] + (PLANTED(ATTENTION_PAST_POSITION) ? 2 : 1);
  keys += (u64)(head / (heads / kv_heads)) * dim;
  values += (u64)(head / (heads / kv_heads)) * dim;
  for (u32 d = thread; d < dim; d += ATTENTION_THREADS) {
    query[d] = qkv[row * width + (u64)head * dim + d];
    sums[d] = 0.0f;
  }
  __syncthreads();

  float highest = -INFINITY;
  for (u32 t = thread; t < count; t += ATTENTION_THREADS)
    highest = greater(score(query, keys + place(table, t) * kv_width, dim, scale), highest);
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) highest = greater(__shfl_xor_sync(0xffffffffu, highest, offset), highest);
  if ((thread & 31) == 0) warp_highest[thread >> 5] = highest;
  if (!PLANTED(ATTENTION_NO_SYNC_HIGHEST)) __syncthreads();
#pragma unroll
  for (int i = 0; i < ATTENTION_THREADS / 32; i++) highest = greater(warp_highest[i], highest);

  float lane_sum = 0.0f;
  for (u32 base = 0; base < count; base += ATTENTION_THREADS) {
    const u32 here = min(count - base, (u32)ATTENTION_THREADS);
    if (thread < here)
      weights[thread] = contract_exp(__fsub_rn(score(query, keys + place(table, base + thread) * kv_width, dim, scale), highest));
    if (!PLANTED(ATTENTION_NO_SYNC_WEIGHTS)) __syncthreads();
    if (thread < LANES)
      for (u32 i = thread; i < here; i += LANES) lane_sum = __fadd_rn(lane_sum, weights[i]);
    for (u32 d = thread; d < dim; d += ATTENTION_THREADS) {
      float sum = sums[d];
      for (u32 i = 0; i < here; i++) sum = __fmaf_rn(weights[i], values[place(table, base + i) * kv_width + d], sum);
      sums[d] = sum;
    }
    if (!PLANTED(ATTENTION_NO_SYNC_LOOP)) __syncthreads();
  }
  if (thread < LANES) lanes[thread] = lane_sum;
  __syncthreads();
  const float sum = fold_lanes(lanes);
  for (u32 d = thread; d < dim; d += ATTENTION_THREADS) out[row * (u64)heads * dim + (u64)head * dim + d] = __fdiv_rn(sums[d], sum);
}
REGISTER_KERNEL(attention)
