// Package gemm has the kernels of matrix products. [Problem.Lower] lists the variants that can compute a product, best first by a cost
// model, and launches the chosen one:
//
//	variant  kernel        operand tiles                            mainloop                          accumulators of a thread
//	wgmma    wgmma_gemm    TMA, swizzled, 4 stages of 64 halves     warp-specialised, persistent      64 × 256 of a warpgroup
//	mma      mma_gemm      cp.async, swizzled, 3 stages of 64 B     multistage, ldmatrix, mma.sync    64 × 32 of a warp
//	async    gemm_async    cp.async, padded, 3 stages of 8          multistage                        8 × 16
//	tile     gemm          registers, swizzled, 2 stages of 8 (16)  pipelined                         8 × 8 (4 × 4)
//	rows     gemv_rows     none: a row for 1 to 256 lanes           elements in fours                 4 for each vector
//	columns  gemv_columns  none: 128 (256) columns for a warp       warps share out the depth         4 (8) for each vector
//	small    matmul_small  none                                     an element for a thread           1
//
// Except for the last three, a block computes a tile of the result:
//
//	            ┌─ n ──────────┐
//	            │  b (stages)  │ k
//	            └──────────────┘
//	┌─ k ─┐     ┌──────┬───────┐        ┌─────────┐     ┌────────────┐
//	│  a  │ m   │ warp │ warp  │ ──Σ──▶ │  parts  │ ──▶ │ matmul_sum │ ──▶ c      with split-K or stream-K,
//	│     │     ├──────┼───────┤        └─────────┘     └────────────┘
//	│     │     │ warp │ warp  │ ──▶ bias, activation, fused expression ──▶ c      without
//	└─────┘     └──────┴───────┘
//
// [Fused] has products with a norm before or a gate after them, for few rows.
package gemm
