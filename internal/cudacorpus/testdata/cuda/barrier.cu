// A barrier of libcu++.
#include <cuda/barrier>

#if __CUDA_ARCH__ >= 800
// cuda::barrier: arrive, work, wait.
extern "C" __global__ void split_barrier(const int *x, int *y, int rounds) {
    using barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ barrier b;
    __shared__ int s[128];
    if (threadIdx.x == 0) init(&b, blockDim.x);
    __syncthreads();
    int v = x[threadIdx.x];
    for (int r = 0; r < rounds; r++) {
        s[threadIdx.x] = v;
        auto token = b.arrive();
        int own = v * 3;
        b.wait(std::move(token));
        v = own + s[(threadIdx.x + 1) % 128];
        b.arrive_and_wait();
    }
    y[threadIdx.x] = v;
}
#endif
