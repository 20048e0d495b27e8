"""Kernels of Triton that copy tiles by descriptors of tensors, and in Gluon one that uses tensor memory."""

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import TensorMemoryLayout, allocate_tensor_memory, fence_async_shared, mbarrier, tcgen05_mma


@triton.jit
def matmul_tma(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SPECIALISED: tl.constexpr):
    """c = a·b by tensor copies, whose descriptors the kernel makes; b is n × k. Blocks take tiles until there are none."""
    at = tl.make_tensor_descriptor(a, shape=[m, k], strides=[k, 1], block_shape=[M, K])
    bt = tl.make_tensor_descriptor(b, shape=[n, k], strides=[k, 1], block_shape=[N, K])
    ct = tl.make_tensor_descriptor(c, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    across = tl.cdiv(n, N)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, M) * across, tl.num_programs(0), flatten=False, warp_specialize=SPECIALISED):
        i, j = tile // across * M, tile % across * N
        total = tl.zeros((M, N), dtype=tl.float32)
        for s in range(0, tl.cdiv(k, K)):
            total = tl.dot(at.load([i, s * K]), bt.load([j, s * K]).T, total)
        ct.store([i, j], total.to(tl.float16))


@gluon.jit
def pair(a, b, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr):
    """c = a·b by two blocks together, each with half of the rows of a and half of the columns of b."""
    left: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0], cga_layout=[[1, 0]])
    right: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0], cga_layout=[[0, 1]])
    i, l = gl.arange(0, M, gl.SliceLayout(1, left)), gl.arange(0, K, gl.SliceLayout(0, left))
    x = gl.load(a + i[:, None] * K + l[None, :])
    l, j = gl.arange(0, K, gl.SliceLayout(1, right)), gl.arange(0, N, gl.SliceLayout(0, right))
    y = gl.load(b + l[:, None] * N + j[None, :])
    x = gl.allocate_shared_memory(gl.float16, [M, K], gl.NVMMASharedLayout.get_default_for([M, K], gl.float16, cga_layout=[[1, 0]]), x)
    y = gl.allocate_shared_memory(gl.float16, [K, N], gl.NVMMASharedLayout.get_default_for([K, N], gl.float16, cga_layout=[[0, 1]]), y)
    done = mbarrier.allocate_mbarrier()
    mbarrier.init(done, count=1)
    fence_async_shared(cluster=True)
    gl.barrier(cluster=True)
    total = allocate_tensor_memory(gl.float32, [M, N], TensorMemoryLayout(block=(M // 2, N), col_stride=1, cga_layout=[[1, 0]], two_ctas=True))
    tcgen05_mma(x, y, total, use_acc=False, mbarriers=[done])
    mbarrier.wait(done, 0, deps=[x, y])
    z = total.load()
    layout: gl.constexpr = z.type.layout
    i, j = gl.arange(0, M, gl.SliceLayout(1, layout)), gl.arange(0, N, gl.SliceLayout(0, layout))
    gl.store(c + i[:, None] * N + j[None, :], z)


# Name, function, types, constants, options, least and perhaps largest compute capability.
KERNELS = [
    ("tma", matmul_tma, "*fp16 *fp16 *fp16 i32 i32x16 i32x16", {"M": 64, "N": 64, "K": 64, "SPECIALISED": False}, {"num_stages": 3}, 90),
    ("tma_large", matmul_tma, "*fp16 *fp16 *fp16 i32 i32x16 i32x16", {"M": 128, "N": 64, "K": 64, "SPECIALISED": True}, {"num_stages": 2}, 90),
    ("pair", pair, "*fp16 *fp16 *fp32", {"M": 256, "N": 64, "K": 64}, {"num_ctas": 2}, 100, 100),
    ("pair_halves", pair, "*fp16 *fp16 *fp32", {"M": 128, "N": 64, "K": 64}, {"num_ctas": 2}, 100, 100),
]
