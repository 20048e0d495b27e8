package softgpu

import "syscall"

// threads tells that thread distinguishes OS threads.
const threads = true

var currentThreadID = syscall.NewLazyDLL("kernel32.dll").NewProc("GetCurrentThreadId")

// thread is the calling OS thread.
func thread() uint64 {
	id, _, _ := currentThreadID.Call()
	return uint64(id)
}
