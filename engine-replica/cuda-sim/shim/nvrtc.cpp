// A libnvrtc.so for tests: takes the kernels' source without compiling it, and gives an image that the stand-in driver knows.
//
// CUDA_SIM_NVRTC_ERROR: what a program fails to compile with.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#define API extern "C" __attribute__((visibility("default")))
static const char IMAGE[] = "simulated cubin";
struct Program {
  std::string log;
};

API int nvrtcVersion(int *major, int *minor) { return *major = 13, *minor = 0, 0; }
API const char *nvrtcGetErrorString(int) { return "NVRTC_ERROR_COMPILATION"; }
API int nvrtcCreateProgram(void **p, const char *, const char *, int, const char *const *, const char *const *) { return *p = new Program, 0; }
API int nvrtcCompileProgram(void *p, int, const char *const *) {
  fprintf(stderr, "cuda-sim: compiled\n");
  const char *error = getenv("CUDA_SIM_NVRTC_ERROR");
  if (error) ((Program *)p)->log = error;
  return error ? 6 : 0;
}
API int nvrtcGetProgramLogSize(void *p, size_t *n) { return *n = ((Program *)p)->log.size() + 1, 0; }
API int nvrtcGetProgramLog(void *p, char *log) { return strcpy(log, ((Program *)p)->log.c_str()), 0; }
API int nvrtcGetCUBINSize(void *, size_t *n) { return *n = sizeof IMAGE, 0; }
API int nvrtcGetCUBIN(void *, char *image) { return memcpy(image, IMAGE, sizeof IMAGE), 0; }
API int nvrtcDestroyProgram(void **p) { return delete (Program *)*p, *p = nullptr, 0; }
