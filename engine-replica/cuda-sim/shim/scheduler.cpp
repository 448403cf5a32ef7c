// Runs a kernel's threads as fibers, one at a time, switching where they synchronise. Compiled without sanitizers; it tells them of
// each fiber where they are loaded. Under TSan a fiber counts as a thread and only barriers order memory, so that a race is seen
// whatever the order of running was. Fibers call nothing that a sanitizer intercepts: they leave a request and switch to the
// scheduler, which does the work.
#include "scheduler.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <sys/mman.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

extern "C" { // weak: null unless the sanitizer's runtime is in the process
__attribute__((weak)) void __sanitizer_start_switch_fiber(void **, const void *, size_t);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void *, const void **, size_t *);
__attribute__((weak)) void *__tsan_get_current_fiber();
__attribute__((weak)) void *__tsan_create_fiber(unsigned);
__attribute__((weak)) void __tsan_destroy_fiber(void *);
__attribute__((weak)) void __tsan_switch_to_fiber(void *, unsigned);
__attribute__((weak)) void __tsan_acquire(void *);
__attribute__((weak)) void __tsan_release(void *);
void cuh_switch(void **save_sp, void *to_sp);
}
asm(R"(.text
.globl cuh_switch
.hidden cuh_switch
.type cuh_switch,@function
cuh_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cuh_switch,.-cuh_switch
)");

static const size_t STACK_BYTES = 32 << 10;
static const unsigned THREADS_MAX = 1024, SHARED_BYTES_MAX = 232448;
enum { KIND_SYNCWARP, KIND_SHUFFLE };
enum Request { R_NONE, R_BARRIER, R_COLLECTIVE, R_SHARED, R_DONE };

struct Thread {
  cuh_thread t;
  void *sp;
  char *stack;
  void *fake, *tsan;
  bool done;
  u32 priority;
  Request request;
  u32 mask;
  int kind;
  const void *in;
  size_t n;
  void *out;
  const char *file;
  int line;
  const void *key;
  const char *waits;
  unsigned barriers;
};
struct Collective {
  u32 mask, arrived;
  int kind;
  size_t n;
  const char *file;
  int line;
  Thread *who[32];
};
struct Registered {
  void (*call)(void **);
  std::vector<unsigned> sizes;
};

EXPORT cuh_thread *cuh_current;
cuh_thread *cuh_current;
EXPORT cuh_dim3 cuh_block_dim, cuh_grid_dim;
cuh_dim3 cuh_block_dim, cuh_grid_dim;
EXPORT int cuh_planted;
int cuh_planted;

static char barrier_hb[2], launch_hb, done_hb, warp_hb[32];
static std::mutex launch_lock;
static std::string error;
static bool aborted;
static Thread *current;
static void *main_sp, *main_fake, *main_tsan;
static const void *main_stack;
static size_t main_bytes;
static std::vector<Thread *> ready, at_barrier;
static const char *barrier_file;
static int barrier_line;
static unsigned alive;
static std::vector<std::deque<Collective>> warps;
static std::map<const void *, void *> shared;
static void *dyn_shared;
static std::vector<void *> old_shared;
static bool warps_run_ahead;
static std::vector<u32> warp_priority;
static void (*kernel)(void **);
static void **kernel_params;
static u64 random_state;
static int order;
static std::vector<char *> stacks;

static std::map<std::string, Registered> &registered() {
  static auto *all = new std::map<std::string, Registered>;
  return *all;
}
EXPORT void cuh_register(const char *name, void (*call)(void **), const unsigned *sizes, unsigned n) {
  registered()[name] = {call, std::vector<unsigned>(sizes, sizes + n)};
}
const std::vector<unsigned> *cuh_find(const char *name) {
  auto found = registered().find(name);
  return found == registered().end() ? nullptr : &found->second.sizes;
}
bool cuh_plant(const char *name) {
  static const char *const names[] = {"",
#define PLANTED_BUG(name) #name,
#include "planted.def"
#undef PLANTED_BUG
  };
  for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
    if (!strcmp(names[i], name)) {
      cuh_planted = i;
      return true;
    }
  return false;
}

static u32 next_random() {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (u32)(random_state >> 16);
}
static void poison(void *p, size_t n) { memset(p, 0xff, n); } // NaN in every float type
static void fail(const std::string &what) {
  if (error.empty()) error = what;
  aborted = true;
}
static void copy_bytes(void *to, const void *from, size_t n) {
  for (size_t i = 0; i < n; i++) ((volatile unsigned char *)to)[i] = ((const unsigned char *)from)[i];
}

static void to_scheduler(Thread *me, bool dying) {
  if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(dying ? nullptr : &me->fake, main_stack, main_bytes);
  if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(main_tsan, 1);
  cuh_switch(&me->sp, main_sp);
  if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(me->fake, nullptr, nullptr);
}
static void ask(Thread *me, Request request, const char *file, int line) {
  me->request = request;
  me->file = file;
  me->line = line;
  to_scheduler(me, request == R_DONE);
}
static void entry() {
  Thread *me = current;
  if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(nullptr, &main_stack, &main_bytes);
  if (__tsan_acquire) __tsan_acquire(&launch_hb);
  kernel(kernel_params);
  if (__tsan_release) __tsan_release(&done_hb);
  ask(me, R_DONE, "", 0);
  abort();
}

EXPORT void cuh_syncthreads(const char *file, int line) {
  Thread *me = current;
  // Two in turn: a thread that has come to the next barrier already has told nothing to those that leave this one.
  char *hb = &barrier_hb[me->barriers++ & 1];
  if (__tsan_release) __tsan_release(hb);
  ask(me, R_BARRIER, file, line);
  if (__tsan_acquire) __tsan_acquire(hb);
}
EXPORT void cuh_collective(u32 mask, int kind, const void *in, size_t n, void *out, const char *file, int line) {
  Thread *me = current;
  me->mask = mask;
  me->kind = kind;
  me->in = in;
  me->n = n;
  me->out = out;
  // A shuffle orders no memory; only __syncwarp does.
  const bool orders = kind == KIND_SYNCWARP;
  if (orders && __tsan_release) __tsan_release(&warp_hb[me->t.warp]);
  ask(me, R_COLLECTIVE, file, line);
  if (orders && __tsan_acquire) __tsan_acquire(&warp_hb[me->t.warp]);
}
EXPORT void *cuh_shared(const void *key, size_t bytes) {
  Thread *me = current;
  me->key = key;
  me->n = bytes;
  ask(me, R_SHARED, "", 0);
  if (__tsan_acquire) __tsan_acquire(&launch_hb);
  return me->out;
}
EXPORT void *cuh_dyn_shared() { return dyn_shared; }

static void open_barrier() {
  for (auto *thread : at_barrier) ready.push_back(thread);
  at_barrier.clear();
  barrier_file = nullptr;
  if (order == ORDER_RANDOM && warps_run_ahead)
    for (auto &p : warp_priority) p = next_random() >> 8;
}
static void barrier(Thread *me) {
  if (barrier_file && (barrier_line != me->line || barrier_file != me->file)) {
    char text[300];
    snprintf(text, sizeof text, "threads of a block wait in different __syncthreads: %s:%d and %s:%d", barrier_file, barrier_line,
             me->file, me->line);
    return fail(text);
  }
  barrier_file = me->file;
  barrier_line = me->line;
  me->waits = "__syncthreads";
  at_barrier.push_back(me);
  if (at_barrier.size() == alive) open_barrier();
}
static void exchange(Collective &c) {
  for (int i = 0; i < 32; i++) {
    if (!(c.mask >> i & 1)) continue;
    Thread *thread = c.who[i];
    for (int j = 0; c.n && j < 32; j++) {
      unsigned char *out = (unsigned char *)thread->out + j * c.n;
      if (c.mask >> j & 1) copy_bytes(out, c.who[j]->in, c.n);
      else
        for (size_t k = 0; k < c.n; k++) ((volatile unsigned char *)out)[k] = 0xff;
    }
  }
  for (int i = 0; i < 32; i++)
    if (c.mask >> i & 1) ready.push_back(c.who[i]);
}
static void collective(Thread *me) {
  char text[300];
  const unsigned lane = me->t.lane, threads = cuh_block_dim.x * cuh_block_dim.y * cuh_block_dim.z, first = me->t.warp * 32;
  u32 full = 0;
  for (unsigned i = 0; i < 32 && first + i < threads; i++) full |= 1u << i;
  const u32 mask = me->mask & full;
  if (!(mask >> lane & 1)) {
    snprintf(text, sizeof text, "%s:%d: lane %u is not in its own mask %08x", me->file, me->line, lane, me->mask);
    return fail(text);
  }
  Collective *c = nullptr;
  for (auto &x : warps[me->t.warp])
    if (x.mask == mask) c = &x;
  if (!c) {
    warps[me->t.warp].push_back(Collective{});
    c = &warps[me->t.warp].back();
    c->mask = mask;
  }
  if (c->arrived == 0) {
    c->kind = me->kind;
    c->n = me->n;
    c->file = me->file;
    c->line = me->line;
  } else if (c->kind != me->kind || c->line != me->line || c->n != me->n) {
    snprintf(text, sizeof text, "warp %u diverged: lanes at %s:%d and %s:%d in one collective", me->t.warp, c->file, c->line, me->file,
             me->line);
    return fail(text);
  }
  me->waits = "a warp collective";
  c->arrived |= 1u << lane;
  c->who[lane] = me;
  if (c->arrived == mask) {
    c->arrived = 0;
    exchange(*c);
  }
}
static void handle(Thread *me) {
  switch (me->request) {
  case R_DONE:
    me->done = true;
    alive--;
    if (!at_barrier.empty() && at_barrier.size() == alive) open_barrier();
    break;
  case R_SHARED: {
    void *&memory = shared[me->key];
    if (!memory) {
      memory = malloc(me->n);
      poison(memory, me->n);
      if (__tsan_release) __tsan_release(&launch_hb);
    }
    me->out = memory;
    ready.push_back(me);
    break;
  }
  case R_BARRIER: barrier(me); break;
  case R_COLLECTIVE: collective(me); break;
  default: break;
  }
}

static char *new_stacks(size_t bytes) {
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) abort();
  return (char *)memory;
}
static void make_thread(Thread &t, unsigned i, char *stack, cuh_dim3 block, cuh_dim3 bid) {
  memset((void *)&t, 0, sizeof t);
  t.stack = stack;
  t.priority = next_random() >> 8;
  t.waits = "nothing";
  t.file = "";
  t.t.tid = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
  t.t.bid = bid;
  t.t.lane = i & 31;
  t.t.warp = i >> 5;
  if (__tsan_create_fiber) t.tsan = __tsan_create_fiber(0);
  void **sp = (void **)(t.stack + STACK_BYTES - 64);
  *--sp = nullptr;
  *--sp = (void *)entry;
  for (int k = 0; k < 6; k++) *--sp = nullptr;
  t.sp = sp;
  ready.push_back(&t);
}
static Thread *take_next() {
  size_t at = order == ORDER_FORWARD ? 0 : order == ORDER_REVERSE ? ready.size() - 1 : next_random() % ready.size();
  if (order == ORDER_RANDOM && warps_run_ahead) {
    auto key = [](Thread *x) { return ((u64)warp_priority[x->t.warp] << 32) | x->priority; };
    for (size_t k = 0; k < ready.size(); k++)
      if (key(ready[k]) > key(ready[at])) at = k;
  }
  Thread *thread = ready[at];
  if (order == ORDER_FORWARD) ready.erase(ready.begin());
  else {
    ready[at] = ready.back();
    ready.pop_back();
  }
  return thread;
}
static void run(Thread *thread) {
  current = thread;
  cuh_current = &thread->t;
  if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(&main_fake, thread->stack, STACK_BYTES);
  if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(thread->tsan, 1);
  cuh_switch(&main_sp, thread->sp);
  if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(main_fake, nullptr, nullptr);
  handle(thread);
}
static void deadlock(const std::vector<Thread> &threads) {
  std::string text = "no thread can go on:";
  unsigned told = 0;
  for (size_t i = 0; i < threads.size() && told < 4; i++) {
    if (threads[i].done) continue;
    char line[300];
    snprintf(line, sizeof line, " thread %zu waits in %s at %s:%d;", i, threads[i].waits, threads[i].file, threads[i].line);
    text += line;
    told++;
  }
  fail(text);
}
static void run_block(std::vector<Thread> &threads, u64 index, cuh_dim3 grid, cuh_dim3 block, unsigned shared_bytes) {
  const unsigned n = (unsigned)threads.size();
  ready.clear();
  at_barrier.clear();
  barrier_file = nullptr;
  alive = n;
  warps.assign((n + 31) / 32, {});
  shared.clear();
  // Under TSan each block has stacks of its own, or two blocks would seem to race on them.
  char *own = __tsan_acquire ? new_stacks(STACK_BYTES * n) : nullptr;
  dyn_shared = malloc(shared_bytes ? shared_bytes : 1);
  poison(dyn_shared, shared_bytes);
  if (__tsan_release) __tsan_release(&launch_hb);
  const cuh_dim3 bid = {(unsigned)(index % grid.x), (unsigned)(index / grid.x % grid.y), (unsigned)(index / ((u64)grid.x * grid.y))};
  for (unsigned i = 0; i < n; i++) make_thread(threads[i], i, own ? own + STACK_BYTES * i : stacks[i], block, bid);
  while (!aborted && alive) {
    if (ready.empty()) deadlock(threads);
    else run(take_next());
  }
  if (__tsan_destroy_fiber)
    for (auto &t : threads) __tsan_destroy_fiber(t.tsan);
  if (own) munmap(own, STACK_BYTES * n);
  old_shared.push_back(dyn_shared);
  for (auto &s : shared) old_shared.push_back(s.second);
  if (__tsan_acquire) return; // under TSan no address is used again by another block
  for (void *p : old_shared) free(p);
  old_shared.clear();
}

std::string cuh_launch(const char *name, cuh_dim3 grid, cuh_dim3 block, unsigned shared_bytes, void **params, u64 seed, int with_order) {
  std::lock_guard<std::mutex> one_at_a_time(launch_lock);
  auto found = registered().find(name);
  if (found == registered().end()) return std::string("no kernel ") + name;
  const unsigned n = block.x * block.y * block.z;
  const u64 blocks = (u64)grid.x * grid.y * grid.z;
  if (n == 0 || n > THREADS_MAX || blocks == 0 || grid.y > 65535 || grid.z > 65535) return std::string(name) + ": no such grid or block";
  if (shared_bytes > SHARED_BYTES_MAX) return std::string(name) + ": too much dynamic shared memory";
  error.clear();
  aborted = false;
  random_state = seed * 0x9e3779b97f4a7c15ull + 0x1234567;
  order = with_order;
  kernel = found->second.call;
  kernel_params = params;
  cuh_block_dim = block;
  cuh_grid_dim = grid;
  warps_run_ahead = seed % 2 == 0;
  if (__tsan_get_current_fiber) main_tsan = __tsan_get_current_fiber();
  if (__tsan_release) __tsan_release(&launch_hb);
  while (!__tsan_acquire && stacks.size() < n) stacks.push_back(new_stacks(STACK_BYTES));
  std::vector<u64> sequence(blocks);
  for (u64 i = 0; i < blocks; i++) sequence[i] = i;
  if (order == ORDER_RANDOM)
    for (u64 i = blocks; i > 1; i--) std::swap(sequence[i - 1], sequence[next_random() % i]);
  std::vector<Thread> threads(n);
  warp_priority.assign((n + 31) / 32, 0);
  for (auto &p : warp_priority) p = next_random() >> 8;
  for (u64 index : sequence) {
    if (aborted) break;
    run_block(threads, index, grid, block, shared_bytes);
  }
  cuh_current = nullptr;
  if (__tsan_acquire) __tsan_acquire(&done_hb);
  for (void *p : old_shared) free(p);
  old_shared.clear();
  return error.empty() ? "" : std::string(name) + ": " + error;
}
