// Stencils and convolutions.
#define R 4

__constant__ float taps[2 * R + 1];

// Rows of a separable filter, with a halo in shared memory.
extern "C" __global__ void convolve_rows(const float *x, float *y, int w) {
    __shared__ float s[4][64 + 2 * R];
    int i = blockIdx.x * 64 + threadIdx.x, j = blockIdx.y * 4 + threadIdx.y;
    s[threadIdx.y][threadIdx.x + R] = i < w ? x[j * w + i] : 0;
    if (threadIdx.x < R) {
        s[threadIdx.y][threadIdx.x] = i >= R && i - R < w ? x[j * w + i - R] : 0;
        s[threadIdx.y][threadIdx.x + R + 64] = i + 64 < w ? x[j * w + i + 64] : 0;
    }
    __syncthreads();
    if (i >= w) return;
    float v = 0;
#pragma unroll
    for (int k = -R; k <= R; k++) v += taps[k + R] * s[threadIdx.y][threadIdx.x + R + k];
    y[j * w + i] = v;
}

// A step of heat in a plate, from global memory.
extern "C" __global__ void heat(const float *x, float *y, int w, int h, float c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= w || j >= h) return;
    float m = x[j * w + i];
    if (i > 0 && i < w - 1 && j > 0 && j < h - 1)
        m += c * (x[j * w + i - 1] + x[j * w + i + 1] + x[(j - 1) * w + i] + x[(j + 1) * w + i] - 4 * m);
    y[j * w + i] = m;
}

// Conway's life on bytes, on a torus.
extern "C" __global__ void life(const unsigned char *x, unsigned char *y, int w, int h) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y;
    if (i >= w) return;
    int n = 0;
    for (int dj = -1; dj <= 1; dj++)
        for (int di = -1; di <= 1; di++)
            if (di || dj) n += x[(j + dj + h) % h * w + (i + di + w) % w];
    y[j * w + i] = n == 3 || (n == 2 && x[j * w + i]);
}

// A median of nine by a sorting network of its own.
__device__ void pair(short &a, short &b) {
    short t = min(a, b);
    b = max(a, b);
    a = t;
}

extern "C" __global__ void median3x3(const short *x, short *y, int w, int h) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= w || j >= h) return;
    short v[9];
    for (int k = 0; k < 9; k++) {
        int a = min(max(i + k % 3 - 1, 0), w - 1), b = min(max(j + k / 3 - 1, 0), h - 1);
        v[k] = x[b * w + a];
    }
    for (int k = 0; k < 9; k++)
        for (int l = k & 1; l < 8; l += 2) pair(v[l], v[l + 1]);
    y[j * w + i] = v[4];
}
