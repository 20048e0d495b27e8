// Package simd is the CPU device: every operation of the catalogue as a kernel for the processor, spread over its cores.
//
//	dev, err := simd.Open()
//	defer dev.Close()
//	err = dev.MatMul(ctx, c, a, b, m, k, n)
//
// It takes the same operations, batches and tensors as the GPU devices. Kernels of this tier, "go", are portable Go.
//
// # Concurrency
//
// A [Device] is safe for concurrent use. It owns a fixed set of worker goroutines; programs that run at the same time share
// them, so many callers do not oversubscribe the machine. A result does not depend on the number of workers: work is cut
// up by shape alone, and sums are added in one order.
//
// A blocking call that its context ends stops its kernels within a fraction of a millisecond where it can, and returns when
// they no longer touch the caller's slices; what a destination then holds is undefined. Programs with a kernel of the user's,
// or with tensors that stay on the device, work on copies instead and return at once.
//
// # Memory
//
// Host slices are read and written in place, without a copy, unless a destination overlaps an operand in a way that would
// change the result. Temporaries of programs and the memory of closed tensors are kept for reuse; [Device.Memory] tells how
// much and [Device.Trim] gives it back. Close tensors and the device when they are no longer needed; closing the device
// closes its tensors.
//
// # Platforms
//
// Everywhere Go runs, without cgo. In a browser (GOOS=js) there is one worker, which lets other goroutines run between
// parts of an operation; only the asynchronous methods exist there.
package simd
