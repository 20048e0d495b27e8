"""Kernels of Triton whose blocks add to the same results."""

import triton
import triton.language as tl


@triton.jit
def bias_gradient(dy, db, lock, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Sums rows; blocks add to the result one after the other, by a lock."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, COLUMNS)
    v = tl.load(dy + r[:, None] * columns + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < columns), other=0.0)
    total = tl.sum(v, axis=0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    total += tl.load(db + c, mask=c < columns)
    tl.debug_barrier()  # several threads load an element; without this, one of them stores it while others load
    tl.store(db + c, total, mask=c < columns)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def sum_atomic(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y, tl.sum(tl.load(x + i, mask=i < n, other=0), axis=0))


@triton.jit
def histogram(x, y, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + i, mask=i < n, other=0), BINS, mask=i < n)
    tl.atomic_add(y + tl.arange(0, BINS), counts)


@triton.jit
def split_k(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """c += a·b, several blocks an element."""
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), dtype=tl.float32)
    for s in range(tl.program_id(2) * K, k, K * tl.num_programs(2)):
        l = s + tl.arange(0, K)
        x = tl.load(a + i[:, None] * k + l[None, :], mask=(i[:, None] < m) & (l[None, :] < k), other=0.0)
        y = tl.load(b + l[:, None] * n + j[None, :], mask=(l[:, None] < k) & (j[None, :] < n), other=0.0)
        total = tl.dot(x, y, total)
    tl.atomic_add(c + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n), sem="relaxed")


# Name, function, types, constants, options, least compute capability.
KERNELS = [
    ("bias_gradient", bias_gradient, "*fp32 *fp32 *i32 i32 i32", {"ROWS": 16, "COLUMNS": 64}, {}, 0),
    ("sum_atomic", sum_atomic, "*i32 *i32 i32", {"BLOCK": 256}, {}, 0),
    ("histogram", histogram, "*i32 *i32 i32", {"BLOCK": 512, "BINS": 64}, {}, 0),
    ("split_k", split_k, "*fp16 *fp16 *fp32 i32 i32x16 i32x16", {"M": 32, "N": 32, "K": 32}, {}, 0),
]
