// Package simd computes on the processor, with its vector instructions and on all its cores. It has two faces: functions on
// slices, and a device with the whole catalogue of operations.
//
//	simd.Softmax(p, logits)                      // p[i] = exp(logits[i] − max)/Σ…
//	score := simd.Dot(query, key)
//
//	dev, err := cpu.Open()
//	defer dev.Close()
//	err = dev.MatMul(ctx, c, a, b, m, k, n)
//
// The device takes the same operations, batches and tensors as the GPU devices, and its calls can be cancelled. Slice functions
// are for code that has its numbers at hand: they start at once, wait for nobody and allocate nothing.
//
// # Instruction sets
//
// Kernels exist for "scalar" (portable Go, everywhere), "sse" (SSE2), "avx2" (with FMA) and "avx512" (F, BW, DQ, VL) on amd64,
// "neon" on arm64 and "simd128" in WebAssembly. The best one of the machine is chosen when the program starts; [Tier] tells
// which and [Tiers] which others there are. The environment variable WAVELANE_SIMD forces one by its name. A name that there is
// not, or an instruction set that the machine does not have, is an error of [Open]; slice functions, which return no errors,
// then run on the best one.
//
// Kernels of one rounding an element (Add, Sqrt, Floor, …) have the same bits on all of them, but for the bits of NaN and the
// sign of a zero that is chosen between zeros; functions such as Exp and sums may differ in the last bits. On one instruction
// set a result depends on nothing but the operands: work is cut up by length alone, and sums are added in one order, whatever
// the number of threads.
//
// # Slice functions
//
// The destination comes first. All slices of a call must have the length that its documentation says, mostly that of the
// destination; otherwise the function panics, with an error that wraps compute.ErrShape and names the function and the lengths.
//
// Functions that compute element by element, and those of a whole vector such as [Softmax], work in place: the destination may
// be an operand. It may also begin before an operand in memory and overlap it. An operand that begins before the destination
// and reaches into it is a panic with compute.ErrArgument, for the function would read what it has written. For all others a
// destination must not overlap an operand unless the documentation says so.
//
// They may be called from any number of goroutines. Calls that take long enough run on several threads, at most as many as
// [SetThreads] allows, which are goroutines that the process keeps for that; calls on one thread allocate nothing. The compiler
// cannot know which calls those are, so it puts a local array of the caller's on the heap when a slice of it is passed.
//
// # The device
//
// A [Device] is safe for concurrent use. It owns a fixed set of worker goroutines; programs that run at the same time share
// them, so many callers do not oversubscribe the machine.
//
// A blocking call that its context ends stops its kernels within a fraction of a millisecond where it can, and returns when
// they no longer touch the caller's slices; what a destination then holds is undefined. Programs with a kernel of the user's,
// or with tensors that stay on the device, work on copies instead and return at once.
//
// Host slices are read and written in place, without a copy, unless a destination overlaps an operand in a way that would
// change the result. Temporaries of programs and the memory of closed tensors are kept for reuse; [Device.Memory] tells how
// much and [Device.Trim] gives it back. Close tensors and the device when they are no longer needed; closing the device
// closes its tensors.
//
// # Platforms
//
// Everywhere Go runs, without cgo. In a browser (GOOS=js) there is one thread, and vector instructions where the page lets a
// WebAssembly module with SIMD128 load. The device lets other goroutines run between parts of an operation, and only its
// asynchronous methods exist there.
package simd
