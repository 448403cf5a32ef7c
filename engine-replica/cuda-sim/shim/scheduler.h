// Between the stand-in driver and the scheduler.
#pragma once
#include <string>
#include <vector>
typedef unsigned int u32;
typedef unsigned long long u64;
struct cuh_dim3 {
  unsigned x, y, z;
};
struct cuh_thread {
  cuh_dim3 tid, bid;
  unsigned lane, warp;
};
// Which thread runs next: at random by the seed, in order, or in reverse.
enum Order { ORDER_RANDOM, ORDER_FORWARD, ORDER_REVERSE };
// Runs a kernel to its end; gives what went wrong, or nothing.
std::string cuh_launch(const char *name, cuh_dim3 grid, cuh_dim3 block, unsigned shared_bytes, void **params, u64 seed, int order);
// Argument sizes of a kernel, if it is there.
const std::vector<unsigned> *cuh_find(const char *name);
// Switches a planted bug on; false where there is none of this name.
bool cuh_plant(const char *name);
