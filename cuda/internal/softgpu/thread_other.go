//go:build !linux && !windows

package softgpu

// threads tells that thread distinguishes OS threads.
const threads = false

// thread stands for all threads: package syscall does not tell them apart here.
func thread() uint64 { return 1 }
