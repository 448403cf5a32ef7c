// A libcuda.so for tests: device memory is host memory, launches run the kernels on the CPU. It has what the backend calls and
// nothing else, so that a call beyond the list in `driver.rs` fails a test.
//
// CUDA_SIM_DEVICES: how many GPUs there are (1). CUDA_SIM_DRIVER: the driver's version (13000). CUDA_SIM_SEED, CUDA_SIM_ORDER: how
// threads run, see scheduler.h. CUDA_SIM_PLANT: a planted bug.
#include "scheduler.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#define API extern "C" __attribute__((visibility("default"))) int
typedef unsigned long long device_ptr;
enum { OK = 0, INVALID = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_IMAGE = 200, NOT_FOUND = 500, LAUNCH_FAILED = 719 };

static std::mutex lock;
static std::map<device_ptr, size_t> memory;
static thread_local void *context;
static int the_context;
static bool failed; // as on a GPU, nothing works after a kernel has failed

static u64 setting(const char *name, u64 otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, nullptr, 10) : otherwise;
}
static int devices() { return (int)setting("CUDA_SIM_DEVICES", 1); }
static bool inside(device_ptr p, size_t n) {
  std::lock_guard<std::mutex> guard(lock);
  auto i = memory.upper_bound(p);
  if (i == memory.begin()) return false;
  --i;
  return p + n <= i->first + i->second;
}

API cuInit(unsigned) { return devices() ? OK : NO_DEVICE; }
API cuDriverGetVersion(int *version) { return *version = (int)setting("CUDA_SIM_DRIVER", 13000), OK; }
API cuDeviceGetCount(int *n) { return *n = devices(), OK; }
API cuDeviceGet(int *device, int i) { return *device = i, i < devices() ? OK : INVALID_DEVICE; }
API cuDeviceGetName(char *name, int n, int) { return snprintf(name, n, "simulated GPU"), OK; }
API cuDeviceGetAttribute(int *value, int attribute, int) {
  switch (attribute) {
  case 75: *value = 9; break;  // compute capability, major
  case 76: *value = 0; break;  // and minor
  case 115: *value = 1; break; // memory pools
  default: *value = 0;
  }
  return OK;
}
API cuDevicePrimaryCtxRetain(void **c, int) { return *c = &the_context, OK; }
API cuDevicePrimaryCtxRelease_v2(int) { return OK; }
API cuCtxSetCurrent(void *c) { return context = c, OK; }
API cuCtxGetCurrent(void **c) { return *c = context, OK; }
API cuStreamSynchronize(void *) { return failed ? LAUNCH_FAILED : OK; }
API cuMemAllocAsync(device_ptr *p, size_t n, void *) {
  void *m = nullptr;
  if (n == 0) return INVALID;
  if (n > (size_t)16 << 30 || posix_memalign(&m, 256, n)) return OUT_OF_MEMORY;
  memset(m, 0xff, n);
  *p = (device_ptr)m;
  std::lock_guard<std::mutex> guard(lock);
  memory[*p] = n;
  return OK;
}
API cuMemAlloc_v2(device_ptr *p, size_t n) { return cuMemAllocAsync(p, n, nullptr); }
API cuMemFreeAsync(device_ptr p, void *) {
  {
    std::lock_guard<std::mutex> guard(lock);
    if (!memory.erase(p)) return INVALID;
  }
  free((void *)p);
  return OK;
}
API cuMemFree_v2(device_ptr p) { return cuMemFreeAsync(p, nullptr); }
API cuMemcpyHtoDAsync_v2(device_ptr to, const void *from, size_t n, void *) {
  if (!inside(to, n)) return INVALID;
  memcpy((void *)to, from, n);
  return OK;
}
API cuMemcpyDtoHAsync_v2(void *to, device_ptr from, size_t n, void *) {
  if (failed) return LAUNCH_FAILED;
  if (!inside(from, n)) return INVALID;
  memcpy(to, (void *)from, n);
  return OK;
}
API cuModuleLoadData(void **module, const void *image) {
  static int the_module;
  *module = &the_module;
  return memcmp(image, "simulated cubin", 15) ? INVALID_IMAGE : OK;
}
API cuModuleUnload(void *) { return OK; }
API cuModuleGetFunction(void **function, void *, const char *name) {
  if (!cuh_find(name)) return NOT_FOUND;
  *function = new std::string(name); // a few per process
  return OK;
}
API cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared_bytes,
                   void *, void **params, void **) {
  const char *bug = getenv("CUDA_SIM_PLANT");
  if (!cuh_plant(bug ? bug : "")) {
    fprintf(stderr, "cuda-sim: no planted bug is named %s\n", bug);
    abort();
  }
  static u64 launches;
  const u64 seed = setting("CUDA_SIM_SEED", 1);
  // The seed's lowest bit says whether warps run ahead; the rest differs from launch to launch.
  std::string error = cuh_launch(((std::string *)function)->c_str(), {gx, gy, gz}, {bx, by, bz}, shared_bytes, params,
                                 seed + 2 * ++launches * 1000003, (int)setting("CUDA_SIM_ORDER", ORDER_RANDOM));
  if (error.empty()) return OK;
  fprintf(stderr, "cuda-sim: %s\n", error.c_str());
  failed = true;
  return OK; // a kernel's failure is told at the next call that waits for it
}
API cuGetErrorName(int e, const char **name) {
  switch (e) {
  case INVALID: *name = "CUDA_ERROR_INVALID_VALUE"; break;
  case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
  case NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; break;
  case INVALID_IMAGE: *name = "CUDA_ERROR_INVALID_IMAGE"; break;
  case NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; break;
  case LAUNCH_FAILED: *name = "CUDA_ERROR_LAUNCH_FAILED"; break;
  default: *name = "CUDA_ERROR_UNKNOWN";
  }
  return OK;
}
API cuGetErrorString(int e, const char **text) { return cuGetErrorName(e, text); }
