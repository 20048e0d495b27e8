// Package tiling is what kernels of matrix products share, in the words of CUTLASS. A block computes tiles of the result:
//
//	Schedule      which tiles a block computes, and which part of their depth (whole tiles, split-K, stream-K)
//	Operand       an operand tile that passes through registers: a matrix, packed weights, windows of a convolution
//	AsyncOperand  an operand tile that is copied in the background (cp.async)
//	MMAOperand    an AsyncOperand in the swizzled layout that ldmatrix reads
//	Pipeline      the ring of stages that asynchronous copies fill
//	Product       mainloop, accumulators and epilogue on ordinary cores
//	RowWriter     the epilogue on tensor cores, which turns fragments to rows in shared memory
//	Epilogue      the fused expression that follows; Result and AddPartials what split-K needs
//
// An operand is K-major if neighbours in memory are neighbours in depth (a [m, k], b [n, k]), else M-major (a [k, m], b [k, n]).
package tiling
