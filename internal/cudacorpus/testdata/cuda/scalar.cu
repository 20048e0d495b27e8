// Arithmetic, conversions, calls and memory of single threads.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void functions(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    y[i] = sinf(v) + cosf(v * 3) * expf(-v * v) + logf(1 + v * v) + powf(fabsf(v) + 0.5f, 1.7f) + erff(v) + atan2f(v, 0.3f);
    y[i] += sqrtf(v * v + 2) + rsqrtf(v * v + 1) + cbrtf(v) + tanhf(v) + fmodf(v * 10, 0.7f) + roundf(v * 4) + __fdividef(v, 3);
}

extern "C" __global__ void doubles(const double *x, double *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double v = x[i];
    y[i] = sin(v) * exp(v) + log(v * v + 1) / sqrt(v * v + 1) + pow(v * v, 0.3) + fma(v, v, 1.0) + tgamma(v + 2.5) + (int)(v * 100);
}

extern "C" __global__ void black_scholes(const float *price, const float *strike, const float *years, float *call, float *put, float r, float s, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float t = sqrtf(years[i]), d1 = (logf(price[i] / strike[i]) + (r + 0.5f * s * s) * years[i]) / (s * t), d2 = d1 - s * t;
        float n1 = normcdff(d1), n2 = normcdff(d2), e = expf(-r * years[i]);
        call[i] = price[i] * n1 - strike[i] * e * n2;
        put[i] = strike[i] * e * (1 - n2) - price[i] * (1 - n1);
    }
}

extern "C" __global__ void integers(const unsigned *x, unsigned *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned v = x[i];
    unsigned long long w = (unsigned long long)v * 0x9e3779b97f4a7c15ull;
    unsigned r = v / 7 + v % 10 + (unsigned)((int)v / 13) + (unsigned)((int)v % 11) + (unsigned)(w / 1000003) + (unsigned)(w % 77);
    r ^= __popc(v) + __clz(v) * 3 + __ffs(v) * 5 + (__brev(v) >> 7) + __byte_perm(v, v * 3, 0x5140) + __umulhi(v, v) + __funnelshift_l(v, r, 5);
    r += (unsigned)(long long)((long long)w >> 33) + (v / ((v & 15) + 1)) + __sad((int)v, 1000, 5) + (unsigned)__popcll(w) + (unsigned)__clzll(w);
    y[i] = r;
}

extern "C" __global__ void halves(const half2 *x, half2 *y, half a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    half2 v = __hfma2(__half2half2(a), x[i], __floats2half2_rn(1.0f, -1.0f));
    v = __hmax2(v, __float2half2_rn(-1.5f));
    y[i] = __hge(__low2half(v), __float2half(0.5f)) ? __lowhigh2highlow(v) : v;
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void gelu_bf16(const __nv_bfloat16 *x, __nv_bfloat16 *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = __bfloat162float(x[i]);
    y[i] = __float2bfloat16(0.5f * v * (1 + erff(v * 0.70710678f)));
}
#endif

// A structure by value, with padding, and an array in local memory.
struct Options {
    char kind;
    short offset;
    double scale;
    int order[4];
};

extern "C" __global__ void structures(const double *x, double *y, Options o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double v[4];
    for (int k = 0; k < 4; k++) v[k] = x[4 * i + k] * o.scale + o.offset;
    if (o.kind == 'r')
        for (int k = 0; k < 4; k++) y[4 * i + k] = v[o.order[k]];
}

// Calls that are not inlined, by table and by themselves.
typedef float (*Function)(float);
__device__ __noinline__ float twice(float v) { return v * 2; }
__device__ __noinline__ float square(float v) { return v * v; }
__device__ __noinline__ float next(float v) { return v + 1; }
__device__ Function table[3] = {twice, square, next};

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

extern "C" __global__ void calls(const int *which, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = table[which[i]](i) + fibonacci(i % 9);
}

// Iterations that differ from lane to lane.
extern "C" __global__ void mandelbrot(unsigned char *image, int w, int h, int limit) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= w || j >= h) return;
    float cx = __fmaf_rn(i, 3.0f / w, -2), cy = __fmaf_rn(j, 2.0f / h, -1), x = 0, y = 0;
    int k = 0;
    while (k < limit && x * x + y * y < 4) {
        float t = __fadd_rn(__fsub_rn(__fmul_rn(x, x), __fmul_rn(y, y)), cx);
        y = __fmaf_rn(2 * x, y, cy);
        x = t;
        k++;
    }
    image[j * w + i] = k;
}

// A switch in a loop: a small interpreter.
extern "C" __global__ void interpreter(const unsigned char *code, const int *x, int *y, int n) {
    int i = threadIdx.x, stack[8], top = 0;
    stack[0] = x[i];
    for (int pc = 0; pc < n; pc++) switch (code[pc]) {
        case 0: stack[top + 1] = stack[top]; top++; break;
        case 1: stack[top - 1] += stack[top]; top--; break;
        case 2: stack[top - 1] *= stack[top]; top--; break;
        case 3: stack[top] -= 3; break;
        case 4: stack[top] = stack[top] > 0 ? stack[top] : -stack[top]; break;
        case 5: stack[++top] = i; break;
        }
    y[i] = stack[top];
}
