// Package gemm has the kernels of matrix products. [Problem.Lower] lists the variants that can compute a product, best first by a cost
// model, and launches the chosen one:
//
//	mma, wgmma  tensor cores, by mma.sync and by warpgroups with TMA
//	simt        ordinary cores, with a variant that copies asynchronously
//	gemv        few rows or columns
//	small       a thread for each element
//
// [Fused] has products with a norm before or a gate after them, for few rows.
package gemm
