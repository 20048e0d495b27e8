package compute

// Tensor is data that stays on a device between operations. Devices make tensors (Upload, or a batch's Keep) and accept
// only their own.
//
// A tensor is safe for concurrent use; batches that read it may run at the same time. Close frees its memory once the work
// already submitted no longer needs it, and is idempotent; later use fails with [ErrClosed].
type Tensor interface {
	Shape() []int // a copy
	DType() DType
	// ReadAsync copies the elements to dst, whose type and length must match: []float32, []int32, []uint32, []F16 or
	// []BF16.
	ReadAsync(dst any) *Future
	Close() error
}
