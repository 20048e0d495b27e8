package main

/*
#cgo CFLAGS: -O2
#include <stdint.h>

// Each returns after about the given number of floating-point operations, a fused multiply-add counting two: twelve
// independent chains hide the latency. The results go somewhere so that no compiler drops the work.
#define CHAINS(V, SET, FMA, LANES)                                                                                            \
	V a = SET(1.0f), b = SET(1e-9f);                                                                                          \
	V c0 = a, c1 = a, c2 = a, c3 = a, c4 = a, c5 = a, c6 = a, c7 = a, c8 = a, c9 = a, c10 = a, c11 = a;                       \
	for (int64_t n = flops / (24 * LANES) + 1; n > 0; n--) {                                                                  \
		c0 = FMA(a, b, c0); c1 = FMA(a, b, c1); c2 = FMA(a, b, c2); c3 = FMA(a, b, c3);                                        \
		c4 = FMA(a, b, c4); c5 = FMA(a, b, c5); c6 = FMA(a, b, c6); c7 = FMA(a, b, c7);                                        \
		c8 = FMA(a, b, c8); c9 = FMA(a, b, c9); c10 = FMA(a, b, c10); c11 = FMA(a, b, c11);                                    \
		__asm__ volatile("" : "+" REG(c0), "+" REG(c1), "+" REG(c2), "+" REG(c3), "+" REG(c4), "+" REG(c5));                   \
		__asm__ volatile("" : "+" REG(c6), "+" REG(c7), "+" REG(c8), "+" REG(c9), "+" REG(c10), "+" REG(c11));                 \
	}

// Adds up n words, which is what reading takes: eight independent sums.
static uint64_t read_run(const uint64_t *x, int64_t n) {
	typedef uint64_t V __attribute__((vector_size(32)));
	V s[8] = {{0}};
	for (int64_t i = 0; i + 32 <= n; i += 32)
		for (int j = 0; j < 8; j++) {
			V v;
			__builtin_memcpy(&v, x + i + 4 * j, sizeof v);
			s[j] += v;
		}
	V t = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
	return t[0] + t[1] + t[2] + t[3];
}

#if defined(__x86_64__)
#include <immintrin.h>
#define REG(x) "v"(x)
__attribute__((target("avx512f"))) static void fma512(int64_t flops) { CHAINS(__m512, _mm512_set1_ps, _mm512_fmadd_ps, 16) }
#undef REG
#define REG(x) "x"(x)
__attribute__((target("avx2,fma"))) static void fma256(int64_t flops) { CHAINS(__m256, _mm256_set1_ps, _mm256_fmadd_ps, 8) }
#define MULADD(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)
static void mul128(int64_t flops) { CHAINS(__m128, _mm_set1_ps, MULADD, 4) }
static const char *fma_name(void) {
	if (__builtin_cpu_supports("avx512f")) return "avx512";
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "avx2";
	return "sse";
}
static void fma_run(int64_t flops) {
	if (__builtin_cpu_supports("avx512f")) fma512(flops);
	else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) fma256(flops);
	else mul128(flops);
}
#elif defined(__aarch64__)
#include <arm_neon.h>
#define REG(x) "w"(x)
#define NEONFMA(a, b, c) vfmaq_f32(c, a, b)
static const char *fma_name(void) { return "neon"; }
static void fma_run(int64_t flops) { CHAINS(float32x4_t, vdupq_n_f32, NEONFMA, 4) }
#endif
*/
import "C"

import (
	"os"
	"runtime"
	"strings"
	"sync"
	"unsafe"
)

// Machine says what was measured on.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	Peak  string `json:"peak"` // instruction set of the multiply-add peak
	Go    string `json:"go"`
	OS    string `json:"os"`
}

func machine() Machine {
	m := Machine{Cores: runtime.NumCPU(), Peak: C.GoString(C.fma_name()), Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	return m
}

// multiplyAdd does a number of floating-point operations as fast as the machine can, on some threads.
func multiplyAdd(flops float64, threads int) {
	if threads == 1 {
		C.fma_run(C.int64_t(flops))
		return
	}
	var wg sync.WaitGroup
	for range threads {
		wg.Go(func() { C.fma_run(C.int64_t(flops / float64(threads))) })
	}
	wg.Wait()
}

// readParts reads x, on some threads.
func readParts(x []float32, threads int) float32 {
	read := func(x []float32) uint64 {
		return uint64(C.read_run((*C.uint64_t)(unsafe.Pointer(&x[0])), C.int64_t(len(x)/2)))
	}
	if threads == 1 {
		return float32(read(x))
	}
	var wg sync.WaitGroup
	sums := make([]uint64, threads)
	for i := range threads {
		lo, hi := i*len(x)/threads, (i+1)*len(x)/threads
		wg.Go(func() { sums[i] = read(x[lo:hi]) })
	}
	wg.Wait()
	return float32(sums[0])
}

// copyParts copies src to dst, on some threads.
func copyParts(dst, src []float32, threads int) {
	if threads == 1 {
		copy(dst, src)
		return
	}
	var wg sync.WaitGroup
	for i := range threads {
		lo, hi := i*len(src)/threads, (i+1)*len(src)/threads
		wg.Go(func() { copy(dst[lo:hi], src[lo:hi]) })
	}
	wg.Wait()
}
