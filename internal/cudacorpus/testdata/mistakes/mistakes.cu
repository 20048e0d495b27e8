// Mistakes that kernels in use were found to have, one in each.
#include <cuda_pipeline.h>

// The tree's steps have no barrier between them.
extern "C" __global__ void tree_without_barrier(const float *x, float *y) {
    __shared__ float s[128];
    s[threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x];
    __syncthreads();
    for (int d = 64; d > 0; d >>= 1)
        if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    if (threadIdx.x == 0) y[blockIdx.x] = s[0];
}

// The last steps trust that lanes of a warp go in step, which since Volta they need not.
extern "C" __global__ void warp_in_step(const float *x, float *y) {
    __shared__ float v[64];
    v[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 32) {
        v[threadIdx.x] += v[threadIdx.x + 32];
        v[threadIdx.x] += v[threadIdx.x + 16];
        v[threadIdx.x] += v[threadIdx.x + 8];
        v[threadIdx.x] += v[threadIdx.x + 4];
        v[threadIdx.x] += v[threadIdx.x + 2];
        v[threadIdx.x] += v[threadIdx.x + 1];
    }
    if (threadIdx.x == 0) y[blockIdx.x] = v[0];
}

// A tile is filled again while others still read it.
extern "C" __global__ void tile_filled_early(const float *a, const float *b, float *c, int n) {
    __shared__ float s[16][16], t[16][16];
    int x = threadIdx.x, y = threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        s[y][x] = a[y * n + k + x];
        t[y][x] = b[(k + y) * 16 + x];
        __syncthreads();
        for (int l = 0; l < 16; l++) sum += s[y][l] * t[l][x];
    }
    c[y * 16 + x] = sum;
}

// Counts without atomics.
extern "C" __global__ void count_without_atomics(const int *bin, int *bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) bins[bin[i]]++;
}

// One too many: i <= n.
extern "C" __global__ void one_too_many(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) x[i] = 2 * x[i];
}

// The halo is wider than what shared memory has room for.
extern "C" __global__ void halo(const float *x, float *y) {
    __shared__ float s[64 + 1];
    s[threadIdx.x + 1] = x[threadIdx.x];
    if (threadIdx.x == 0) s[0] = 0;
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 1] + s[threadIdx.x + 2];
}

// Threads beyond the end leave their part of shared memory as it was.
extern "C" __global__ void tail_not_written(const float *x, float *y, int n) {
    __shared__ float s[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < n) s[threadIdx.x] = x[i];
    __syncthreads();
    for (int d = 64; d > 0; d >>= 1) {
        if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = s[0];
}

// Sums are added to memory that nobody has set to zero.
extern "C" __global__ void sum_from_nothing(const float *x, float *sum) { atomicAdd(sum, x[blockIdx.x * blockDim.x + threadIdx.x]); }

// A barrier that not all threads of a warp come to.
extern "C" __global__ void barrier_for_some(const float *x, float *y) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x % 3 != 0) __syncthreads();
    y[threadIdx.x] = s[63 - threadIdx.x];
}

// Lanes that have left are asked for their values.
extern "C" __global__ void shuffle_after_return(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0) atomicAdd(y, v);
}

// What the last block sums need not be in memory yet: there is no fence before the count.
extern "C" __global__ void last_block_without_fence(const float *x, float *partial, unsigned *count, float *y) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = x[blockIdx.x];
        last = atomicAdd(count, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float s = 0;
        for (int b = 0; b < gridDim.x; b++) s += ((volatile float *)partial)[b];
        *y = s;
    }
}

// Four floats from an address that is no multiple of 16.
extern "C" __global__ void four_from_anywhere(const float *x, float4 *y) { y[threadIdx.x] = *(const float4 *)(x + 1 + 4 * threadIdx.x); }

// A copy in the background is read before it has been waited for.
extern "C" __global__ void copy_not_awaited(const float *x, float *y) {
    __shared__ float s[64];
    __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 4);
    __pipeline_commit();
    y[threadIdx.x] = s[threadIdx.x];
}
