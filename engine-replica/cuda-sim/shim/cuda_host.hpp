// Stands before the kernels where a C++ compiler makes them for the CPU: one fiber a CUDA thread, see scheduler.cpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define __global__
#define __device__
#define __forceinline__ inline
#define __restrict__ __restrict

struct cuh_dim3 {
  unsigned x, y, z;
};
struct cuh_thread {
  cuh_dim3 tid, bid;
  unsigned lane, warp;
};

// What a kernel may be told to do wrong; names and order are those of planted.def.
enum Planted {
  PLANTED_NOTHING,
#define PLANTED_BUG(name) name,
#include "planted.def"
#undef PLANTED_BUG
};

extern "C" {
extern cuh_thread *cuh_current;
extern cuh_dim3 cuh_block_dim, cuh_grid_dim;
extern int cuh_planted;
void cuh_syncthreads(const char *file, int line);
void cuh_collective(u32 mask, int kind, const void *in, size_t n, void *out /* 32 · n */, const char *file, int line);
void *cuh_shared(const void *key, size_t bytes);
void *cuh_dyn_shared();
void cuh_register(const char *name, void (*call)(void **), const unsigned *sizes, unsigned n);
}

#define threadIdx (cuh_current->tid)
#define blockIdx (cuh_current->bid)
#define blockDim cuh_block_dim
#define gridDim cuh_grid_dim
#define PLANTED(bug) (cuh_planted == bug)
#define SHARED_ARRAY(T, name, n)   \
  static char name##_key;          \
  T *name = static_cast<T *>(cuh_shared(&name##_key, sizeof(T) * (n)))
#define DYN_SHARED(T, name) T *name = static_cast<T *>(cuh_dyn_shared())
#define __syncthreads() cuh_syncthreads(__FILE__, __LINE__)

enum { KIND_SYNCWARP, KIND_SHUFFLE };
template <class T> static inline T cuh_shuffle(u32 mask, T value, unsigned from, const char *file, int line) {
  T all[32];
  cuh_collective(mask, KIND_SHUFFLE, &value, sizeof(T), all, file, line);
  return all[from & 31];
}
#define __shfl_xor_sync(mask, value, other) cuh_shuffle(mask, value, cuh_current->lane ^ (other), __FILE__, __LINE__)

static inline u32 __float_as_uint(float f) {
  u32 u;
  memcpy(&u, &f, 4);
  return u;
}
static inline float __uint_as_float(u32 u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}
// This file is compiled with contraction off, so each of these rounds once, as on the GPU.
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fsqrt_rn(float a) { return sqrtf(a); }
using std::min;

// The launch table: argument types come from the kernel's own signature.
template <class... A, size_t... I> static inline void cuh_unpack(void (*f)(A...), void **p, std::index_sequence<I...>) {
  f(*static_cast<A *>(p[I])...);
}
template <class... A> static inline void cuh_call(void (*f)(A...), void **p) { cuh_unpack(f, p, std::index_sequence_for<A...>{}); }
template <class... A> static inline void cuh_add(const char *name, void (*call)(void **), void (*)(A...)) {
  static const unsigned sizes[] = {sizeof(A)..., 0};
  cuh_register(name, call, sizes, sizeof...(A));
}
#define REGISTER_KERNEL(k) static const int cuh_add_##k = (cuh_add(#k, [](void **p) { cuh_call(k, p); }, k), 0);
