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


@triton.jit
def scaled(a, sa, b, sb, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, A: tl.constexpr, B: tl.constexpr, PER_A: tl.constexpr,
           PER_B: tl.constexpr, GROUP: tl.constexpr):
    """c = a·b of small numbers with a scale for a group of them along k; b is n × k. So many numbers are in a byte of a and b."""
    i, j, g = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // GROUP)
    total = tl.zeros((M, N), dtype=tl.float32)
    for s in range(0, k // K):
        x = tl.load(a + i[:, None] * (k // PER_A) + (s * (K // PER_A) + tl.arange(0, K // PER_A))[None, :])
        y = tl.load(b + j[None, :] * (k // PER_B) + (s * (K // PER_B) + tl.arange(0, K // PER_B))[:, None])
        u = tl.load(sa + i[:, None] * (k // GROUP) + (s * (K // GROUP) + g)[None, :])
        v = tl.load(sb + j[:, None] * (k // GROUP) + (s * (K // GROUP) + g)[None, :])
        total = tl.dot_scaled(x, u, A, y, v, B, total)
    tl.store(c + i[:, None] * N + j[None, :], total)


@triton.jit
def scaled_tma(a, sa, b, sb, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, A: tl.constexpr, B: tl.constexpr, PER_A: tl.constexpr,
               PER_B: tl.constexpr, GROUP: tl.constexpr):
    """The same by tensor copies of matrices, and of scales in the order in which tensor memory has them."""
    at = tl.make_tensor_descriptor(a, shape=[M, k // PER_A], strides=[k // PER_A, 1], block_shape=[M, K // PER_A])
    bt = tl.make_tensor_descriptor(b, shape=[N, k // PER_B], strides=[k // PER_B, 1], block_shape=[N, K // PER_B])
    G: tl.constexpr = K // GROUP // 4
    sat = tl.make_tensor_descriptor(sa, shape=[1, M // 128, k // GROUP // 4, 2, 256], strides=[M * k // GROUP, 128 * k // GROUP, 512, 256, 1],
                                    block_shape=[1, M // 128, G, 2, 256])
    sbt = tl.make_tensor_descriptor(sb, shape=[1, N // 128, k // GROUP // 4, 2, 256], strides=[N * k // GROUP, 128 * k // GROUP, 512, 256, 1],
                                    block_shape=[1, N // 128, G, 2, 256])
    total = tl.zeros((M, N), dtype=tl.float32)
    for s in range(0, k // K):
        x, y = at.load([0, s * (K // PER_A)]), bt.load([0, s * (K // PER_B)])
        u = sat.load([0, 0, s * G, 0, 0]).reshape(M // 128, G, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(M, K // GROUP)
        v = sbt.load([0, 0, s * G, 0, 0]).reshape(N // 128, G, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(N, K // GROUP)
        total = tl.dot_scaled(x, u, A, y.T, v, B, total)
    tl.store(c + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], total)


def tile(n, k, a, b, group):
    per = lambda t: 2 if t == "e2m1" else 1
    return {"M": 128, "N": n, "K": k, "A": a, "B": b, "PER_A": per(a), "PER_B": per(b), "GROUP": group}


TILE = {"M": 64, "N": 64, "K": 32, "GROUP": 2}

# Name, function, types, constants, options, least and perhaps largest compute capability.
KERNELS = [
    ("f16", matmul, "*fp16 *fp16 *fp16 i32 i32x16 i32x16", TILE, {"num_stages": 3}, 0),
    ("f16_odd", matmul, "*fp16 *fp16 *fp32 i32 i32 i32", TILE, {"num_stages": 2}, 0),
    ("f16_large", matmul, "*fp16 *fp16 *fp16 i32 i32x16 i32x16", {"M": 128, "N": 128, "K": 64, "GROUP": 4}, {"num_warps": 8, "num_stages": 3}, 80),
    ("bf16", matmul, "*bf16 *bf16 *fp32 i32 i32x16 i32x16", TILE, {"num_stages": 4}, 80),
    ("tf32", matmul, "*fp32 *fp32 *fp32 i32 i32x16 i32x16", TILE, {"num_stages": 3}, 80),
    ("s8", matmul, "*i8 *i8 *i32 i32 i32x16 i32x16", TILE, {"num_stages": 3}, 80),
    ("int4", int4_matmul, "*fp16 *i8 *fp32 *fp32 i32x16 i32x16 i32x16", {"M": 32, "N": 32, "K": 16}, {}, 0),
    ("batched", batched, "*fp32 *fp32 *fp32", {"B": 4, "M": 16, "N": 16, "K": 16}, {}, 0),
    ("mxfp8", scaled, "*fp8e4nv *u8 *fp8e5 *u8 *fp32 i32x16", tile(128, 128, "e4m3", "e5m2", 32), {"num_stages": 2}, 100, 100),
    ("mixed", scaled, "*fp8e4nv *u8 *u8 *u8 *fp32 i32x16", tile(128, 128, "e4m3", "e2m1", 32), {"num_stages": 2}, 100, 100),
    ("mxfp4", scaled, "*u8 *u8 *u8 *u8 *fp32 i32x16", tile(128, 128, "e2m1", "e2m1", 32), {"num_stages": 2}, 100, 100),
    ("nvfp4", scaled, "*u8 *fp8e4nv *u8 *fp8e4nv *fp32 i32x16", tile(128, 128, "e2m1", "e2m1", 16), {"num_stages": 2}, 100, 100),
    ("mxfp8_tma", scaled_tma, "*fp8e4nv *u8 *fp8e5 *u8 *fp32 i32x16", tile(128, 128, "e4m3", "e5m2", 32), {"num_stages": 2}, 100, 100),
    ("nvfp4_tma", scaled_tma, "*u8 *fp8e4nv *u8 *fp8e4nv *fp32 i32x16", tile(128, 256, "e2m1", "e2m1", 16), {"num_stages": 2}, 100, 100),
]
