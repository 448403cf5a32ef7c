// Stands before the kernels where NVRTC compiles them. On the CPU cuda-sim's own prelude stands here instead; both define the same words.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// NVRTC has no math.h.
#define INFINITY __int_as_float(0x7f800000)

// Shared memory goes through these, so that the simulator can give each block its own, with poison in it and red zones around it.
#define SHARED_ARRAY(T, name, n) __shared__ T name[n]
#define DYN_SHARED(T, name)                                  \
  extern __shared__ __align__(16) unsigned char dyn_shared[]; \
  T *name = reinterpret_cast<T *>(dyn_shared)

// Tells the simulator a kernel's name and arguments.
#define REGISTER_KERNEL(kernel)

// Whether a bug is switched on, by which the simulator shows that it would find it. Never on a GPU.
#define PLANTED(bug) false
