// Histograms with atomics.

// 256 bins in shared memory, four bytes a load.
extern "C" __global__ void histogram256(const unsigned *data, unsigned *bins, int words) {
    __shared__ unsigned s[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) s[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
        unsigned v = data[i];
        atomicAdd(&s[v & 255], 1);
        atomicAdd(&s[v >> 8 & 255], 1);
        atomicAdd(&s[v >> 16 & 255], 1);
        atomicAdd(&s[v >> 24], 1);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], s[i]);
}

// Bins of a byte for each thread, as NVIDIA's sample of 64 bins has them.
extern "C" __global__ void histogram64(const unsigned char *data, unsigned *partial, int n) {
    __shared__ __align__(4) unsigned char s[64 * 64];
    for (int i = 0; i < 16; i++) ((unsigned *)s)[threadIdx.x + i * 64] = 0;
    __syncthreads();
    int begin = blockIdx.x * 64 * 4 + threadIdx.x;
    for (int i = 0; i < 4; i++)
        if (begin + i * 64 < n) s[threadIdx.x + (data[begin + i * 64] >> 2) * 64]++;
    __syncthreads();
    unsigned sum = 0;
    for (int i = 0; i < 64; i++) sum += s[threadIdx.x * 64 + (i + threadIdx.x) % 64];
    partial[blockIdx.x * 64 + threadIdx.x] = sum;
}

// Floats in bins, by compare and swap.
__device__ double add(double *at, double v) {
    unsigned long long *p = (unsigned long long *)at, old = *(volatile unsigned long long *)p, seen;
    do {
        seen = old;
        old = atomicCAS(p, seen, __double_as_longlong(v + __longlong_as_double(seen)));
    } while (seen != old);
    return __longlong_as_double(old);
}

extern "C" __global__ void weighted(const int *bin, const float *weight, double *sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) add(&sums[bin[i]], weight[i]);
}

// Everything that atomics of 32 bits do, one after the other.
extern "C" __global__ void atomics(int *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(&out[0], 10);
    atomicSub(&out[1], 10);
    atomicMax(&out[2], (int)i - 50);
    atomicMin(&out[3], (int)i - 50);
    atomicInc((unsigned *)&out[4], 17);
    atomicDec((unsigned *)&out[5], 137);
    atomicAnd(&out[6], 2 * i + 7);
    atomicOr(&out[7], 1 << i % 30);
    atomicXor(&out[8], i);
    atomicExch(&out[9], 42);
    atomicCAS(&out[10], 7, 11);
}
