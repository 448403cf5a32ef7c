// A libcuda.so of some old driver: it loads, and lacks most functions.
extern "C" __attribute__((visibility("default"))) int cuInit(unsigned) { return 0; }
