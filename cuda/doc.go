// Package cuda is the NVIDIA device, directly on the driver: libcuda is loaded when a device is opened. Neither the CUDA
// toolkit nor cgo nor nvcc is needed. Kernels are PTX, written with package ptx or anything else that makes it.
//
//	dev, err := cuda.Open(ctx)                      // NVIDIA's first GPU
//	dev, err := cuda.Open(ctx, cuda.WithSoftware()) // the software GPU, on any machine
//	err = dev.MatMul(ctx, c, a, b, m, k, n)         // the operations of the catalogue, and batches, as on every device
//
// NVIDIA's driver and the software GPU implement one internal interface, and everything above it is the same code. So tests
// run without a GPU, and the software GPU finds errors that hardware hides (see [SoftwareOptions] and package ptx/sim).
//
// # Kernels of your own
//
//	module, err := dev.Load(text)                       // PTX, or dev.LoadModule for what package ptx builds
//	kernel, err := module.Kernel("add")
//	x, err := cuda.Alloc[float32](dev, n)
//	stream, err := dev.NewStream(cuda.StreamOptions{})
//	rec, err := stream.Begin()
//	err = rec.Launch(kernel, cuda.Launch{Grid: [3]uint32{blocks}}, args.U32(n), x.Arg(), y.Arg(), out.Arg())
//	work, err := rec.Submit()
//	finished, err := work.Wait(ctx)
//
// Arguments are checked against the kernel's declaration. Variables of a module are buffers, too: see [Variable]. Work given
// to a [Recording] goes to the GPU at once. A [Submitted] can be waited for, and a [Finished] knows how long it took.
// [Stream.Capture] records into a [Graph] instead, which replays many launches with one call. A [Kernel] can also be a step
// of a batch: see [Launch].
//
// # Compilation
//
// The driver compiles PTX for the GPU, and the result is cached in the user's cache directory, by text, architecture and
// driver version ([WithCache], [WithoutCache]). It happens when modules are loaded and when programs are compiled, never when
// they run. The catalogue's kernels are compiled by families, as programs need them.
//
// # Variants
//
// Matrix products, convolutions, attention and quantised products have several kernels, of which a model of the GPU prefers one.
// Plan.Tune of package batch, the command "wavelane tune --device cuda" and [WithAutotune] measure them instead. What was measured is
// kept beside the compiled kernels, by name and compute capability of the GPU and by version of the driver, and later compilations use
// it. [Device.Choices] lists what they took; [WithVariant] forces a kernel.
//
// # Memory
//
// Device memory comes from a pool that follows the order of streams: the next program reuses memory without waiting.
// [Device.Memory] tells how much is in use and how much is cached, and [Device.Trim] frees the latter. Slices are copied
// through pinned memory; a [HostBuffer] is pinned memory that programs use directly.
//
// # Faults
//
// An illegal memory access by a kernel destroys the context; the driver reports it at some later call. From then on
// everything fails with a [*PoisonedError], which has the first report and the last launches before it. [WithDebug] waits for
// each launch, and so finds the one at fault. The software GPU names instruction, thread and address.
//
// # Concurrency
//
// A device, its streams, modules, kernels, graphs and buffers are safe for concurrent use; a recording belongs to one
// goroutine. Calls lock the goroutine to its thread while they last and make the context current there.
//
// # Linking
//
// Importing this package makes a Linux binary dynamically linked, cgo or not, because it loads a library of the system.
// Package wavelane imports it unless built with the tag nocuda. On systems without NVIDIA's driver Open fails with
// compute.ErrUnavailable.
package cuda
