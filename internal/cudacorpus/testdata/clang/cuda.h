// What clang needs to know of CUDA C for the kernels of ../cuda that include no header of NVIDIA's: clang's own headers want a toolkit.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __align__(n) __attribute__((aligned(n)))
#define __forceinline__ inline __attribute__((always_inline))
#define device_function static __device__ __forceinline__

typedef unsigned long size_t;
struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
};
struct float3 {
    float x, y, z;
};
struct __align__(16) float4 {
    float x, y, z, w;
};
device_function float3 make_float3(float x, float y, float z) { return float3{x, y, z}; }
device_function float4 make_float4(float x, float y, float z, float w) { return float4{x, y, z, w}; }

#include <__clang_cuda_builtin_vars.h>

// Barriers and fences. Assembly is convergent in device code. What clang 14 itself makes of __syncthreads is no fence to it: it moves loads
// from shared variables above it, which the tests found.
device_function void barrier() { asm volatile("bar.sync 0;" ::: "memory"); }
#define __syncthreads() barrier()
device_function void __syncwarp() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
device_function void __threadfence() { asm volatile("membar.gl;" ::: "memory"); }
device_function void __nanosleep(unsigned ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns)); }

// Lanes of a warp.
device_function unsigned __ballot_sync(unsigned mask, int predicate) {
    unsigned r;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.ballot.b32 %0, p, %2; }" : "=r"(r) : "r"(predicate), "r"(mask));
    return r;
}
#define SHUFFLE(name, mode, clamp)                                                                                                    \
    device_function int name(unsigned mask, int v, int lane) {                                                                       \
        int r;                                                                                                                       \
        asm volatile("shfl.sync." mode ".b32 %0, %1, %2, " clamp ", %3;" : "=r"(r) : "r"(v), "r"(lane), "r"(mask));                   \
        return r;                                                                                                                    \
    }                                                                                                                                \
    device_function unsigned name(unsigned mask, unsigned v, int lane) { return name(mask, int(v), lane); }                          \
    device_function float name(unsigned mask, float v, int lane) { return __builtin_bit_cast(float, name(mask, __builtin_bit_cast(int, v), lane)); }
SHUFFLE(__shfl_sync, "idx", "31")
SHUFFLE(__shfl_up_sync, "up", "0")
SHUFFLE(__shfl_down_sync, "down", "31")
SHUFFLE(__shfl_xor_sync, "bfly", "31")
#undef SHUFFLE

// Atomics. Those that clang makes itself are instructions of LLVM, the others assembly.
device_function unsigned atomicAdd(unsigned *p, unsigned v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
device_function int atomicAdd(int *p, int v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
device_function unsigned long long atomicAdd(unsigned long long *p, unsigned long long v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
#define ATOMIC(name, type, instruction, constraint)                                                                                   \
    device_function type name(type *p, type v) {                                                                                     \
        type r;                                                                                                                      \
        asm volatile("atom." instruction " %0, [%1], %2;" : "=" constraint(r) : "l"(p), constraint(v) : "memory");                     \
        return r;                                                                                                                    \
    }
ATOMIC(atomicMax, int, "max.s32", "r")
ATOMIC(atomicMin, int, "min.s32", "r")
ATOMIC(atomicInc, unsigned, "inc.u32", "r")
ATOMIC(atomicDec, unsigned, "dec.u32", "r")
ATOMIC(atomicAnd, int, "and.b32", "r")
ATOMIC(atomicOr, int, "or.b32", "r")
ATOMIC(atomicXor, int, "xor.b32", "r")
ATOMIC(atomicExch, int, "exch.b32", "r")
ATOMIC(atomicExch, unsigned, "exch.b32", "r")
#undef ATOMIC
device_function int atomicSub(int *p, int v) { return atomicAdd(p, -v); }
#define SWAP(type, width, constraint)                                                                                                 \
    device_function type atomicCAS(type *p, type seen, type v) {                                                                     \
        type r;                                                                                                                      \
        asm volatile("atom.cas." width " %0, [%1], %2, %3;" : "=" constraint(r) : "l"(p), constraint(seen), constraint(v) : "memory"); \
        return r;                                                                                                                    \
    }
SWAP(int, "b32", "r")
SWAP(unsigned, "b32", "r")
SWAP(unsigned long long, "b64", "l")
#undef SWAP

// Arithmetic.
template <class T> device_function T min(T a, T b) { return a < b ? a : b; }
template <class T> device_function T max(T a, T b) { return a > b ? a : b; }
device_function int __popc(unsigned v) { return __builtin_popcount(v); }
device_function float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
device_function float rsqrtf(float v) {
    float r;
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}
device_function float __expf(float v) {
    float r;
    asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(v * 1.4426950408889634f));
    return r;
}
device_function double __longlong_as_double(long long v) { return __builtin_bit_cast(double, v); }
device_function long long __double_as_longlong(double v) { return __builtin_bit_cast(long long, v); }
