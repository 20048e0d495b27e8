// Package simd has functions on slices that compute with the vector instructions of the processor and on all its cores:
//
//	simd.Softmax(p, logits)                      // p[i] = exp(logits[i] − max)/Σ…
//	score := simd.Dot(query, key)
//
// They need no device and allocate nothing. The CPU as a device, with batches, tensors and calls that can be cancelled, is
// package cpu.
//
// # Instruction sets
//
// Kernels exist for "scalar" (portable Go, everywhere), "sse" (SSE2), "avx2" (with FMA) and "avx512" (F, BW, DQ, VL) on
// amd64, "neon" on arm64 and "simd128" in WebAssembly. The best one of the machine is chosen when the program starts; [Tier]
// tells which and [Tiers] which others there are. The environment variable WAVELANE_SIMD forces one by its name. An unknown
// name, or an instruction set that the machine does not have, is an error when the CPU is opened as a device; functions on
// slices, which return no errors, then use the best one.
//
// Kernels with one rounding per element (Add, Sqrt, Floor, …) give the same bits on all of them, except for the bits of NaN
// and the sign of zero in Maximum and Minimum. Functions such as Exp and sums may differ in the last bits. On one instruction
// set a result depends only on the operands: work is divided by length alone, and sums are added in one order, whatever the
// number of threads.
//
// # Conventions
//
// The destination comes first. All slices of a call must have the length that its documentation says, mostly that of the
// destination; otherwise the function panics, with an error that wraps compute.ErrShape and names the function and the lengths.
//
// Functions that compute element by element, and those of a whole vector such as [Softmax], work in place: the destination
// may be an operand. It may also begin before an operand in memory and overlap it. If an operand begins before the
// destination and overlaps it, the function panics with compute.ErrArgument, since it would read elements that it has
// written. In all other functions a destination must not overlap an operand unless the documentation says so.
//
// They may be called from any number of goroutines. Long calls run on several threads, at most as many as [SetThreads]
// allows; the goroutines are kept for later calls. Calls on one thread allocate nothing, but a local array whose slice is
// passed escapes to the heap.
//
// # Platforms
//
// Everywhere Go runs, without cgo. With GOOS=js there is one thread, and vector instructions where the page lets a WebAssembly module
// with SIMD128 load.
package simd
