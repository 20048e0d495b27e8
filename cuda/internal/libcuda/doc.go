// Package libcuda is the [driver.Driver] over NVIDIA's driver library, loaded at run time through purego: no cgo, no toolkit.
//
// # What is loaded, and when
//
// Nothing before the first [Open]. That loads libcuda.so.1 (Linux on amd64 and arm64) or nvcuda.dll (Windows), looks up every
// function, and initialises the driver. The library then stays in the process; a second Open of the same path returns the same
// driver. What old drivers lack is optional, and its methods say NotSupported; the rest has been there since CUDA 11.4 (driver
// 470).
//
// On Linux the dynamic loader searches as ever: LD_LIBRARY_PATH, the cache of ldconfig, the system's folders. If that finds no
// library, /usr/lib/wsl/lib is looked at, where Windows puts it into its Linux guests. The toolkit's folder "stubs" holds a
// library of the same name for linking only; where LD_LIBRARY_PATH leads there, Open says CUDA_ERROR_STUB_LIBRARY. On Windows
// the library comes from the system's folder only.
//
// purego makes a program that links this package a dynamically linked one, without cgo too: on Linux it needs glibc, and images
// built from scratch or on musl do not run it. The package stands alone for that reason.
//
// # Calls
//
// Functions are called through [purego.SyscallN], never through registered Go functions, which allocate. Whatever C reads or
// writes lies in a pooled frame on the heap, where nothing moves. The driver's own rules are the caller's: a context is current
// to an OS thread, so calls that use it belong between runtime.LockOSThread and UnlockOSThread.
package libcuda
