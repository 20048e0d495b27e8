// Package cuda is the NVIDIA device, on the bare driver: libcuda is loaded when a device is opened, and nothing else is needed,
// no toolkit, no cgo, no nvcc. Kernels are PTX, written with package ptx or anything else that makes it.
//
//	dev, err := cuda.Open(ctx)                          // NVIDIA's first GPU
//	dev, err := cuda.Open(ctx, cuda.WithSoftware())         // the software GPU, on any machine
//	err = dev.MatMul(ctx, c, a, b, m, k, n)             // the operations of the catalogue, and batches, as on every device
//
// The two drivers stand behind one internal interface. Everything above it is the same code, so the tests of programs and of
// this library run where there is no GPU, and the software GPU finds what hardware hides (see [SoftwareOptions] and package
// ptx/sim).
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
// Arguments are checked against the kernel's declaration. Variables of a module are buffers, too: see [Variable]. What a
// [Recording] takes goes to the GPU at once; a [Submitted] can be waited for, and a [Finished] knows how long it took.
// [Stream.Capture] records into a [Graph] instead, which replays many launches with one call. A [Kernel] can also be a step of
// a batch: see [Launch].
//
// # Compilation
//
// The driver compiles PTX for the GPU it finds, and what it made is kept in the user's cache directory, by text, architecture
// and driver version ([WithCache], [WithoutCache]). It happens when modules are loaded and when programs are compiled, never
// when they run. The catalogue's kernels are compiled by families, as programs need them.
//
// # Memory
//
// Device memory comes from a pool that follows the order of streams: what a program has used serves the next one without
// waiting. [Device.Memory] tells what is in use and what is kept, [Device.Trim] gives back. Slices pass through pinned memory;
// a [HostBuffer] is pinned memory to work in.
//
// # Faults
//
// A kernel that reads or writes where it must not kills the context: the driver says so at some later call, whichever comes
// next. From then on everything fails with a [*PoisonedError], which has the first report and the last launches before it.
// [WithDebug] waits for each launch, and so names the guilty one. The software GPU names instruction, thread and address.
//
// # Concurrency
//
// A device, its streams, modules, kernels, graphs and buffers are safe for concurrent use; a recording belongs to one
// goroutine. Calls lock the goroutine to its thread while they last and make the context current there.
//
// # Linking
//
// Importing this package makes a Linux binary dynamically linked, cgo or not: it has to load a library of the system. Package
// wavelane imports it unless built with the tag nocuda. On systems without NVIDIA's driver Open says so.
package cuda
