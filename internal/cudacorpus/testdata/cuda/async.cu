// Copies in the background, clusters.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

#if __CUDA_ARCH__ >= 800
// A pipeline of two stages by the C interface.
extern "C" __global__ void pipeline(const float4 *x, float4 *y, int tiles) {
    __shared__ float4 s[2][64];
    const float4 *from = x + blockIdx.x * tiles * 64 + threadIdx.x;
    __pipeline_memcpy_async(&s[0][threadIdx.x], from, 16);
    __pipeline_commit();
    float4 v = make_float4(0, 0, 0, 0);
    for (int t = 0; t < tiles; t++) {
        if (t + 1 < tiles) __pipeline_memcpy_async(&s[(t + 1) % 2][threadIdx.x], from + (t + 1) * 64, 16);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        float4 a = s[t % 2][63 - threadIdx.x];
        v.x += a.x, v.y += a.y, v.z += a.z, v.w += a.w;
        __syncthreads();
    }
    y[blockIdx.x * 64 + threadIdx.x] = v;
}

// A tile by the collective copy of cooperative groups.
extern "C" __global__ void group_copy(const int *x, int *y, int n) {
    extern __shared__ int s[];
    cg::thread_block block = cg::this_thread_block();
    for (int begin = 0; begin < n; begin += block.size()) {
        int count = min((int)block.size(), n - begin);
        cg::memcpy_async(block, s, x + begin, sizeof(int) * count);
        cg::wait(block);
        if (threadIdx.x < count) y[begin + threadIdx.x] = s[count - 1 - threadIdx.x];
        block.sync();
    }
}
#endif

#if __CUDA_ARCH__ >= 900
// The blocks of a cluster add up their histograms in each other's shared memory.
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_histogram(const int *x, int *bins, int n) {
    __shared__ int s[32];
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x < 32) s[threadIdx.x] = 0;
    cluster.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int bin = x[i] & 63;
        int *there = cluster.map_shared_rank(s, bin / 32);
        atomicAdd(there + bin % 32, 1);
    }
    cluster.sync();
    if (threadIdx.x < 32) atomicAdd(&bins[cluster.block_rank() * 32 + threadIdx.x], s[threadIdx.x]);
}

// A bulk copy that an mbarrier counts, in PTX.
extern "C" __global__ void bulk_copy(const float *x, float *y) {
    __shared__ __align__(128) float s[256];
    __shared__ __align__(8) unsigned long long b;
    unsigned to = __cvta_generic_to_shared(s), bar = __cvta_generic_to_shared(&b);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(bar) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" ::"r"(to), "l"(x + blockIdx.x * 256), "r"(bar) : "memory");
    }
    asm volatile("{\n.reg .pred p;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@p bra DONE;\nbra WAIT;\nDONE:\n}" ::"r"(bar) : "memory");
    y[blockIdx.x * 256 + threadIdx.x] = s[255 - threadIdx.x];
}
#endif
