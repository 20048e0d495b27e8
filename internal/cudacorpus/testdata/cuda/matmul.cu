// Matrix products.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// Tiles of 16 by 16 in shared memory, any sizes.
extern "C" __global__ void matmul_tiles(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float x[16][16], y[16][16];
    int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
    float v = 0;
    for (int t = 0; t < k; t += 16) {
        x[threadIdx.y][threadIdx.x] = i < m && t + threadIdx.x < k ? a[i * k + t + threadIdx.x] : 0;
        y[threadIdx.y][threadIdx.x] = j < n && t + threadIdx.y < k ? b[(t + threadIdx.y) * n + j] : 0;
        __syncthreads();
#pragma unroll
        for (int l = 0; l < 16; l++) v += x[threadIdx.y][l] * y[l][threadIdx.x];
        __syncthreads();
    }
    if (i < m && j < n) c[i * n + j] = v;
}

// Eight by four results a thread, in registers.
extern "C" __global__ void __launch_bounds__(64) matmul_registers(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float x[8][64], y[8][32];
    float v[8][4] = {};
    int tx = threadIdx.x % 8, ty = threadIdx.x / 8, i0 = blockIdx.y * 64, j0 = blockIdx.x * 32;
    for (int t = 0; t < k; t += 8) {
        for (int l = 0; l < 8; l++) x[l][threadIdx.x] = a[(i0 + threadIdx.x) * k + t + l];
        for (int l = 0; l < 4; l++) {
            int e = threadIdx.x + l * 64;
            y[e / 32][e % 32] = b[(t + e / 32) * n + j0 + e % 32];
        }
        __syncthreads();
        for (int l = 0; l < 8; l++) {
            float p[8], q[4];
            for (int r = 0; r < 8; r++) p[r] = x[l][ty * 8 + r];
            for (int s = 0; s < 4; s++) q[s] = y[l][tx * 4 + s];
            for (int r = 0; r < 8; r++)
                for (int s = 0; s < 4; s++) v[r][s] = fmaf(p[r], q[s], v[r][s]);
        }
        __syncthreads();
    }
    for (int r = 0; r < 8; r++)
        *(float4 *)&c[(i0 + ty * 8 + r) * n + j0 + tx * 4] = make_float4(v[r][0], v[r][1], v[r][2], v[r][3]);
}

// Dynamic shared memory that two types share.
extern "C" __global__ void matvec_double(const double *a, const float *x, double *y, int n) {
    extern __shared__ __align__(16) unsigned char raw[];
    double *sums = (double *)raw;
    float *xs = (float *)(sums + blockDim.x);
    for (int i = threadIdx.x; i < n; i += blockDim.x) xs[i] = x[i];
    __syncthreads();
    double v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) v += a[blockIdx.x * n + i] * xs[i];
    sums[threadIdx.x] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < blockDim.x; i++) v += sums[i];
        y[blockIdx.x] = v;
    }
}

#if __CUDA_ARCH__ >= 700
// Tensor cores by fragments: halves, sums in float.
extern "C" __global__ void matmul_wmma(const half *a, const half *b, float *c, int m, int n, int k) {
    int i = (blockIdx.y * blockDim.y + threadIdx.y) * 16, j = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 16;
    if (i >= m || j >= n) return;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;
    wmma::fill_fragment(z, 0.0f);
    for (int t = 0; t < k; t += 16) {
        wmma::load_matrix_sync(x, a + i * k + t, k);
        wmma::load_matrix_sync(y, b + j * k + t, k);
        wmma::mma_sync(z, x, y, z);
    }
    wmma::store_matrix_sync(c + i * n + j, z, n, wmma::mem_row_major);
}
#endif

#if __CUDA_ARCH__ >= 750
extern "C" __global__ void matmul_wmma_s8(const signed char *a, const signed char *b, int *c, int n, int k) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> z;
    wmma::fill_fragment(z, 0);
    for (int t = 0; t < k; t += 16) {
        wmma::load_matrix_sync(x, a + t, k);
        wmma::load_matrix_sync(y, b + t * n, n);
        wmma::mma_sync(z, x, y, z);
    }
    wmma::store_matrix_sync(c, z, n, wmma::mem_row_major);
}
#endif

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void matmul_wmma_bf16(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n, int k) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;
    wmma::load_matrix_sync(z, c, n, wmma::mem_row_major);
    for (int t = 0; t < k; t += 16) {
        wmma::load_matrix_sync(x, a + t, k);
        wmma::load_matrix_sync(y, b + t * n, n);
        wmma::mma_sync(z, x, y, z);
    }
    for (int i = 0; i < z.num_elements; i++) z.x[i] *= 0.5f;
    wmma::store_matrix_sync(c, z, n, wmma::mem_row_major);
}

// Inline PTX: ldmatrix and mma, 16 by 8 results a warp.
extern "C" __global__ void matmul_mma(const half *a, const half *b, float *c, int n, int k) {
    __shared__ __align__(16) half x[16][24], y[16][24];
    int lane = threadIdx.x, i0 = blockIdx.y * 16, j0 = blockIdx.x * 8;
    float z[4] = {0, 0, 0, 0};
    for (int t = 0; t < k; t += 16) {
        *(uint4 *)&x[lane / 2][lane % 2 * 8] = *(const uint4 *)&a[(i0 + lane / 2) * k + t + lane % 2 * 8];
        if (lane < 16) *(uint4 *)&y[lane][0] = *(const uint4 *)&b[(t + lane) * n + j0];
        __syncwarp();
        unsigned p[4], q[2];
        unsigned xs = __cvta_generic_to_shared(&x[lane % 16][lane / 16 * 8]), ys = __cvta_generic_to_shared(&y[lane % 16][0]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(p[0]), "=r"(p[1]), "=r"(p[2]), "=r"(p[3]) : "r"(xs) : "memory");
        asm volatile("ldmatrix.sync.aligned.x2.trans.m8n8.shared.b16 {%0, %1}, [%2];" : "=r"(q[0]), "=r"(q[1]) : "r"(ys) : "memory");
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(z[0]), "+f"(z[1]), "+f"(z[2]), "+f"(z[3])
                     : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(q[0]), "r"(q[1]));
        __syncwarp();
    }
    int row = i0 + lane / 4, col = j0 + lane % 4 * 2;
    c[row * n + col] = z[0], c[row * n + col + 1] = z[1];
    c[(row + 8) * n + col] = z[2], c[(row + 8) * n + col + 1] = z[3];
}
#endif
