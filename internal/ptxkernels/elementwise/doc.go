// Package elementwise has the kernels that compute each element of a result from the corresponding elements of their operands:
// the catalogue's functions, fused expressions, random numbers, and optimizer steps.
package elementwise
