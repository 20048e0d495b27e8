// Bodies, grids, graphs, rows.
#include <math_constants.h>

// Forces between bodies, tiles of which are in shared memory.
extern "C" __global__ void bodies(const float4 *x, float4 *acceleration, int n, float soft) {
    extern __shared__ float4 tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = i < n ? x[i] : make_float4(0, 0, 0, 0);
    float3 a = make_float3(0, 0, 0);
    for (int t = 0; t < n; t += blockDim.x) {
        tile[threadIdx.x] = t + threadIdx.x < n ? x[t + threadIdx.x] : make_float4(0, 0, 0, 0);
        __syncthreads();
#pragma unroll 4
        for (int j = 0; j < blockDim.x; j++) {
            float4 b = tile[j];
            float dx = b.x - me.x, dy = b.y - me.y, dz = b.z - me.z, inv = rsqrtf(dx * dx + dy * dy + dz * dz + soft);
            float s = b.w * inv * inv * inv;
            a.x += dx * s, a.y += dy * s, a.z += dz * s;
        }
        __syncthreads();
    }
    if (i < n) acceleration[i] = make_float4(a.x, a.y, a.z, 0);
}

// Sparse rows, a warp each.
extern "C" __global__ void sparse_rows(const int *start, const int *column, const float *value, const float *x, float *y, int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float s = 0;
    for (int i = start[row] + lane; i < start[row + 1]; i += 32) s += value[i] * x[column[i]];
    for (int d = 16; d; d /= 2) s += __shfl_down_sync(~0u, s, d);
    if (lane == 0) y[row] = s;
}

// Softmax of rows in shared memory, a block each.
__device__ float block_reduce(float v, float *s, bool maximum) {
    for (int d = 16; d; d /= 2) {
        float o = __shfl_xor_sync(~0u, v, d);
        v = maximum ? fmaxf(v, o) : v + o;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
    __syncthreads();
    v = s[0];
    for (int w = 1; w < blockDim.x / 32; w++) v = maximum ? fmaxf(v, s[w]) : v + s[w];
    return v;
}

extern "C" __global__ void softmax(const float *x, float *y, int n) {
    __shared__ float s[32];
    x += (size_t)blockIdx.x * n, y += (size_t)blockIdx.x * n;
    float m = -CUDART_INF_F, sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) m = fmaxf(m, x[i]);
    m = block_reduce(m, s, true);
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += __expf(x[i] - m);
    sum = block_reduce(sum, s, false);
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = __expf(x[i] - m) / sum;
}

// A level of a breadth-first search.
extern "C" __global__ void search_level(const int *start, const int *edge, int *distance, int *more, int level, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || atomicAdd(&distance[i], 0) != level) return;
    for (int e = start[i]; e < start[i + 1]; e++)
        if (atomicCAS(&distance[edge[e]], -1, level + 1) == -1) atomicExch(more, 1);
}

// The longest common subsequence, by diagonals, in one block.
extern "C" __global__ void subsequence(const char *a, const char *b, int *length, int n, int m) {
    extern __shared__ int d[];
    int width = n + 1;
    for (int i = threadIdx.x; i < 3 * width; i += blockDim.x) d[i] = 0;
    __syncthreads();
    for (int s = 2; s <= n + m; s++) {
        int *now = d + s % 3 * width, *last = d + (s + 2) % 3 * width, *before = d + (s + 1) % 3 * width;
        for (int i = threadIdx.x; i <= n; i += blockDim.x) {
            int j = s - i, v = 0;
            if (i > 0 && j > 0 && j <= m) v = a[i - 1] == b[j - 1] ? before[i - 1] + 1 : max(last[i - 1], last[i]);
            now[i] = v;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) *length = d[(n + m) % 3 * width + n];
}

// Random numbers and a count of those in the circle.
extern "C" __global__ void monte_carlo(unsigned long long *inside, unsigned seed, int rounds) {
    unsigned s = seed + (blockIdx.x * blockDim.x + threadIdx.x) * 2654435761u;
    unsigned hits = 0;
    for (int i = 0; i < rounds; i++) {
        s ^= s << 13, s ^= s >> 17, s ^= s << 5;
        unsigned x = s >> 16, y = s & 0xffff;
        hits += x * x / 2 + y * y / 2 < 0x7fffffffu;
    }
    for (int d = 16; d; d /= 2) hits += __shfl_down_sync(~0u, hits, d);
    if (threadIdx.x % 32 == 0) atomicAdd(inside, (unsigned long long)hits);
}

// A lock, and a sum under it.
__device__ unsigned locked;

extern "C" __global__ void under_lock(volatile int *sum) {
    if (threadIdx.x == 0) {
        while (atomicCAS(&locked, 0, 1) != 0) {}
        __threadfence();
        *sum = *sum + blockIdx.x + 1;
        __threadfence();
        atomicExch(&locked, 0);
    }
}
