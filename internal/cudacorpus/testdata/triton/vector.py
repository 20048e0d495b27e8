"""Kernels of Triton that go over vectors."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(z + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def gelu(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n).to(tl.float32)
    tl.store(y + i, (0.5 * v * (1 + tl.erf(v * 0.7071067811865476))).to(y.dtype.element_ty), mask=i < n)


@triton.jit
def dropout(x, y, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    keep = tl.rand(seed, i) > p
    tl.store(y + i, tl.where(keep, v / (1 - p), 0.0), mask=i < n)


@triton.jit
def gather(x, at, y, N: tl.constexpr, M: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    i = tl.arange(0, M)
    tl.store(y + i, tl.gather(v, tl.load(at + i), axis=0))


@triton.jit
def interleave(x, y, z, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.interleave(tl.load(x + i), tl.load(y + i))
    a, b = tl.split(tl.reshape(tl.flip(v), [BLOCK, 2]))
    tl.store(z + tl.arange(0, 2 * BLOCK), tl.reshape(tl.join(b, a), [2 * BLOCK]))


@triton.jit
def transpose(x, y, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    v = tl.load(x + r[:, None] * columns + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < columns))
    tl.store(y + c[:, None] * rows + r[None, :], tl.trans(v), mask=(c[:, None] < columns) & (r[None, :] < rows))


# Name, function, types, constants, options, least compute capability.
KERNELS = [
    ("add", add, "*fp32 *fp32 *fp32 i32", {"BLOCK": 256}, {}, 0),
    ("add_f64", add, "*fp64 *fp64 *fp64 i32x16", {"BLOCK": 512}, {}, 0),
    ("gelu", gelu, "*fp16 *fp16 i32x16", {"BLOCK": 512}, {}, 0),
    ("dropout", dropout, "*fp32 *fp32 i32 fp32 i32", {"BLOCK": 256}, {}, 0),
    ("gather", gather, "*fp32 *i32 *fp32", {"N": 128, "M": 64}, {}, 0),
    ("interleave", interleave, "*i32 *i32 *i32", {"BLOCK": 128}, {}, 0),
    ("transpose", transpose, "*fp32 *fp32 i32 i32", {"ROWS": 32, "COLUMNS": 64}, {}, 0),
]
