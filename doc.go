// Package wavelane is GPU compute for Go: it opens the best device of the machine and runs operations and batches on it.
//
//	dev, err := wavelane.Open(ctx)
//	defer dev.Close()
//	err = dev.MatMul(ctx, c, a, b, m, k, n)
//
// [Open] takes an NVIDIA GPU through CUDA, else a hardware WebGPU adapter (Vulkan, Metal or DirectX 12), else the CPU. It
// takes a software adapter only with [WithSoftware], since those are slower than the CPU device. [Device.Explain] says what
// was chosen and why.
//
// Beside a GPU the CPU stays open. A program on slices, be it a single operation or a batch, runs on the device that is
// expected to finish first: a few hundred elements are not worth a transfer to a GPU and back. [WithoutRouting] describes how
// this is decided, batch.Plan.Explain tells what was decided, and [Device.On] returns one of the two devices for programs
// that should always run there.
//
// A [Device] carries every operation of the catalogue on slices (package compute documents them at compute.Ops), resident
// tensors, and is what package batch records for. Packages cuda, gpu and cpu each open one kind of device with all its
// options, and run kernels of your own.
//
// # Concurrency
//
// A device is safe for concurrent use.
//
// # Memory
//
// Close a device and the tensors on it when they are no longer needed; closing the device closes its tensors. A slice passed
// to an operation must not be used until the operation is done.
//
// # Platforms
//
// Everywhere Go runs. On Linux, macOS and Windows WebGPU needs cgo or a library at run time, see package gpu; without either, or with
// the build tag nogpu, the CPU device remains and Explain says so.
package wavelane
