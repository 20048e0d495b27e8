// A driver library for tests. It exports every function that the binding calls, writes down each call with its arguments and
// what these point to, answers with values that the test chose, and fails where it says so. All state belongs to a thread.
//
// With -DCUDA_H='"…/cuda.h"' the types and constants come from NVIDIA's header, and the compiler checks each definition against
// its prototype there. Without it they are the ones below.

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef CUDA_H

#define __CUDA_API_VERSION_INTERNAL // declares all versions of a function, and leaves names as they are
#include CUDA_H
#define RETURN(code) return (CUresult)(code)

#else

// The upper half of a returned register means nothing; here it is never 0.
typedef unsigned long long CUresult;
#define RETURN(code) return 0xbad0bad000000000ULL | (unsigned)(code)
#define CUDAAPI

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef uint64_t cuuint64_t;
typedef uint32_t cuuint32_t;
typedef struct { cuuint64_t opaque[16]; } CUtensorMap;
typedef int CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUevent_st *CUevent;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUlinkState_st *CUlinkState;
typedef struct { char bytes[16]; } CUuuid;
typedef int CUdevice_attribute, CUfunction_attribute, CUstreamCaptureMode, CUstreamCaptureStatus, CUjitInputType;
typedef size_t (*CUoccupancyB2DSize)(int);

typedef enum {
    CU_JIT_MAX_REGISTERS = 0,
    CU_JIT_INFO_LOG_BUFFER = 3,
    CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    CU_JIT_GENERATE_LINE_INFO = 13
} CUjit_option;

typedef enum { CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4 } CUlaunchAttributeID;
typedef union {
    char pad[64];
    int cooperative;
    struct { unsigned x, y, z; } clusterDim;
    void *aligned;
} CUlaunchAttributeValue;
typedef struct {
    CUlaunchAttributeID id;
    char pad[8 - sizeof(CUlaunchAttributeID)];
    CUlaunchAttributeValue value;
} CUlaunchAttribute;
typedef struct {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned numAttrs;
} CUlaunchConfig;
typedef struct {
    CUfunction func;
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    void **kernelParams;
    void **extra;
} CUDA_KERNEL_NODE_PARAMS_v1;


#endif

// What the test sets and reads.

void stub_trace(int on);
const char *stub_take(void);
void stub_fail(const char *name, int code);
void stub_out(int i, unsigned long long value);
void stub_logs(const char *info, const char *error, int mode);

static __thread int tracing;
static __thread char text[1 << 16];
static __thread size_t used;
static __thread char failing[64];
static __thread int code;
static __thread unsigned long long out[8];

// stub_trace starts and ends writing down.
void stub_trace(int on) { tracing = on; }

// stub_take returns what was written down since the last time.
const char *stub_take(void) {
    text[used] = 0;
    used = 0;
    return text;
}

// stub_fail lets one function return a code; 0 lets all succeed.
void stub_fail(const char *name, int c) {
    snprintf(failing, sizeof failing, "%s", name);
    code = c;
}

// stub_out sets the value that functions write through their i-th pointer.
void stub_out(int i, unsigned long long value) { out[i] = value; }

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...) {
    if (!tracing) return;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text + used, sizeof text - used, format, args);
    va_end(args);
    if (n > 0 && used + (size_t)n < sizeof text) used += (size_t)n;
}

#define F(name, ...) __attribute__((visibility("default"))) CUresult CUDAAPI name(__VA_ARGS__)
#define BEGIN put("%s(", __func__)
#define U(x) put("%llu,", (unsigned long long)(x))
#define H(x) put("%llu,", (unsigned long long)(uintptr_t)(x))
#define I(x) put("%lld,", (long long)(x))
#define S(x) put("\"%s\",", x)
#define END                                              \
    put(")\n");                                          \
    if (code != 0 && !strcmp(failing, __func__)) RETURN(code)
#define OUT(i, p) *(p) = (__typeof__(*(p)))out[i]
#define DONE RETURN(0)

static void bytes(const void *p, size_t n) {
    for (size_t i = 0; i < n; i++) put("%02x", ((const unsigned char *)p)[i]);
    put(",");
}

// Start, devices.

F(cuInit, unsigned int flags) { BEGIN; U(flags); END; DONE; }
F(cuDriverGetVersion, int *version) { BEGIN; END; OUT(0, version); DONE; }

F(cuGetErrorString, CUresult error, const char **string) {
    static __thread char s[32];
    int e = (int)error;
    BEGIN; I(e); END;
    *string = NULL;
    if (e > 999) RETURN(1);
    snprintf(s, sizeof s, "text of %d", e);
    *string = s;
    DONE;
}

F(cuDeviceGetCount, int *n) { BEGIN; END; OUT(0, n); DONE; }
F(cuDeviceGet, CUdevice *d, int ordinal) { BEGIN; I(ordinal); END; OUT(0, d); DONE; }

F(cuDeviceGetName, char *name, int len, CUdevice d) {
    BEGIN; I(len); I(d); END;
    memset(name, 'x', (size_t)len);
    snprintf(name, (size_t)len, "GPU %llu", out[0]);
    DONE;
}

F(cuDeviceGetPCIBusId, char *id, int len, CUdevice d) {
    BEGIN; I(len); I(d); END;
    memset(id, 'x', (size_t)len); // without a NUL: the longest there is
    DONE;
}

F(cuDeviceGetUuid_v2, CUuuid *uuid, CUdevice d) { BEGIN; I(d); END; memcpy(uuid, out, sizeof *uuid); DONE; }
F(cuDeviceTotalMem_v2, size_t *n, CUdevice d) { BEGIN; I(d); END; OUT(0, n); DONE; }
F(cuDeviceGetAttribute, int *v, CUdevice_attribute a, CUdevice d) { BEGIN; I((int)a); I(d); END; OUT(0, v); DONE; }
F(cuDeviceCanAccessPeer, int *can, CUdevice d, CUdevice peer) { BEGIN; I(d); I(peer); END; OUT(0, can); DONE; }

// Contexts.

F(cuDevicePrimaryCtxSetFlags_v2, CUdevice d, unsigned int flags) { BEGIN; I(d); U(flags); END; DONE; }
F(cuDevicePrimaryCtxRetain, CUcontext *c, CUdevice d) { BEGIN; I(d); END; OUT(0, c); DONE; }
F(cuDevicePrimaryCtxRelease_v2, CUdevice d) { BEGIN; I(d); END; DONE; }
F(cuCtxSetCurrent, CUcontext c) { BEGIN; H(c); END; DONE; }
F(cuCtxGetCurrent, CUcontext *c) { BEGIN; END; OUT(0, c); DONE; }
F(cuCtxSynchronize, void) { BEGIN; END; DONE; }
F(cuCtxEnablePeerAccess, CUcontext peer, unsigned int flags) { BEGIN; H(peer); U(flags); END; DONE; }
F(cuCtxGetStreamPriorityRange, int *least, int *greatest) { BEGIN; END; OUT(0, least); OUT(1, greatest); DONE; }

// Modules.

// Which form logs have: how many bytes the library says it wrote, and whether a NUL ends them.
enum { LOG_COUNTED, LOG_COUNTED_WITH_NUL, LOG_UNCOUNTED, LOG_OVERCOUNTED };

static __thread char logs[2][1 << 17];
static __thread int logMode;
static __thread struct { char *at; size_t size; void **written; } buffers[2];

// stub_logs sets what compilations write into their logs.
void stub_logs(const char *info, const char *error, int mode) {
    snprintf(logs[0], sizeof logs[0], "%s", info);
    snprintf(logs[1], sizeof logs[1], "%s", error);
    logMode = mode;
}

// options writes options down, except for the buffers' addresses.
static void options(unsigned int n, const CUjit_option *keys, void **values) {
    memset(buffers, 0, sizeof buffers);
    for (unsigned int i = 0; i < n; i++) {
        switch (keys[i]) {
        case CU_JIT_INFO_LOG_BUFFER: buffers[0].at = values[i]; break;
        case CU_JIT_ERROR_LOG_BUFFER: buffers[1].at = values[i]; break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
            buffers[0].size = (size_t)values[i], buffers[0].written = &values[i];
            put("info %zu,", buffers[0].size);
            break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
            buffers[1].size = (size_t)values[i], buffers[1].written = &values[i];
            put("error %zu,", buffers[1].size);
            break;
        case CU_JIT_MAX_REGISTERS: put("registers %zu,", (size_t)values[i]); break;
        case CU_JIT_GENERATE_LINE_INFO: put("lines %zu,", (size_t)values[i]); break;
        default: put("option %d?", (int)keys[i]);
        }
    }
}

static void writeLogs(void) {
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(logs[i]), size = buffers[i].size;
        int nul = logMode != LOG_COUNTED;
        if (!buffers[i].at || !buffers[i].written) continue;
        memset(buffers[i].at, 'x', size);
        if (n > size) n = size;
        memcpy(buffers[i].at, logs[i], n);
        if (nul && n == size) n--;
        if (nul) buffers[i].at[n] = 0;
        if (logMode == LOG_UNCOUNTED) continue;
        size_t count = logMode == LOG_OVERCOUNTED ? size + 1 : n + (size_t)nul;
        *(unsigned int *)buffers[i].written = (unsigned int)count; // the option's type is unsigned int, its home a void*
    }
}

static __thread unsigned char cubin[64];

F(cuLinkCreate_v2, unsigned int n, CUjit_option *keys, void **values, CUlinkState *state) {
    BEGIN; options(n, keys, values); END;
    OUT(0, state);
    DONE;
}

F(cuLinkAddData_v2, CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name, unsigned int n,
  CUjit_option *keys, void **values) {
    BEGIN; H(state); I(type); bytes(data, size); H(name); U(n); H(keys); H(values);
    writeLogs();
    END;
    DONE;
}

F(cuLinkComplete, CUlinkState state, void **image, size_t *size) {
    BEGIN; H(state); END;
    for (size_t i = 0; i < sizeof cubin; i++) cubin[i] = (unsigned char)(out[1] >> i % 8 * 8);
    *image = cubin;
    *size = out[2];
    DONE;
}

F(cuLinkDestroy, CUlinkState state) {
    BEGIN; H(state);
    writeLogs();
    memset(cubin, 0, sizeof cubin);
    END;
    DONE;
}

F(cuModuleLoadDataEx, CUmodule *m, const void *image, unsigned int n, CUjit_option *keys, void **values) {
    BEGIN; S((const char *)image); options(n, keys, values);
    writeLogs();
    END;
    OUT(0, m);
    DONE;
}

F(cuModuleUnload, CUmodule m) { BEGIN; H(m); END; DONE; }
F(cuModuleGetFunction, CUfunction *f, CUmodule m, const char *name) { BEGIN; H(m); S(name); END; OUT(0, f); DONE; }
F(cuModuleGetGlobal_v2, CUdeviceptr *p, size_t *n, CUmodule m, const char *name) {
    BEGIN; H(m); S(name); END;
    OUT(0, p); OUT(1, n);
    DONE;
}

F(cuFuncGetAttribute, int *v, CUfunction_attribute a, CUfunction f) { BEGIN; I((int)a); H(f); END; OUT(0, v); DONE; }
F(cuFuncSetAttribute, CUfunction f, CUfunction_attribute a, int v) { BEGIN; H(f); I((int)a); I(v); END; DONE; }
F(cuTensorMapEncodeTiled, CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dims,
  const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave interleave,
  CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    BEGIN; U((uintptr_t)map % 64); I((int)type); U(rank); H(address);
    for (cuuint32_t i = 0; i < rank; i++) { U(dims[i]); U(box[i]); U(steps[i]); if (i > 0) U(strides[i - 1]); }
    I((int)interleave); I((int)swizzle); I((int)promotion); I((int)fill); END;
    memset(map, 0, sizeof *map);
    OUT(0, &map->opaque[15]);
    DONE;
}
F(cuTensorMapEncodeIm2col, CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dims,
  const cuuint64_t *strides, const int *lower, const int *upper, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *steps,
  CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    BEGIN; U((uintptr_t)map % 64); I((int)type); U(rank); H(address); U(channels); U(pixels);
    for (cuuint32_t i = 0; i < rank; i++) {
        U(dims[i]); U(steps[i]);
        if (i > 0) U(strides[i - 1]);
        if (i > 1) { I(lower[i - 2]); I(upper[i - 2]); }
    }
    I((int)interleave); I((int)swizzle); I((int)promotion); I((int)fill); END;
    memset(map, 0, sizeof *map);
    OUT(0, &map->opaque[15]);
    DONE;
}

F(cuFuncLoad, CUfunction f) { BEGIN; H(f); END; DONE; }
F(cuFuncGetParamInfo, CUfunction f, size_t i, size_t *offset, size_t *size) {
    BEGIN; H(f); U(i); END;
    OUT(0, offset); OUT(1, size);
    DONE;
}

F(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *n, CUfunction f, int threads, size_t dynamic) {
    BEGIN; H(f); I(threads); U(dynamic); END;
    OUT(0, n);
    DONE;
}

F(cuOccupancyMaxPotentialBlockSize, int *grid, int *block, CUfunction f, CUoccupancyB2DSize size, size_t dynamic, int limit) {
    BEGIN; H(f); H(size); U(dynamic); I(limit); END;
    OUT(0, grid); OUT(1, block);
    DONE;
}

// Launches.

// A kernel of the test has as many parameters, of 8 bytes each, as the low bits of its handle say.
static void parameters(CUfunction f, void **params, void **extra) {
    for (uintptr_t i = 0; i < ((uintptr_t)f & 63); i++) bytes(params[i], 8);
    H(extra);
}

#define SHAPE(l)                                                                                                         \
    put("%u %u %u,%u %u %u,%u,", (l)->gridDimX, (l)->gridDimY, (l)->gridDimZ, (l)->blockDimX, (l)->blockDimY, (l)->blockDimZ, \
        (l)->sharedMemBytes)

static void config(const CUlaunchConfig *c) {
    SHAPE(c);
    H(c->hStream);
    for (unsigned int i = 0; i < c->numAttrs; i++) {
        const CUlaunchAttribute *a = &c->attrs[i];
        CUlaunchAttributeValue v = {{0}}; // what is not the attribute's value has to be 0
        if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            v.clusterDim = a->value.clusterDim;
            put("cluster %u %u %u,", v.clusterDim.x, v.clusterDim.y, v.clusterDim.z);
        } else if (a->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
            v.cooperative = a->value.cooperative;
            put("cooperative %d,", v.cooperative);
        } else {
            put("attribute %d?", (int)a->id);
        }
        if (memcmp(&v, &a->value, sizeof v)) put("rubbish?");
    }
}

F(cuLaunchKernel, CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
  unsigned int bz, unsigned int shared, CUstream s, void **params, void **extra) {
    if (!tracing && !code) DONE; // for measuring
    BEGIN; H(f);
    put("%u %u %u,%u %u %u,%u,", gx, gy, gz, bx, by, bz, shared);
    H(s); parameters(f, params, extra); END;
    DONE;
}

F(cuLaunchKernelEx, const CUlaunchConfig *c, CUfunction f, void **params, void **extra) {
    if (!tracing && !code) DONE;
    BEGIN; H(f); config(c); parameters(f, params, extra); END;
    DONE;
}

F(cuOccupancyMaxActiveClusters, int *n, CUfunction f, const CUlaunchConfig *c) {
    BEGIN; H(f); config(c); END;
    OUT(0, n);
    DONE;
}

// Memory.

F(cuMemGetInfo_v2, size_t *available, size_t *total) { BEGIN; END; OUT(0, available); OUT(1, total); DONE; }
F(cuMemAlloc_v2, CUdeviceptr *p, size_t n) { BEGIN; U(n); END; OUT(0, p); DONE; }
F(cuMemFree_v2, CUdeviceptr p) { BEGIN; U(p); END; DONE; }
F(cuMemHostAlloc, void **p, size_t n, unsigned int flags) { BEGIN; U(n); U(flags); END; OUT(0, p); DONE; }
F(cuMemFreeHost, void *p) { BEGIN; H(p); END; DONE; }
F(cuMemcpyHtoDAsync_v2, CUdeviceptr d, const void *h, size_t n, CUstream s) { BEGIN; U(d); H(h); U(n); H(s); END; DONE; }
F(cuMemcpyDtoHAsync_v2, void *h, CUdeviceptr d, size_t n, CUstream s) { BEGIN; H(h); U(d); U(n); H(s); END; DONE; }
F(cuMemcpyDtoDAsync_v2, CUdeviceptr d, CUdeviceptr p, size_t n, CUstream s) { BEGIN; U(d); U(p); U(n); H(s); END; DONE; }
F(cuMemcpyPeerAsync, CUdeviceptr d, CUcontext dc, CUdeviceptr p, CUcontext pc, size_t n, CUstream s) {
    BEGIN; U(d); H(dc); U(p); H(pc); U(n); H(s); END;
    DONE;
}
F(cuMemsetD8Async, CUdeviceptr d, unsigned char v, size_t n, CUstream s) { BEGIN; U(d); U(v); U(n); H(s); END; DONE; }
F(cuMemsetD32Async, CUdeviceptr d, unsigned int v, size_t n, CUstream s) { BEGIN; U(d); U(v); U(n); H(s); END; DONE; }

// Streams and events.

F(cuStreamCreateWithPriority, CUstream *s, unsigned int flags, int p) { BEGIN; U(flags); I(p); END; OUT(0, s); DONE; }
F(cuStreamDestroy_v2, CUstream s) { BEGIN; H(s); END; DONE; }
F(cuStreamSynchronize, CUstream s) { BEGIN; H(s); END; DONE; }
F(cuStreamQuery, CUstream s) { BEGIN; H(s); END; DONE; }
F(cuStreamWaitEvent, CUstream s, CUevent e, unsigned int flags) { BEGIN; H(s); H(e); U(flags); END; DONE; }
F(cuEventCreate, CUevent *e, unsigned int flags) { BEGIN; U(flags); END; OUT(0, e); DONE; }
F(cuEventDestroy_v2, CUevent e) { BEGIN; H(e); END; DONE; }
F(cuEventRecord, CUevent e, CUstream s) { BEGIN; H(e); H(s); END; DONE; }
F(cuEventSynchronize, CUevent e) { BEGIN; H(e); END; DONE; }
F(cuEventQuery, CUevent e) { BEGIN; H(e); END; DONE; }
F(cuEventElapsedTime, float *ms, CUevent start, CUevent end) {
    BEGIN; H(start); H(end); END;
    memcpy(ms, out, sizeof *ms);
    DONE;
}

// Graphs.

F(cuStreamBeginCapture_v2, CUstream s, CUstreamCaptureMode mode) { BEGIN; H(s); I(mode); END; DONE; }
F(cuStreamEndCapture, CUstream s, CUgraph *g) { BEGIN; H(s); END; OUT(0, g); DONE; }

F(cuStreamGetCaptureInfo_v2, CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *g, const CUgraphNode **nodes,
  size_t *count) {
    static __thread CUgraphNode node[2];
    BEGIN; H(s); END;
    OUT(3, status); OUT(1, id); OUT(2, g); OUT(4, count);
    node[0] = (CUgraphNode)out[0];
    *nodes = node;
    DONE;
}

F(cuGraphDestroy, CUgraph g) { BEGIN; H(g); END; DONE; }
F(cuGraphInstantiateWithFlags, CUgraphExec *x, CUgraph g, unsigned long long flags) {
    BEGIN; H(g); U(flags); END;
    OUT(0, x);
    DONE;
}
F(cuGraphExecDestroy, CUgraphExec x) { BEGIN; H(x); END; DONE; }
F(cuGraphUpload, CUgraphExec x, CUstream s) { BEGIN; H(x); H(s); END; DONE; }
F(cuGraphLaunch, CUgraphExec x, CUstream s) { BEGIN; H(x); H(s); END; DONE; }
F(cuGraphExecKernelNodeSetParams, CUgraphExec x, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
    BEGIN; H(x); H(node); H(p->func); SHAPE(p); parameters(p->func, p->kernelParams, p->extra); END;
    DONE;
}
