// Sorting networks and counting.
__device__ void order(unsigned &a, unsigned &b, bool up) {
    if ((a > b) == up) {
        unsigned t = a;
        a = b;
        b = t;
    }
}

// Bitonic sort of 512 keys in shared memory, or fewer.
extern "C" __global__ void bitonic(unsigned *keys, unsigned length, unsigned direction) {
    __shared__ unsigned s[512];
    keys += blockIdx.x * 512 + threadIdx.x;
    s[threadIdx.x] = keys[0];
    s[threadIdx.x + 256] = keys[256];
    for (unsigned size = 2; size < length; size <<= 1) {
        unsigned up = direction ^ ((threadIdx.x & (size / 2)) != 0);
        for (unsigned stride = size / 2; stride > 0; stride >>= 1) {
            __syncthreads();
            unsigned p = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            order(s[p], s[p + stride], up);
        }
    }
    for (unsigned stride = length / 2; stride > 0; stride >>= 1) {
        __syncthreads();
        unsigned p = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
        order(s[p], s[p + stride], direction);
    }
    __syncthreads();
    keys[0] = s[threadIdx.x];
    keys[256] = s[threadIdx.x + 256];
}

// Odd-even merge sort of 512 keys.
extern "C" __global__ void odd_even(unsigned *keys, unsigned length, unsigned direction) {
    __shared__ unsigned s[512];
    keys += blockIdx.x * 512 + threadIdx.x;
    s[threadIdx.x] = keys[0];
    s[threadIdx.x + 256] = keys[256];
    for (unsigned size = 2; size <= length; size <<= 1) {
        unsigned stride = size / 2, offset = threadIdx.x & (stride - 1);
        {
            __syncthreads();
            unsigned p = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            order(s[p], s[p + stride], direction);
            stride >>= 1;
        }
        for (; stride > 0; stride >>= 1) {
            __syncthreads();
            unsigned p = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            if (offset >= stride) order(s[p - stride], s[p], direction);
        }
    }
    __syncthreads();
    keys[0] = s[threadIdx.x];
    keys[256] = s[threadIdx.x + 256];
}

// One pass of a radix sort in a block: by four bits, stable.
extern "C" __global__ void radix_pass(const unsigned *in, unsigned *out, int shift) {
    __shared__ unsigned counts[16][8];
    __shared__ unsigned starts[16][8];
    unsigned key = in[threadIdx.x], digit = key >> shift & 15;
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x < 128) counts[threadIdx.x / 8][threadIdx.x % 8] = 0;
    __syncthreads();
    unsigned same = ~0u;
    for (int b = 0; b < 4; b++) {
        unsigned votes = __ballot_sync(~0u, digit >> b & 1);
        same &= digit >> b & 1 ? votes : ~votes;
    }
    unsigned rank = __popc(same & ((1u << lane) - 1));
    if (rank == 0) counts[digit][warp] = __popc(same);
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned sum = 0;
        for (int d = 0; d < 16; d++)
            for (int w = 0; w < 8; w++) {
                starts[d][w] = sum;
                sum += counts[d][w];
            }
    }
    __syncthreads();
    out[starts[digit][warp] + rank] = key;
}
