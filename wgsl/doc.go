// Package wgsl describes WebGPU compute shaders as data: a [Kernel] is WGSL text with its bindings and its workgroup, [Caps] are the
// limits that a device grants. [List] lists the shaders of the library's own operations. Package gpu runs them, and those of users.
//
// # Concurrency
//
// All functions are safe for concurrent use; a [Kernel] is immutable.
//
// # Platforms
//
// Everywhere; it touches no GPU.
package wgsl
