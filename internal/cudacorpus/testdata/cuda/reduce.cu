// Sums and maxima, from the textbook's tree to cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

// A tree in shared memory, half of the threads less each time.
extern "C" __global__ void sum_tree(const float *x, float *sums, int n) {
    extern __shared__ float part[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x * 2 + t;
    float v = i < n ? x[i] : 0.0f;
    if (i + blockDim.x < n) v += x[i + blockDim.x];
    part[t] = v;
    __syncthreads();
    for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s) part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = part[0];
}

// Shuffles in warps, then over warps; blocks are added by an atomic.
extern "C" __global__ void sum_shuffle(const float *x, float *sum, int n) {
    __shared__ float warps[32];
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
    for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < (blockDim.x + 31) / 32 ? warps[threadIdx.x] : 0;
        for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
        if (threadIdx.x == 0) atomicAdd(sum, v);
    }
}

// Vectors of four, and a double for each thread.
extern "C" __global__ void dot_double(const float4 *x, const float4 *y, double *sums, int n) {
    __shared__ double part[128];
    double v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float4 a = x[i], b = y[i];
        v += (double)a.x * b.x + (double)a.y * b.y + (double)a.z * b.z + (double)a.w * b.w;
    }
    part[threadIdx.x] = v;
    __syncthreads();
#pragma unroll
    for (int s = 64; s > 0; s /= 2) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

// The last block to finish adds up what the others left.
__device__ unsigned finished;

extern "C" __global__ void sum_last_block(const int *x, volatile int *partial, int *sum, int n) {
    __shared__ int part[256];
    __shared__ bool last;
    int v = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) v += x[i];
    part[threadIdx.x] = v;
    __syncthreads();
    for (int s = 128; s > 0; s >>= 1) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = part[0];
        __threadfence();
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    if (threadIdx.x == 0) {
        __threadfence();
        int total = 0;
        for (int i = 0; i < gridDim.x; i++) total += partial[i];
        *sum = total;
    }
}

// Tiles of cooperative groups.
extern "C" __global__ void max_groups(const int *x, int *out, int n) {
    __shared__ int part[32];
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
    int v = -2147483647 - 1;
    for (int i = block.group_index().x * block.size() + block.thread_rank(); i < n; i += gridDim.x * block.size()) v = max(v, x[i]);
    v = cg::reduce(tile, v, cg::greater<int>());
    if (tile.thread_rank() == 0) part[tile.meta_group_rank()] = v;
    cg::sync(block);
    if (tile.meta_group_rank() == 0) {
        v = tile.thread_rank() < tile.meta_group_size() ? part[tile.thread_rank()] : -2147483647 - 1;
        v = cg::reduce(tile, v, cg::greater<int>());
        if (tile.thread_rank() == 0) atomicMax(out, v);
    }
}

// All blocks wait for each other.
extern "C" __global__ void sum_grid(const int *x, int *partial, int *sum, int n) {
    cg::grid_group grid = cg::this_grid();
    int v = 0;
    for (int i = grid.thread_rank(); i < n; i += grid.size()) v += x[i];
    partial[grid.thread_rank()] = v;
    for (int s = grid.size() / 2; s > 0; s /= 2) {
        grid.sync();
        if (grid.thread_rank() < s) partial[grid.thread_rank()] += partial[grid.thread_rank() + s];
    }
    if (grid.thread_rank() == 0) *sum = partial[0];
}

// Where the largest is, lowest index first: value and index in one word.
extern "C" __global__ void argmax(const unsigned *x, unsigned long long *best, int n) {
    unsigned long long v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned long long c = (unsigned long long)x[i] << 32 | (0xffffffffu - i);
        v = c > v ? c : v;
    }
    for (int d = 16; d; d >>= 1) {
        unsigned long long o = __shfl_xor_sync(~0u, v, d);
        v = o > v ? o : v;
    }
    if (threadIdx.x % 32 == 0) atomicMax(best, v);
}
