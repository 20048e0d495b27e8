// Package lower says how the operations of the catalogue run on NVIDIA GPUs: the kernels, built with package ptx, and for each
// operation which of them a step launches, over which grid, with which arguments.
//
// Kernels come in families: a family is a module, loaded as a whole before work begins. Shapes are arguments of a launch; what
// is baked into a kernel is what changes its code. Every kernel runs from sm_50 on.
//
// Kernels of expressions are made on demand and belong to no family: see [Made].
package lower
