package dist

import (
	"errors"
	"fmt"
)

// ErrBroken is what every [*BrokenError] wraps.
var ErrBroken = errors.New("group is broken")

// ErrLauncher means that the processes were started by the launcher of another MPI library than the one that was loaded: each would be a
// world of its own.
var ErrLauncher = errors.New("launcher and MPI library do not belong together")

// ErrMismatch means that members of a group have recorded different collectives in their batches; and, of a group in one process, that they
// called different ones, or with different sizes.
var ErrMismatch = errors.New("members called different collectives")

// BrokenError tells what broke a group. It wraps [ErrBroken] and Err.
type BrokenError struct {
	Group    string // "world" or what it was split from
	Rank     int
	Call     string // such as "AllReduce of 1024 float32"
	Sequence uint64 // of the call in the group, from 1
	Caller   string // file and line
	Err      error  // such as context.Canceled
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("rank %d of %s: %s, call %d, at %s: %v: %v", e.Rank, e.Group, e.Call, e.Sequence, e.Caller, e.Err, ErrBroken)
}

func (e *BrokenError) Unwrap() []error { return []error{ErrBroken, e.Err} }
