package compute

import "errors"

// Errors that operations wrap. Test for them with [errors.Is]; the text around them names the operation and its shapes.
var (
	// ErrShape: shapes or lengths do not fit each other or the operation.
	ErrShape = errors.New("shape mismatch")
	// ErrDType: an element type that the operation does not take.
	ErrDType = errors.New("wrong element type")
	// ErrArgument: an option or argument outside its range, such as a nil slice or a stride below one.
	ErrArgument = errors.New("invalid argument")
	// ErrUnavailable: the requested device or adapter does not exist on this machine or in this build.
	ErrUnavailable = errors.New("device unavailable")
	// ErrUnsupported: the device does not support the request; the text says what to do instead.
	ErrUnsupported = errors.New("unsupported")
	// ErrDeviceLost: the device failed and all that was resident on it is gone. Close it, open it again, upload again.
	ErrDeviceLost = errors.New("device lost")
	// ErrOutOfMemory: the device or the configured memory limit has no room for a buffer.
	ErrOutOfMemory = errors.New("out of device memory")
	// ErrTooLarge: a buffer, binding or dispatch beyond what the adapter allows at all, however much memory is free.
	ErrTooLarge = errors.New("beyond a device limit")
	// ErrClosed: use after Close.
	ErrClosed = errors.New("closed")
	// ErrForeignTensor: a tensor, value or kernel of another device or another batch.
	ErrForeignTensor = errors.New("belongs to another device")
	// ErrNotFinite: a value is NaN or infinite where a guard forbids it.
	ErrNotFinite = errors.New("value is not finite")
	// ErrDiverged: two runs that should agree do not.
	ErrDiverged = errors.New("runs differ")
	// ErrInFlight: a run of a plan was started while another one had not ended.
	ErrInFlight = errors.New("a run is in flight")
	// ErrNotRun: a result was used before its batch ran.
	ErrNotRun = errors.New("batch has not run")
)
