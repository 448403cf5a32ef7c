// The roundings of `backend::numeric`, in the same order. Every sum and product names its rounding, so that no compiler fuses two of
// them into one.

#define LANES 16

static __device__ __forceinline__ float greater(float a, float b) { return a > b ? a : b; }
static __device__ __forceinline__ float lesser(float a, float b) { return a < b ? a : b; }

static __device__ __forceinline__ float contract_exp(float x) {
  const float round_magic = 12582912.0f;
  x = lesser(88.0f, greater(-87.3f, x));
  const float rounded = __fmaf_rn(x, 1.44269504088896340736f, round_magic);
  const float n = __fsub_rn(rounded, round_magic);
  const float r = __fmaf_rn(n, 2.1219444e-4f, __fmaf_rn(n, -0.6933594f, x));
  float value = 1.0f / 5040.0f;
  value = __fmaf_rn(value, r, 1.0f / 720.0f);
  value = __fmaf_rn(value, r, 1.0f / 120.0f);
  value = __fmaf_rn(value, r, 1.0f / 24.0f);
  value = __fmaf_rn(value, r, 1.0f / 6.0f);
  value = __fmaf_rn(value, r, 0.5f);
  value = __fmaf_rn(value, r, 1.0f);
  value = __fmaf_rn(value, r, 1.0f);
  return __fmul_rn(value, __uint_as_float((__float_as_uint(rounded) << 23) + 0x3f800000u));
}

static __device__ __forceinline__ float silu(float x) { return __fdiv_rn(x, __fadd_rn(1.0f, contract_exp(-x))); }

// 8 + 8, 4 + 4, 2 + 2, 1 + 1.
static __device__ __forceinline__ float fold_lanes(const float *lanes) {
  float sums[LANES / 2];
#pragma unroll
  for (int i = 0; i < LANES / 2; i++) sums[i] = __fadd_rn(lanes[i], lanes[i + LANES / 2]);
#pragma unroll
  for (int half = LANES / 4; half > 0; half /= 2) {
#pragma unroll
    for (int i = 0; i < half; i++) sums[i] = __fadd_rn(sums[i], sums[i + half]);
  }
  return sums[0];
}

// A 2-byte IEEE float, exactly.
static __device__ __forceinline__ float half_to_float(u16 bits) {
  const u32 sign = (u32)(bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, fraction = bits & 0x3ffu;
  if (exponent == 0) {
    const float small = __fmul_rn((float)fraction, 5.9604644775390625e-8f);
    return __uint_as_float(sign | __float_as_uint(small));
  }
  const u32 widened = exponent == 31 ? 255u : exponent + 112u;
  return __uint_as_float(sign | widened << 23 | fraction << 13);
}

// How a weight's numbers are stored, as `loader::tensor::DType` says. Blocks hold 32 numbers; all lie on even addresses.
struct F32 {
  static __device__ __forceinline__ float at(const u8 *data, u64 row, u32 k, u32 cols) {
    return reinterpret_cast<const float *>(data)[row * cols + k];
  }
};
struct F16 {
  static __device__ __forceinline__ float at(const u8 *data, u64 row, u32 k, u32 cols) {
    return half_to_float(reinterpret_cast<const u16 *>(data)[row * cols + k]);
  }
};
struct Bf16 {
  static __device__ __forceinline__ float at(const u8 *data, u64 row, u32 k, u32 cols) {
    return __uint_as_float((u32) reinterpret_cast<const u16 *>(data)[row * cols + k] << 16);
  }
};
static __device__ __forceinline__ float half_at(const u8 *at) { return half_to_float(*reinterpret_cast<const u16 *>(at)); }
// Element `i` of a block's nibbles: the low ones first.
static __device__ __forceinline__ float nibble(const u8 *nibbles, u32 i) {
  return (float)(i < 16 ? nibbles[i] & 15u : nibbles[i - 16] >> 4);
}
struct Q8_0 {
  static __device__ __forceinline__ float at(const u8 *data, u64 row, u32 k, u32 cols) {
    const u8 *block = data + (row * (cols / 32) + k / 32) * 34;
    return __fmul_rn(half_at(block), (float)(signed char)block[2 + k % 32]);
  }
};
struct Q4_0 {
  static __device__ __forceinline__ float at(const u8 *data, u64 row, u32 k, u32 cols) {
    const u8 *block = data + (row * (cols / 32) + k / 32) * 18;
    return __fmul_rn(half_at(block), __fsub_rn(nibble(block + 2, k % 32), 8.0f));
  }
};
struct Q4_1 {
  static __device__ __forceinline__ float at(const u8 *data, u64 row, u32 k, u32 cols) {
    const u8 *block = data + (row * (cols / 32) + k / 32) * 20;
    return __fadd_rn(__fmul_rn(half_at(block), nibble(block + 4, k % 32)), half_at(block + 2));
  }
};
