//go:build !android && (amd64 || arm64)

package mpi

import (
	"syscall"
	"unsafe"
)

// action is the kernel's struct sigaction: handler, flags, restorer, mask.
type action [4]uint64

// actions are those of all signals; some cannot be read.
type actions [65]struct {
	action
	known bool
}

func readActions() *actions {
	a := new(actions)
	for s := 1; s < len(a); s++ {
		_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), 0, uintptr(unsafe.Pointer(&a[s].action)), 8, 0, 0)
		a[s].known = errno == 0
	}
	return a
}

// restore sets the actions that have changed since they were read, and returns their signals. UCX, under MPICH, replaces handlers of Go's
// runtime by ones without SA_ONSTACK: a nil dereference would end the process then instead of panicking.
func (a *actions) restore() (changed []int) {
	for s, now := range readActions() {
		if a[s].known && now.known && a[s].action != now.action {
			syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&a[s].action)), 0, 8, 0, 0)
			changed = append(changed, s)
		}
	}
	return changed
}
