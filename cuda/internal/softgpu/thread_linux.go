package softgpu

import "syscall"

// threads tells that thread distinguishes OS threads.
const threads = true

// thread is the calling OS thread.
func thread() uint64 { return uint64(syscall.Gettid()) }
