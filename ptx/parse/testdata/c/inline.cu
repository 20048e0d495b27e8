// CUDA without its headers: printf, inline assembly, dynamic shared memory, launch bounds, templates.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))

extern "C" __device__ int vprintf(const char *, void *);

__constant__ float scale = 2.5f;
__device__ int total[4] = {1, 2};
extern __shared__ char dynamic[];

struct box { float lo[3], hi[3]; };

template <typename T> __device__ __attribute__((noinline)) T twice(T x) { return x + x; }

__device__ float sum(box b) {
	float s = 0;
	for (int i = 0; i < 3; i++)
		s += b.hi[i] - b.lo[i];
	return s;
}

__global__ void __attribute__((launch_bounds(256, 2))) hello(float *out, box b, int n) {
	__shared__ float tile[16][17];
	int t = __nvvm_read_ptx_sreg_tid_x();
	struct { int a; double b; } args = {t, (double)scale};
	vprintf("%d %f\n", &args);
	tile[t & 15][t >> 4] = sum(b);
	asm volatile("bar.sync 0;" ::: "memory");
	unsigned r;
	asm("{\n\t.reg .u32 t1;\n\tmul.lo.u32 t1, %1, 3;\n\tadd.u32 %0, t1, 1;\n\t}" : "=r"(r) : "r"(n));
	asm("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %1, 0;\n\tselp.u32 %0, 1, 2, p;\n\t}" : "=r"(r) : "r"(r));
	for (int i = 0; i < n; i++)
		asm volatile("{\n\t.reg .pred p;\nLOOP:\n\tatom.global.cas.b32 %0, [%1], 0, 1;\n\tsetp.eq.u32 p, %0, 0;\n\t"
			     "@p bra DONE;\n\tbra LOOP;\nDONE:\n\t}" : "=r"(r) : "l"(total) : "memory");
	out[t] = twice(tile[t >> 4][t & 15]) + (float)twice((double)r) + ((float *)dynamic)[t];
}
