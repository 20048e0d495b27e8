"""Kernels of Triton that multiply matrices by tensor cores."""

import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr):
    """c = a·b, tiles in groups of rows."""
    block = tl.program_id(0)
    across = tl.cdiv(n, N)
    group = block // (GROUP * across)
    rows = min(tl.cdiv(m, M) - group * GROUP, GROUP)
    i = (group * GROUP + block % (GROUP * across) % rows) * M + tl.arange(0, M)
    j = block % (GROUP * across) // rows * N + tl.arange(0, N)
    l = tl.arange(0, K)
    at = a + (i % m)[:, None] * k + l[None, :]
    bt = b + l[:, None] * n + (j % n)[None, :]
    total = tl.zeros((M, N), dtype=tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32)
    for s in range(0, tl.cdiv(k, K)):
        x = tl.load(at, mask=l[None, :] < k - s * K, other=0.0)
        y = tl.load(bt, mask=l[:, None] < k - s * K, other=0.0)
        total = tl.dot(x, y, total)
        at += K
        bt += K * n
    tl.store(c + i[:, None] * n + j[None, :], total.to(c.dtype.element_ty), mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def int4_matmul(a, packed, scales, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """c = a·w, w two signed numbers of 4 bits a byte along k, with a scale for 2·K of them."""
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.program_id(1) * N + tl.arange(0, N)
    l = tl.arange(0, K)
    total = tl.zeros((M, N), dtype=tl.float32)
    for s in range(0, k // (2 * K)):
        bits = tl.load(packed + (s * K + l)[:, None] * n + j[None, :])
        low, high = (bits << 4).to(tl.int8) >> 4, bits >> 4
        w = tl.join(low, high).permute(0, 2, 1).reshape(2 * K, N).to(tl.float16)
        x = tl.load(a + i[:, None] * k + (s * 2 * K + tl.arange(0, 2 * K))[None, :])
        total += tl.dot(x, w) * tl.load(scales + s * n + j)[None, :]
    tl.store(c + i[:, None] * n + j[None, :], total)


@triton.jit
def batched(a, b, c, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    h, i, j, l = tl.arange(0, B), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + h[:, None, None] * M * K + i[None, :, None] * K + l[None, None, :])
    y = tl.load(b + h[:, None, None] * K * N + l[None, :, None] * N + j[None, None, :])
    tl.store(c + h[:, None, None] * M * N + i[None, :, None] * N + j[None, None, :], tl.dot(x, y, input_precision="ieee"))


TILE = {"M": 64, "N": 64, "K": 32, "GROUP": 2}

# Name, function, types, constants, options, least compute capability.
KERNELS = [
    ("f16", matmul, "*fp16 *fp16 *fp16 i32 i32x16 i32x16", TILE, {"num_stages": 3}, 0),
    ("f16_odd", matmul, "*fp16 *fp16 *fp32 i32 i32 i32", TILE, {"num_stages": 2}, 0),
    ("f16_large", matmul, "*fp16 *fp16 *fp16 i32 i32x16 i32x16", {"M": 128, "N": 128, "K": 64, "GROUP": 4}, {"num_warps": 8, "num_stages": 3}, 80),
    ("bf16", matmul, "*bf16 *bf16 *fp32 i32 i32x16 i32x16", TILE, {"num_stages": 4}, 80),
    ("tf32", matmul, "*fp32 *fp32 *fp32 i32 i32x16 i32x16", TILE, {"num_stages": 3}, 80),
    ("s8", matmul, "*i8 *i8 *i32 i32 i32x16 i32x16", TILE, {"num_stages": 3}, 80),
    ("int4", int4_matmul, "*fp16 *i8 *fp32 *fp32 i32x16 i32x16 i32x16", {"M": 32, "N": 32, "K": 16}, {}, 0),
    ("batched", batched, "*fp32 *fp32 *fp32", {"B": 4, "M": 16, "N": 16, "K": 16}, {}, 0),
]
