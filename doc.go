// Package wavelane is GPU compute for Go: it opens the best device of the machine and runs operations and batches on it.
//
//	dev, err := wavelane.Open(ctx)
//	defer dev.Close()
//	err = dev.MatMul(ctx, c, a, b, m, k, n)
//
// [Open] takes an NVIDIA GPU through CUDA, else a hardware WebGPU adapter (Vulkan, Metal or DirectX 12), else the CPU. It never takes a
// software adapter by itself, since those are slower than the CPU device. [Device.Explain] says what was chosen and why.
//
// Beside a GPU the CPU stays open, and a program on slices, a single operation or a whole batch, goes to the one that has it done
// first: a hundred elements never make the way to a GPU and back. [WithoutRouting] says how that is decided, batch.Plan.Explain what
// was decided, and [Device.On] gives one of the two for programs that should run there whatever they cost.
//
// A [Device] carries every operation of the catalogue on slices (package compute documents them at compute.Ops), resident
// tensors, and is what package batch records for. Packages gpu and simd open one kind of device with all its options, and
// gpu runs kernels of your own.
//
// # Concurrency
//
// A device is safe for concurrent use.
//
// # Memory
//
// Close a device and the tensors on it when they are no longer needed; closing the device closes its tensors. Slices belong
// to an operation until it is done.
//
// # Platforms
//
// Everywhere Go runs. WebGPU needs cgo on Linux, macOS or Windows; without cgo, or with the build tag nogpu, the CPU device
// remains and Explain says so.
package wavelane
