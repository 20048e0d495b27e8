"""Kernels of Triton in which a block has a row."""

import triton
import triton.language as tl


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * columns + i, e / tl.sum(e, axis=0), mask=i < columns)


@triton.jit
def layer_norm(x, weight, bias, y, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * columns
    y += row * columns
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for at in range(0, columns, BLOCK):
        i = at + tl.arange(0, BLOCK)
        total += tl.load(x + i, mask=i < columns, other=0.0)
    mean = tl.sum(total, axis=0) / columns
    square = tl.zeros([BLOCK], dtype=tl.float32)
    for at in range(0, columns, BLOCK):
        i = at + tl.arange(0, BLOCK)
        d = tl.where(i < columns, tl.load(x + i, mask=i < columns, other=0.0) - mean, 0.0)
        square += d * d
    scale = tl.rsqrt(tl.sum(square, axis=0) / columns + epsilon)
    for at in range(0, columns, BLOCK):
        i = at + tl.arange(0, BLOCK)
        v = (tl.load(x + i, mask=i < columns, other=0.0) - mean) * scale
        tl.store(y + i, v * tl.load(weight + i, mask=i < columns) + tl.load(bias + i, mask=i < columns), mask=i < columns)


@triton.jit
def argmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    tl.store(y + row, tl.argmax(v, axis=0))


@triton.jit
def cumsum(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + i, mask=i < columns, other=0)
    tl.store(y + row * columns + i, tl.cumsum(v, axis=0), mask=i < columns)


@triton.jit
def sort(x, y, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.sort(tl.load(x + i)))


@triton.jit
def first_order(a, b, ca, cb):
    return ca * a, ca * b + cb


@triton.jit
def recurrence(a, x, y, columns, BLOCK: tl.constexpr):
    """h(i) = a(i)·h(i-1) + x(i), by an associative scan."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    at, xt = tl.load(a + row * columns + i, mask=i < columns, other=1.0), tl.load(x + row * columns + i, mask=i < columns, other=0.0)
    _, h = tl.associative_scan((at, xt), 0, first_order)
    tl.store(y + row * columns + i, h, mask=i < columns)


# Name, function, types, constants, options, least compute capability.
KERNELS = [
    ("softmax", softmax, "*fp32 *fp32 i32", {"BLOCK": 256}, {}, 0),
    ("softmax_wide", softmax, "*fp32 *fp32 i32x16", {"BLOCK": 1024}, {"num_warps": 8}, 0),
    ("layer_norm", layer_norm, "*fp32 *fp32 *fp32 *fp32 i32 fp32", {"BLOCK": 128}, {}, 0),
    ("argmax", argmax, "*fp32 *i32 i32", {"BLOCK": 256}, {"num_warps": 2}, 0),
    ("cumsum", cumsum, "*i32 *i32 i32", {"BLOCK": 256}, {}, 0),
    ("sort", sort, "*i32 *i32", {"BLOCK": 256}, {}, 0),
    ("recurrence", recurrence, "*fp32 *fp32 *fp32 i32", {"BLOCK": 256}, {}, 0),
]
