// The kernels themselves, the one file that sanitizers look into.
#include "cuda_host.hpp"

#include "numeric.cu"
#include "rows.cu"
#include "matmul.cu"
#include "attention.cu"
