// Prefix sums.

// Two buffers, a distance twice as long each time; inclusive.
extern "C" __global__ void scan_buffers(const int *x, int *y, int n) {
    extern __shared__ int temp[];
    int t = threadIdx.x, out = 0, in = 1;
    temp[t] = t < n ? x[t] : 0;
    __syncthreads();
    for (int d = 1; d < n; d *= 2) {
        out = 1 - out;
        in = 1 - out;
        temp[out * blockDim.x + t] = t >= d ? temp[in * blockDim.x + t] + temp[in * blockDim.x + t - d] : temp[in * blockDim.x + t];
        __syncthreads();
    }
    if (t < n) y[t] = temp[out * blockDim.x + t];
}

// Up and down a tree; exclusive, two elements a thread.
extern "C" __global__ void scan_tree(const int *x, int *y, int n) {
    __shared__ int s[512];
    int t = threadIdx.x, base = blockIdx.x * 512, d = 1;
    s[2 * t] = base + 2 * t < n ? x[base + 2 * t] : 0;
    s[2 * t + 1] = base + 2 * t + 1 < n ? x[base + 2 * t + 1] : 0;
    for (int h = 256; h > 0; h >>= 1) {
        __syncthreads();
        if (t < h) s[d * (2 * t + 2) - 1] += s[d * (2 * t + 1) - 1];
        d *= 2;
    }
    if (t == 0) s[511] = 0;
    for (int h = 1; h < 512; h *= 2) {
        d >>= 1;
        __syncthreads();
        if (t < h) {
            int a = d * (2 * t + 1) - 1, b = d * (2 * t + 2) - 1, v = s[a];
            s[a] = s[b];
            s[b] += v;
        }
    }
    __syncthreads();
    if (base + 2 * t < n) y[base + 2 * t] = s[2 * t];
    if (base + 2 * t + 1 < n) y[base + 2 * t + 1] = s[2 * t + 1];
}

__device__ int warp_scan(int v) {
    for (int d = 1; d < 32; d *= 2) {
        int u = __shfl_up_sync(~0u, v, d);
        if (threadIdx.x % 32 >= d) v += u;
    }
    return v;
}

// One pass over memory: each block waits for the sum of those before it. Blocks take their numbers as they begin.
struct Status {
    unsigned flag;
    int sum;
};

extern "C" __global__ void scan_one_pass(const int *x, int *y, Status *status, unsigned *ticket, int n) {
    __shared__ int warps[8];
    __shared__ int before;
    __shared__ unsigned number;
    if (threadIdx.x == 0) number = atomicAdd(ticket, 1);
    __syncthreads();
    unsigned b = number;
    int i = b * 256 + threadIdx.x;
    int v = warp_scan(i < n ? x[i] : 0);
    if (threadIdx.x % 32 == 31) warps[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        int w = warp_scan(threadIdx.x < 8 ? warps[threadIdx.x] : 0);
        if (threadIdx.x < 8) warps[threadIdx.x] = w;
    }
    __syncthreads();
    if (threadIdx.x >= 32) v += warps[threadIdx.x / 32 - 1];
    if (threadIdx.x == 255) {
        int sum = 0;
        if (b > 0) {
            while (((volatile Status *)status)[b - 1].flag == 0) __nanosleep(20);
            __threadfence();
            sum = ((volatile Status *)status)[b - 1].sum;
        }
        before = sum;
        ((volatile Status *)status)[b].sum = sum + v;
        __threadfence();
        ((volatile Status *)status)[b].flag = 1;
    }
    __syncthreads();
    if (i < n) y[i] = v + before;
}

// What is not zero moves to the front, in no particular order; groups of lanes share an atomic.
extern "C" __global__ void compact(const int *x, int *y, int *count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = i < n ? x[i] : 0;
    unsigned keep = __ballot_sync(~0u, v != 0);
    int lane = threadIdx.x % 32, first = 0;
    if (lane == 0 && keep) first = atomicAdd(count, __popc(keep));
    first = __shfl_sync(~0u, first, 0);
    if (v != 0) y[first + __popc(keep & ((1u << lane) - 1))] = v;
}
