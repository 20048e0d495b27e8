// Package mpi calls a system's MPI library without cgo: Open MPI, MPICH and its derivatives, and libraries of the ABI that MPI 5
// standardises. Which of the three a library has is found out when it is loaded.
//
// MPI is initialised for calls from any thread, one at a time (MPI_THREAD_SERIALIZED): several at once would cost MPICH a hundred times as
// much. Whoever waits polls, so that messages and collectives of several goroutines are on their way together. Messages lie in memory of the
// library ([Buffer]), not in Go's heap: transports between machines cache registrations of memory by address and watch the C library for what
// is unmapped, which Go's allocator goes past. All-reduces among the processes of one machine may take any memory.
package mpi

import (
	"errors"
	"fmt"
	"unsafe"
)

// BufferSize is the size of a [Buffer] in bytes, and so of the largest message: counts are 32 bits wide in MPI.
const BufferSize = 4 << 20

// LeastBlocking is the size in bytes from which AllReduce blocks once all processes have come. Libraries have better algorithms for blocking
// calls than for those that do not block; smaller data would not be worth the barrier.
const LeastBlocking = 8 << 10

// ErrMissing means that no MPI library could be loaded.
var ErrMissing = errors.New("no MPI library")

// ErrTwice means that the process has started MPI before, which is possible once only.
var ErrTwice = errors.New("MPI was started before in this process")

// ErrAbandoned means that the caller stopped waiting. The call may still be going on.
var ErrAbandoned = errors.New("MPI call abandoned")

// Error is the failure of a call.
type Error struct {
	Call string
	Code int
	Text string // the library's
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s (code %d)", e.Call, e.Text, e.Code) }

// Info describes a library.
type Info struct {
	Path    string // as it was loaded
	Family  string // OpenMPI, MPICH or Standard
	Version string // its own description, one line
}

// Buffer is memory for messages.
type Buffer struct {
	Data []byte // BufferSize
	p    unsafe.Pointer
}
