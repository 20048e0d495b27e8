// Package gpu is the WebGPU device: Vulkan, Metal and Direct3D 12 through wgpu-native, and the browser's WebGPU for GOOS=js, behind one
// API with typed errors.
//
// [Open] gives a [Device]. Every operation of the catalogue is a method of it, on slices of host memory; each call is a
// program of one step, submitted once. Programs of many steps are recorded with package batch. [Device.Upload] keeps data on
// the device, [NewKernel] compiles WGSL of your own.
//
// # Concurrency
//
// All types are safe for concurrent use. Work is executed in the order of submission; the methods that submit return at once
// with a future, and runs of several goroutines are in flight at the same time. One goroutine per device completes futures,
// and exists only while there are some. When a context ends, the wait ends but the work goes on.
//
// # Memory
//
// Buffers are pooled by size; [Device.Memory] says how much is in use and how much is kept for reuse, [Device.Trim] gives the
// latter back, [WithMemoryLimit] bounds both. Tensors are closed by their owner; the garbage collector closes forgotten ones
// eventually. Memory that a submission uses stays allocated until the submission has completed, even if it is closed before.
//
// Out of memory is compute.ErrOutOfMemory, after the pool and idle compiled programs have given back what they can. A
// buffer or binding beyond what the adapter allows at all is compute.ErrTooLarge, before anything is allocated.
//
// # Device loss
//
// Once a device is lost, every use fails with compute.ErrDeviceLost. Close it, open another, and move existing plans there
// with their Recompile method (package batch).
//
// The native library panics when the driver reports a loss or has no memory left in the middle of a submission. On Linux that
// is an error like others, and the device is lost; the library still prints its message to stderr. On macOS and Windows it ends the
// process, and [Library] says so. Invalid input cannot cause a panic: it is checked before it reaches the library.
//
// # Platforms
//
// Linux (glibc), macOS and Windows on amd64 and arm64, by the library wgpu-native: a shared library that is found at run time,
// version 29 or 27 (see [WithLibrary]), or else the static one, 27, that a build with cgo links into the program. [Device.Info] says
// which. Without cgo and without a library [Open] fails with compute.ErrUnavailable and the reason. The package links purego, so that
// a Linux program that imports it is a dynamic one. OpenGL is not used: it is slow, prints to stderr while it probes, and silently
// becomes a software renderer where no GPU driver is installed.
//
// GOOS=js drives the browser, in pages and in workers, and needs only a secure context (https or localhost). The methods that
// wait do not exist there; their Async forms never wait, so functions that JavaScript calls may use them and leave the future
// to a goroutine. [Open] and [Adapters] do wait, for the browser's answer: call them in a goroutine. Errors of memory and of
// shaders are returned by the future of the first run concerned, because the browser reports them late. The browser build also has
// AdoptDevice, Device.ImportBuffer, Device.GPUDevice and Tensor.GPUBuffer, which share a device and its buffers with
// JavaScript. Browsers round timestamps, Chromium to 0.1 ms.
//
// All features that kernels may use (shader-f16, subgroups) are requested where they are offered; [Device.Info] lists them. Reductions, norms,
// softmax and products of few rows have variants that use subgroups, and kernels on f16 have variants that load it directly.
// None is the default, since the fastest differs between GPUs; Plan.Tune of package batch measures. Products of few rows with
// quantised weights round activations to 8 bits, where the option Q8 is set and WGSL has integer dot products
// ([AdapterInfo.LanguageFeatures]).
//
// Software adapters are used only with [WithSoftware]. Nothing is printed; see [WithLogger].
package gpu
