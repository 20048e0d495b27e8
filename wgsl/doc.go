// Package wgsl lowers the operations of the catalogue to WebGPU compute shaders: WGSL text, bindings, workgroup sizes and
// grids. It touches no GPU, so it builds and can be inspected anywhere; package gpu executes what it returns.
//
// # Concurrency
//
// All functions are safe for concurrent use; a [Kernel] is immutable.
//
// # Memory
//
// Kernels are small values made on demand. Devices cache pipelines by [Kernel.Key].
//
// # Platforms
//
// Everywhere. The text uses only what WebGPU's first edition offers and naga of wgpu-native v22 accepts: no override
// constants, no subgroups, no enable directives. Kernels for devices whose [Caps] have further features are the exception.
package wgsl
