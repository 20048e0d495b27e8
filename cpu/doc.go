// Package cpu is the CPU as a device, with every operation of the catalogue, batches and tensors, as on a GPU:
//
//	dev, err := cpu.Open(ctx)
//	defer dev.Close()
//	err = dev.MatMul(ctx, c, a, b, m, k, n)
//
// Its kernels use the vector instructions of the processor and all cores. For functions on slices without a device see package simd.
//
// # Concurrency
//
// A [Device] is safe for concurrent use. It owns a fixed set of worker goroutines; programs that run at the same time share
// them, so many callers do not oversubscribe the machine.
//
// When its context ends, a blocking call stops its kernels, usually within a fraction of a millisecond, and returns when they
// no longer use the caller's slices; the contents of destinations are then undefined. Programs with user kernels or retained
// tensors work on copies instead and return at once.
//
// # Memory
//
// Host slices are read and written in place, without a copy, unless a destination overlaps an operand in a way that would
// change the result. Temporaries of programs and the memory of closed tensors are kept for reuse; [Device.Memory] tells how
// much and [Device.Trim] frees it. Close tensors and the device when they are no longer needed; closing the device closes its
// tensors.
//
// # Platforms
//
// Everywhere Go runs, without cgo. With GOOS=js there is one thread, and vector instructions where the page lets a WebAssembly
// module with SIMD128 load. The device lets other goroutines run between parts of an operation, and only its asynchronous
// methods exist there.
package cpu
