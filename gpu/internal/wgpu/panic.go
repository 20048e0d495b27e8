//go:build ((linux && !android) || darwin || windows) && (amd64 || arm64)

package wgpu

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/ebitengine/purego"
)

// The library panics where it sees no other way out, in a submission above all: when the driver reports a loss there, or has no memory.
// Its functions are declared to C, which panics may not pass, so that one ends the process. So on Linux and Windows the function by which it
// begins to unwind is replaced, in the library alone, by a callback that panics in Go. That ends the call as a panic in any callback from
// C does: Go goes on at the caller, and the library's functions in between never return. What they held stays taken, so the
// device is lost. Each device has an instance of its own, and nothing is called of either any more.
//
// Rust counts panics by thread, and drops nothing on a thread with one. The thread is left to its goroutine, which ends it; further
// calls of the goroutine are made on other threads.

// libraryPanic is what the callback panics with.
type libraryPanic struct{ text string }

// panicked are the threads on which the library has panicked; by is guarded by catching.
var panicked struct {
	by    map[uintptr]bool
	count atomic.Int32 // of them all, so that others do not look
}

// thrown is the address of the callback in place of _Unwind_RaiseException. It returns, with what says that nothing catches the
// exception, where no frame is active.
var thrown = sync.OnceValue(func() uintptr {
	return purego.NewCallback(func(exception uintptr) uintptr {
		const endOfStack = 5
		endCall(exception)
		return endOfStack
	})
})

// endCall ends the call that has thrown an exception. It returns where no frame is active.
func endCall(exception uintptr) {
	catching.Lock()
	f := catching.by[thread()]
	catching.Unlock()
	if f != nil {
		panic(libraryPanic{panicText(exception)})
	}
}

// call calls a function with the first n of f.args.
func (f *Frame) call(fn uintptr, n int) (r uintptr) {
	if panicked.count.Load() > 0 {
		catching.Lock()
		here := panicked.by[thread()]
		catching.Unlock()
		if here {
			return f.callElsewhere(fn, n)
		}
	}
	defer f.recovered()
	r, _, _ = purego.SyscallN(fn, f.args[:n]...)
	return r
}

// callElsewhere calls a function on another thread.
func (f *Frame) callElsewhere(fn uintptr, n int) (r uintptr) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		here := thread()
		catching.Lock()
		catching.by[here] = f
		catching.Unlock()
		r = f.call(fn, n)
		catching.Lock()
		delete(catching.by, here)
		kept := panicked.by[here]
		catching.Unlock()
		if !kept {
			runtime.UnlockOSThread()
		}
	}()
	<-done
	return r
}

// recovered turns a panic of the library into an error.
func (f *Frame) recovered() {
	switch p := recover().(type) {
	case nil:
	case libraryPanic:
		catching.Lock()
		if panicked.by == nil {
			panicked.by = map[uintptr]bool{}
		}
		panicked.by[thread()] = true
		panicked.count.Add(1)
		catching.Unlock()
		f.Fail(ErrorLost, p.text)
		if f.Lost != nil {
			f.Lost.Lose(p.text)
		}
	default:
		panic(p)
	}
}
