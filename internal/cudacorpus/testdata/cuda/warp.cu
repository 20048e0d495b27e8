// What the lanes of a warp do together.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// Votes and shuffles with masks of parts of a warp.
extern "C" __global__ void votes(const int *x, unsigned *y) {
    int lane = threadIdx.x % 32, v = x[threadIdx.x];
    unsigned r = __ballot_sync(~0u, v > 0);
    r ^= __any_sync(~0u, v > 900) << 3 ^ __all_sync(~0u, v > -2000) << 7;
    if (lane < 20) {
        unsigned part = (1u << 20) - 1;
        r += __shfl_sync(part, v, (lane + 7) % 20);
        r += __shfl_xor_sync(part, v, 1) * 5;
    } else {
        unsigned part = ~((1u << 20) - 1);
        r += __shfl_down_sync(part, v, 2, 4) * 3;
    }
    y[threadIdx.x] = r;
}

// Lanes that are still here share an atomic.
extern "C" __global__ void aggregated(const int *x, int *count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (x[i] > 0) {
        cg::coalesced_group g = cg::coalesced_threads();
        if (g.thread_rank() == 0) atomicAdd(count, g.size());
    }
}

// Tiles of four: a product of small matrices.
extern "C" __global__ void tiles_of_four(const float *x, float *y) {
    auto tile = cg::tiled_partition<4>(cg::this_thread_block());
    float v = x[blockIdx.x * blockDim.x + threadIdx.x], s = 0;
    for (int i = 0; i < 4; i++) s += tile.shfl(v, i) * (i + 1);
    s += tile.shfl_xor(v, 3);
    if (tile.any(v > 0.9f)) s = -s;
    y[blockIdx.x * blockDim.x + threadIdx.x] = s;
}

#if __CUDA_ARCH__ >= 700
extern "C" __global__ void matches(const int *x, unsigned *y) {
    int v = x[threadIdx.x];
    int all;
    unsigned same = __match_any_sync(~0u, v & 3);
    unsigned every = __match_all_sync(~0u, v, &all);
    y[threadIdx.x] = same ^ every ^ all;
}
#endif

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void warp_reductions(const unsigned *x, unsigned *y) {
    unsigned v = x[threadIdx.x];
    unsigned r = __reduce_add_sync(~0u, v) ^ __reduce_max_sync(~0u, v) ^ __reduce_xor_sync(~0u, v);
    r += __reduce_and_sync(~0u, v | 0xff0f) + __reduce_or_sync(~0u, v & 0xf0f0);
    y[threadIdx.x] = r + __reduce_min_sync(~0u, (int)v);
}
#endif
