// A libnccl for tests. Ranks are threads or processes of one machine, memory is that of the host, and streams only have to be there: a
// communicator works beside the caller until it is no longer in progress. Compiled with -DNCCL_H, the functions are compared with the
// prototypes there.
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifdef NCCL_H
#define NCCL_OS_LINUX
#include NCCL_H
_Static_assert(ncclInProgress == 7 && ncclUint8 == 1 && ncclInt32 == 2 && ncclFloat32 == 7 && ncclSum == 0 && ncclMax == 2 && ncclMin == 3 && ncclAvg == 4, "constants");
_Static_assert(sizeof(ncclUniqueId) == 128 && offsetof(ncclConfig_t, blocking) == 16 && offsetof(ncclConfig_t, netName) == 32 &&
               offsetof(ncclConfig_t, splitShare) == 40 && NCCL_API_MAGIC == 0xcafebeef && NCCL_CONFIG_UNDEF_INT == INT_MIN, "layout");
#else
typedef enum { ncclSuccess, ncclUnhandledCudaError, ncclSystemError, ncclInternalError, ncclInvalidArgument, ncclInvalidUsage, ncclRemoteError, ncclInProgress } ncclResult_t;
typedef struct { char internal[128]; } ncclUniqueId;
typedef struct ncclComm *ncclComm_t;
typedef enum { ncclUint8 = 1, ncclInt32 = 2, ncclFloat32 = 7 } ncclDataType_t;
typedef enum { ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg } ncclRedOp_t;
typedef void *cudaStream_t;
typedef struct {
  size_t size;
  unsigned int magic, version;
  int blocking, cgaClusterSize, minCTAs, maxCTAs;
  const char *netName;
  int splitShare;
} ncclConfig_t;
#endif

enum { maxRanks = 8, area = 1 << 20 };

// What the ranks of a communicator share. Files are sparse: only what is used takes memory.
struct shared {
  atomic_int arrived, generation, left;
  int color[maxRanks], key[maxRanks];
  char data[maxRanks][area];
  struct mail {
    atomic_size_t full; // bytes that the receiver has not taken yet
    char data[area];
  } mail[maxRanks][maxRanks]; // from, to
};

// What a communicator does while its state is in progress.
struct job {
  void (*run)(ncclComm_t c, struct job *j);
  const void *src;
  void *dst;
  size_t n;
  int type, op, root, calls;
  struct call {
    int kind, peer;
    const void *src;
    void *dst;
    size_t n;
    ncclComm_t c;
  } call[4 * maxRanks];
};

struct ncclComm {
  struct shared *s;
  char name[64];
  int rank, size, splits, failed;
  atomic_int state, aborted;
  pthread_t thread;
  struct job job;
};

static _Thread_local int depth;
static _Thread_local char last[200];

static ncclResult_t wrong(const char *what) {
  snprintf(last, sizeof last, "%s", what);
  return ncclInvalidArgument;
}

ncclResult_t ncclGetVersion(int *version) { return *version = VERSION, ncclSuccess; }
const char *ncclGetErrorString(ncclResult_t r) { return r == ncclInvalidArgument ? "invalid argument" : r == ncclRemoteError ? "remote error" : "error"; }
const char *ncclGetLastError(ncclComm_t c) { return (void)c, last; }

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  static atomic_int count;
  memset(id, 0, sizeof *id);
  snprintf(id->internal, sizeof id->internal, "/wavelane-nccl-%d-%d", (int)getpid(), atomic_fetch_add(&count, 1));
  id->internal[127] = 42; // of what is passed by value, the end
  return ncclSuccess;
}

// meet waits for all ranks, or notes that it has been given up.
static void meet(ncclComm_t c) {
  struct shared *s = c->s;
  int generation = atomic_load(&s->generation);
  if (c->failed) return;
  if (atomic_fetch_add(&s->arrived, 1) + 1 == c->size) {
    atomic_store(&s->arrived, 0);
    atomic_fetch_add(&s->generation, 1);
    return;
  }
  while (atomic_load(&s->generation) == generation) {
    if (atomic_load(&c->aborted)) {
      c->failed = 1;
      return;
    }
    nanosleep(&(struct timespec){0, 20000}, NULL);
  }
}

static void *work(void *arg) {
  ncclComm_t c = arg;
  c->job.run(c, &c->job);
  atomic_store(&c->state, c->failed ? ncclRemoteError : ncclSuccess);
  return NULL;
}

// start does a job beside the caller, who finds out by the state when it is done.
static ncclResult_t start(ncclComm_t c, struct job j) {
  c->job = j;
  if (c->thread) pthread_join(c->thread, NULL);
  atomic_store(&c->state, ncclInProgress);
  pthread_create(&c->thread, NULL, work, c);
  return ncclInProgress;
}

static void join(ncclComm_t c, struct job *j) {
  (void)j;
  meet(c);
  if (c->rank == 0) shm_unlink(c->name);
}

static ncclResult_t make(ncclComm_t *out, const char *name, int size, int rank, const ncclConfig_t *o) {
  if (!o || o->size != 48 || o->magic != 0xcafebeef || o->version != 21700 || o->blocking != 0 || o->minCTAs != INT_MIN || o->netName) return wrong("config");
  if (size < 1 || size > maxRanks || rank < 0 || rank >= size) return wrong("rank");
  ncclComm_t c = calloc(1, sizeof *c);
  snprintf(c->name, sizeof c->name, "%s", name);
  int fd = shm_open(name, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(struct shared)) != 0) return ncclSystemError;
  c->s = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  c->rank = rank, c->size = size;
  *out = c;
  return start(c, (struct job){.run = join});
}

static ncclResult_t makeByID(ncclComm_t *out, const ncclUniqueId *id, int size, int rank, const ncclConfig_t *o) {
  return id->internal[127] == 42 ? make(out, id->internal, size, rank, o) : wrong("id");
}

#if VERSION >= 22300
ncclResult_t ncclCommInitRankScalable(ncclComm_t *out, int size, int rank, int n, ncclUniqueId *ids, ncclConfig_t *o) {
  return n == 1 ? makeByID(out, ids, size, rank, o) : wrong("number of ids");
}
#else
ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int size, ncclUniqueId id, int rank, ncclConfig_t *o) {
  return makeByID(out, &id, size, rank, o);
}
#endif

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *state) {
  if (!c) return wrong("null communicator");
  *state = atomic_load(&c->state);
  return ncclSuccess;
}

static ncclResult_t ready(ncclComm_t c) {
  if (!c) return wrong("null communicator");
  return atomic_load(&c->state) == ncclSuccess ? ncclSuccess : wrong("the communicator is not ready");
}

ncclResult_t ncclCommSplit(ncclComm_t c, int color, int key, ncclComm_t *out, ncclConfig_t *o) {
  ncclResult_t r = ready(c);
  if (r != ncclSuccess) return r;
  c->s->color[c->rank] = color, c->s->key[c->rank] = key;
  meet(c); // blocks, unlike the other calls
  int size = 0, rank = 0;
  for (int i = 0; i < c->size; i++)
    if (c->s->color[i] == color) {
      size++;
      rank += c->s->key[i] < key || (c->s->key[i] == key && i < c->rank);
    }
  meet(c);
  char name[64];
  snprintf(name, sizeof name, "%.40s-%d-%d", c->name, c->splits++, color);
  return make(out, name, size, rank, o);
}

static void finalize(ncclComm_t c, struct job *j) {
  (void)j;
  meet(c);
}

ncclResult_t ncclCommFinalize(ncclComm_t c) {
  ncclResult_t r = ready(c);
  return r == ncclSuccess ? start(c, (struct job){.run = finalize}) : r;
}

ncclResult_t ncclCommDestroy(ncclComm_t c) {
  ncclResult_t r = ready(c);
  if (r != ncclSuccess) return r;
  pthread_join(c->thread, NULL);
  munmap(c->s, sizeof(struct shared));
  free(c);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t c) {
  atomic_store(&c->aborted, 1);
  shm_unlink(c->name);
  pthread_join(c->thread, NULL);
  munmap(c->s, sizeof(struct shared));
  free(c);
  return ncclSuccess;
}

// The calls of this thread's group, until its end.
static _Thread_local struct job group;
enum { sends, receives };

ncclResult_t ncclGroupStart(void) { return depth++, ncclSuccess; }

// exchange goes on with all messages at once, each in parts, those between two ranks in their order.
static void exchange(ncclComm_t c, struct job *j) {
  size_t at[4 * maxRanks] = {0};
  int open = j->calls;
  for (int i = 0; i < j->calls; i++) open -= j->call[i].n == 0;
  while (open > 0 && !c->failed) {
    int moved = 0;
    for (int i = 0; i < j->calls; i++) {
      struct call *m = &j->call[i];
      int earlier = 0;
      for (int k = 0; k < i; k++) earlier |= j->call[k].kind == m->kind && j->call[k].peer == m->peer && at[k] < j->call[k].n;
      if (earlier || at[i] == m->n) continue;
      struct mail *b = m->kind == sends ? &c->s->mail[c->rank][m->peer] : &c->s->mail[m->peer][c->rank];
      size_t full = atomic_load(&b->full), part = m->n - at[i] < area ? m->n - at[i] : area;
      if ((m->kind == sends) == (full > 0)) continue;
      if (m->kind == sends) {
        memcpy(b->data, (const char *)m->src + at[i], part);
        atomic_store(&b->full, part);
      } else {
        if (full != part) { // a message of another length
          c->failed = 1;
          return;
        }
        memcpy((char *)m->dst + at[i], b->data, part);
        atomic_store(&b->full, 0);
      }
      at[i] += part, moved = 1, open -= at[i] == m->n;
    }
    if (atomic_load(&c->aborted)) c->failed = 1;
    if (!moved) nanosleep(&(struct timespec){0, 20000}, NULL);
  }
}

ncclResult_t ncclGroupEnd(void) {
  if (depth == 0) return wrong("no group of this thread");
  if (--depth > 0 || group.calls == 0) return ncclSuccess;
  struct job j = group;
  group.calls = 0;
  j.run = exchange;
  return start(j.call[0].c, j);
}

static ncclResult_t message(struct call m, ncclDataType_t t, cudaStream_t stream) {
  ncclResult_t r = ready(m.c);
  if (r != ncclSuccess) return r;
  if (t != ncclUint8 || !stream || group.calls == 4 * maxRanks) return wrong("message");
  if (depth == 0) return start(m.c, (struct job){.run = exchange, .calls = 1, .call = {m}});
  group.call[group.calls++] = m;
  return ncclSuccess;
}

ncclResult_t ncclSend(const void *src, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t stream) {
  return message((struct call){sends, peer, src, NULL, n, c}, t, stream);
}

ncclResult_t ncclRecv(void *dst, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t stream) {
  return message((struct call){receives, peer, NULL, dst, n, c}, t, stream);
}

static ncclResult_t collective(ncclComm_t c, struct job j, cudaStream_t stream) {
  ncclResult_t r = ready(c);
  if (r != ncclSuccess) return r;
  return depth > 0 || !stream ? wrong("collective") : start(c, j);
}

// sum sets n words of dst to the reduction of the ranks' words.
static void sum(ncclComm_t c, const struct job *j, char *dst, size_t n) {
  for (size_t i = 0; i < n; i++) {
    float f = 0;
    int32_t v = ((int32_t *)c->s->data[0])[i];
    for (int k = 0; k < c->size; k++) {
      int32_t x = ((int32_t *)c->s->data[k])[i];
      f += ((float *)c->s->data[k])[i];
      if (k > 0) v = j->op == ncclSum ? (int32_t)((uint32_t)v + (uint32_t)x) : j->op == ncclMax ? (x > v ? x : v) : (x < v ? x : v);
    }
    if (j->op == ncclAvg) f /= (float)c->size;
    if (j->type == ncclFloat32) ((float *)dst)[i] = f;
    else ((int32_t *)dst)[i] = v;
  }
}

// parts has a function do a job in parts that fit into the shared memory: at is their offset, n their length in bytes.
static void parts(ncclComm_t c, struct job *j, size_t bytes, void (*part)(ncclComm_t c, struct job *j, size_t at, size_t n)) {
  for (size_t at = 0; at < bytes && !c->failed; at += area) part(c, j, at, bytes - at < area ? bytes - at : area);
}

static void reducePart(ncclComm_t c, struct job *j, size_t at, size_t n) {
  memcpy(c->s->data[c->rank], (const char *)j->src + at, n);
  meet(c);
  if (!c->failed) sum(c, j, (char *)j->dst + at, n / 4);
  meet(c);
}

static void reduce(ncclComm_t c, struct job *j) { parts(c, j, 4 * j->n, reducePart); }

static int reducible(ncclDataType_t t, ncclRedOp_t op) {
  return (t == ncclFloat32 && (op == ncclSum || op == ncclAvg)) || (t == ncclInt32 && op != ncclAvg && op != ncclProd);
}

ncclResult_t ncclAllReduce(const void *src, void *dst, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, cudaStream_t stream) {
  if (!reducible(t, op)) return wrong("type");
  return collective(c, (struct job){.run = reduce, .src = src, .dst = dst, .n = n, .type = t, .op = op}, stream);
}

// scatter has all ranks reduce the share of one after the other.
static void scatterPart(ncclComm_t c, struct job *j, size_t at, size_t n) {
  for (int k = 0; k < c->size && !c->failed; k++) {
    memcpy(c->s->data[c->rank], (const char *)j->src + 4 * j->n * (size_t)k + at, n);
    meet(c);
    if (k == c->rank && !c->failed) sum(c, j, (char *)j->dst + at, n / 4);
    meet(c);
  }
}

static void scatter(ncclComm_t c, struct job *j) { parts(c, j, 4 * j->n, scatterPart); }

ncclResult_t ncclReduceScatter(const void *src, void *dst, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, cudaStream_t stream) {
  if (!reducible(t, op)) return wrong("type");
  return collective(c, (struct job){.run = scatter, .src = src, .dst = dst, .n = n, .type = t, .op = op}, stream);
}

static void gatherPart(ncclComm_t c, struct job *j, size_t at, size_t n) {
  memcpy(c->s->data[c->rank], (const char *)j->src + at, n);
  meet(c);
  for (int k = 0; k < c->size && !c->failed; k++) memcpy((char *)j->dst + (size_t)k * j->n + at, c->s->data[k], n);
  meet(c);
}

static void gather(ncclComm_t c, struct job *j) { parts(c, j, j->n, gatherPart); }

ncclResult_t ncclAllGather(const void *src, void *dst, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t stream) {
  return t == ncclUint8 ? collective(c, (struct job){.run = gather, .src = src, .dst = dst, .n = n}, stream) : wrong("type");
}

static void broadcastPart(ncclComm_t c, struct job *j, size_t at, size_t n) {
  if (c->rank == j->root) memcpy(c->s->data[c->rank], (const char *)j->src + at, n);
  meet(c);
  if (!c->failed) memcpy((char *)j->dst + at, c->s->data[j->root], n);
  meet(c);
}

static void broadcast(ncclComm_t c, struct job *j) { parts(c, j, j->n, broadcastPart); }

ncclResult_t ncclBroadcast(const void *src, void *dst, size_t n, ncclDataType_t t, int root, ncclComm_t c, cudaStream_t stream) {
  return t == ncclUint8 ? collective(c, (struct job){.run = broadcast, .src = src, .dst = dst, .n = n, .root = root}, stream) : wrong("type");
}
