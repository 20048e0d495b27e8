package cuda

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// ErrContextPoisoned reports that a kernel has faulted and that the device's context can no longer be used: everything fails
// until all devices opened on it are closed and one is opened again. It wraps [compute.ErrDeviceLost]. Errors that wrap it
// are of type [*PoisonedError].
var ErrContextPoisoned = fmt.Errorf("the context is dead after a fault: %w", compute.ErrDeviceLost)

// Error is an error of a driver call. It wraps the sentinel of package compute that fits the code.
type Error struct {
	Call   string // of the driver, such as "cuMemAlloc"
	Code   int    // CUresult
	Name   string // such as "CUDA_ERROR_OUT_OF_MEMORY"
	Text   string // the driver's description
	Detail string // what else is known, such as where the software GPU found a fault; may have several lines
	Log    string // what the compiler printed, if PTX was compiled
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%d)", e.Call, e.Name, e.Code)
	if e.Text != "" {
		s += ": " + e.Text
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if log := strings.TrimSpace(e.Log); log != "" {
		s += "\n" + log
	}
	return s
}

// Unwrap is the sentinel of package compute for the code.
func (e *Error) Unwrap() error {
	switch r := driver.Result(e.Code); r {
	case driver.OutOfMemory:
		return compute.ErrOutOfMemory
	case driver.NoDevice, driver.NotInitialized, driver.Deinitialized, driver.StubLibrary, driver.DeviceUnavailable,
		driver.InvalidDevice, driver.SystemDriverMismatch:
		return compute.ErrUnavailable
	case driver.InvalidPTX, driver.InvalidSource, driver.InvalidValue, driver.InvalidImage, driver.NotFound,
		driver.InvalidClusterSize:
		return compute.ErrArgument
	case driver.LaunchOutOfResources, driver.CooperativeTooLarge:
		return compute.ErrTooLarge
	case driver.NoBinaryForGPU, driver.JITCompilerNotFound, driver.UnsupportedPTXVersion, driver.JITCompilationDisabled,
		driver.NotSupported, driver.NotPermitted, driver.PeerAccessUnsupported, driver.CaptureUnsupported:
		return compute.ErrUnsupported
	default:
		if r.Sticky() {
			return compute.ErrDeviceLost
		}
		return errDriver
	}
}

// errDriver is wrapped by codes without a sentinel of their own, such as that of an invalid handle.
var errDriver = fmt.Errorf("the driver refuses: %w", compute.ErrArgument)

// PoisonedError is the error of all calls after a context was destroyed. It wraps [ErrContextPoisoned] and its cause.
type PoisonedError struct {
	Cause    *Error         // the first call that reported the fault, not necessarily the one at fault
	Launches []LaunchRecord // the last ones before that, the latest last; the one at fault is among them unless many were in flight
}

// LaunchRecord names a launch in reports.
type LaunchRecord struct {
	Number      uint64 // counted from the opening of the context
	Kernel      string
	Grid, Block [3]uint32
}

func (l LaunchRecord) String() string {
	return fmt.Sprintf("#%d %s, grid %v, block %v", l.Number, l.Kernel, l.Grid, l.Block)
}

func (e *PoisonedError) Error() string {
	var b strings.Builder
	b.WriteString(ErrContextPoisoned.Error() + ": " + e.Cause.Error())
	if len(e.Launches) > 0 {
		b.WriteString("\nlast launches:")
		for _, l := range e.Launches {
			b.WriteString("\n  " + l.String())
		}
	}
	return b.String()
}

// Unwrap is the sentinel and the cause.
func (e *PoisonedError) Unwrap() []error { return []error{ErrContextPoisoned, e.Cause} }
