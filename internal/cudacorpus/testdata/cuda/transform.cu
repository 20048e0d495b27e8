// Walsh transforms, transposes, cosine transforms.

// In shared memory, radix 4, as NVIDIA's sample does it.
extern "C" __global__ void walsh(float *out, const float *in, int log2n) {
    const int n = 1 << log2n;
    extern __shared__ float s[];
    for (int p = threadIdx.x; p < n; p += blockDim.x) s[p] = in[blockIdx.x * n + p];
    const int p = threadIdx.x;
    for (int stride = n >> 2; stride > 0; stride >>= 2) {
        int low = p & (stride - 1), i0 = ((p - low) << 2) + low, i1 = i0 + stride, i2 = i1 + stride, i3 = i2 + stride;
        __syncthreads();
        float d0 = s[i0], d1 = s[i1], d2 = s[i2], d3 = s[i3], t;
        t = d0, d0 = d0 + d2, d2 = t - d2;
        t = d1, d1 = d1 + d3, d3 = t - d3;
        t = d0, s[i0] = d0 + d1, s[i1] = t - d1;
        t = d2, s[i2] = d2 + d3, s[i3] = t - d3;
    }
    if (log2n & 1) {
        __syncthreads();
        for (int p = threadIdx.x; p < n / 2; p += blockDim.x) {
            int i0 = p << 1, i1 = i0 + 1;
            float d0 = s[i0], d1 = s[i1];
            s[i0] = d0 + d1;
            s[i1] = d0 - d1;
        }
    }
    __syncthreads();
    for (int p = threadIdx.x; p < n; p += blockDim.x) out[blockIdx.x * n + p] = s[p];
}

// A stage of radix 2 in global memory.
extern "C" __global__ void walsh_stage(float *x, int n, int stride) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n / 2) return;
    int low = p & (stride - 1), i = 2 * (p - low) + low;
    float a = x[i], b = x[i + stride];
    x[i] = a + b;
    x[i + stride] = a - b;
}

// Tiles of 32 by 32 and rows of 33, by 8 rows of threads.
extern "C" __global__ void transpose(const float *x, float *y, int w, int h) {
    __shared__ float tile[32][33];
    int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (i < w && j + k < h) tile[threadIdx.y + k][threadIdx.x] = x[(j + k) * w + i];
    __syncthreads();
    i = blockIdx.y * 32 + threadIdx.x, j = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (i < h && j + k < w) y[(j + k) * h + i] = tile[threadIdx.x][threadIdx.y + k];
}

// Cosine transforms of blocks of 8 by 8, the table in constant memory.
__constant__ float cosines[64];

extern "C" __global__ void dct8x8(const float *x, float *y, int w) {
    __shared__ float s[64], r[64];
    int i = threadIdx.x, j = threadIdx.y, at = (blockIdx.y * 8 + j) * w + blockIdx.x * 8 + i;
    s[j * 8 + i] = x[at];
    __syncthreads();
    float v = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) v += cosines[j * 8 + k] * s[k * 8 + i];
    r[j * 8 + i] = v;
    __syncthreads();
    v = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) v += r[j * 8 + k] * cosines[i * 8 + k];
    y[at] = v;
}
