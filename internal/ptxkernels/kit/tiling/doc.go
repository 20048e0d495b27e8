// Package tiling is what kernels of matrix products share. A block computes tiles of the result:
//
//	Schedule    which tiles a block computes, and which part of their depth (whole tiles, split-K, stream-K)
//	Operand     one operand's tiles in shared memory, for products on the ordinary cores
//	MMAOperand  the same in the layout that tensor cores read
//	Product     the main loop on the ordinary cores
//	RowWriter   stores accumulators of tensor cores row by row
//	Epilogue    bias, activation and the expression that follows
package tiling
