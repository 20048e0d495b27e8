// Package ptxkernels maps the steps of programs to launches of PTX kernels. [Lower] looks up a step's entry in one table and calls
// the package of the kernel's family: attention, cache, conv, elementwise, gemm, lz4, move, norm, quantised, reduce, rope. What
// families share is package kit and the packages below it.
//
// Kernels are grouped in modules that are loaded as a whole before work begins; see [kit.Family]. Shapes are arguments of a launch;
// what is baked into a kernel is what changes its code. Every kernel runs from sm_50 on. Kernels of expressions are compiled on demand
// and belong to no family; see [kit.JITModule].
package ptxkernels
