"""Kernels of Triton for attention."""

import triton
import triton.language as tl


@triton.jit
def attention(q, k, v, o, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    head = tl.program_id(1)
    q += head * n * D
    k += head * n * D
    v += head * n * D
    o += head * n * D
    i = tl.program_id(0) * M + tl.arange(0, M)
    d = tl.arange(0, D)
    x = tl.load(q + i[:, None] * D + d[None, :], mask=i[:, None] < n, other=0.0)
    largest = tl.full([M], -1e30, dtype=tl.float32)
    total = tl.zeros([M], dtype=tl.float32)
    sums = tl.zeros([M, D], dtype=tl.float32)
    end = min(n, (tl.program_id(0) + 1) * M) if CAUSAL else n
    for at in range(0, end, N):
        j = at + tl.arange(0, N)
        y = tl.load(k + j[None, :] * D + d[:, None], mask=j[None, :] < n, other=0.0)
        s = tl.dot(x, y) * (scale * 1.44269504)
        visible = j[None, :] < n
        if CAUSAL:
            visible = visible & (j[None, :] <= i[:, None])
        s = tl.where(visible, s, -1e30)
        new = tl.maximum(largest, tl.max(s, 1))
        p = tl.math.exp2(s - new[:, None])
        shrink = tl.math.exp2(largest - new)
        total = total * shrink + tl.sum(p, 1)
        z = tl.load(v + j[:, None] * D + d[None, :], mask=j[:, None] < n, other=0.0)
        sums = tl.dot(p.to(z.dtype), z, sums * shrink[:, None])
        largest = new
    tl.store(o + i[:, None] * D + d[None, :], (sums / total[:, None]).to(o.dtype.element_ty), mask=i[:, None] < n)


# Name, function, types, constants, options, least compute capability.
KERNELS = [
    ("attention", attention, "*fp16 *fp16 *fp16 *fp16 i32 fp32", {"M": 64, "N": 32, "D": 64, "CAUSAL": True}, {}, 80),
    ("attention_bf16", attention, "*bf16 *bf16 *bf16 *bf16 i32x16 fp32", {"M": 128, "N": 64, "D": 64, "CAUSAL": False}, {"num_warps": 8}, 80),
]
