// Package nccl calls NVIDIA's library of collectives without cgo. It is loaded when the program runs.
//
// Communicators are made without blocking, so that making one can be given up: calls may then return before they have taken effect, and
// [Comm.Settle] waits until they have. A group of calls, from GroupStart to GroupEnd, belongs to a thread of the operating
// system, as does the device that is current: callers stay on one. Prototypes are compared with NVIDIA's nccl.h by a test.
package nccl

import (
	"errors"
	"fmt"
)

// ErrMissing means that the library could not be loaded.
var ErrMissing = errors.New("no NCCL library")

// Error is the failure of a call.
type Error struct {
	Call string
	Code int    // ncclResult_t
	Text string // the library's
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s (code %d)", e.Call, e.Text, e.Code) }

// ID is what ranks that make a communicator together have in common.
type ID [128]byte

// Type is a type of elements.
type Type int32

// Types.
const (
	Uint8   Type = 1
	Int32   Type = 2
	Float32 Type = 7
)

// Op is a reduction.
type Op int32

// Operations.
const (
	Sum Op = 0
	Max Op = 2
	Min Op = 3
	Avg Op = 4
)
