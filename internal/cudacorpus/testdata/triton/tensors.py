"""Kernels of Triton that copy tiles by descriptors of tensors."""

import triton
import triton.language as tl


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


# Name, function, types, constants, options, least compute capability.
KERNELS = [
    ("tma", matmul_tma, "*fp16 *fp16 *fp16 i32 i32x16 i32x16", {"M": 64, "N": 64, "K": 64, "SPECIALISED": False}, {"num_stages": 3}, 90),
    ("tma_large", matmul_tma, "*fp16 *fp16 *fp16 i32 i32x16 i32x16", {"M": 128, "N": 64, "K": 64, "SPECIALISED": True}, {"num_stages": 2}, 90),
]
