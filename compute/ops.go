package compute

import (
	"context"
	"fmt"
	"slices"
)

//go:generate go run ../internal/gen ..

// Operand is a slice in host memory with a shape: []float32, []int32, []uint32, []F16 or []BF16.
type Operand struct {
	Data  any
	Shape []int
}

// Of gives a slice a shape; without one it is a vector.
func Of[E float32 | int32 | uint32 | uint8 | F16 | BF16](data []E, shape ...int) Operand {
	if len(shape) == 0 {
		shape = []int{len(data)}
	}
	return Operand{data, shape}
}

// Runner executes single operations of the catalogue; devices implement it for [Ops].
type Runner interface {
	// Run applies the named entry. Shapes of out may be nil: then only lengths are checked. It does not wait for compilers longer
	// than until ctx ends, and not at all where ctx is nil: then it is started when its code has been compiled.
	Run(ctx context.Context, entry string, out []Operand, in []Operand, scalars []float32, options any) *Future
	// Upload is [Ops.UploadAsync].
	Upload(ctx context.Context, data any, shape ...int) (Tensor, *Future)
}

// Ops carries one asynchronous method per operation of the catalogue, on slices of host memory, and natively a blocking
// method beside each. Every device embeds it. Each call is a program of one step: upload, run, read back. To keep data on
// the device between operations, record a batch.
//
// The destination comes first. Destination and operands may overlap or be the same slice: results are as if the operands
// had been copied. Destinations of one call, such as the parameters and moments of [Ops.Adam], must not overlap each other. Slices
// belong to the call until its future is done; a blocking call that its context ended returns them.
//
// Asynchronous methods return at once. On devices that have a compiler, the first call of an operation begins when its kernels have been
// compiled, so that later calls of other operations may overtake it; closing the device before that makes it fail with [ErrClosed].
//
// Errors wrap [ErrShape], [ErrArgument], [ErrDType], [ErrTooLarge], [ErrOutOfMemory], [ErrDeviceLost] or [ErrClosed].
type Ops struct {
	run Runner
	ctx context.Context // of the one call that a blocking method makes; nil outside of it
}

// NewOps is for devices.
func NewOps(r Runner) Ops { return Ops{run: r} }

// during is the operations while a call with a context runs.
func (o Ops) during(ctx context.Context) Ops { return Ops{o.run, ctx} }

func (o Ops) context() context.Context {
	if o.ctx == nil {
		return context.Background()
	}
	return o.ctx
}

var errZeroOps = fmt.Errorf("operation on a device that was not opened: %w", ErrArgument)

// start is Runner.Run, an error for the zero Ops.
func (o Ops) start(entry string, out, in []Operand, scalars []float32, options any) *Future {
	if o.run == nil {
		return Failed(errZeroOps)
	}
	return o.run.Run(o.ctx, entry, out, in, scalars, options)
}

// UploadAsync copies a slice to the device, where it stays as a tensor until it is closed: []float32, []int32, []uint32, []F16 or
// []BF16. Without a shape the tensor is a vector.
//
// The tensor can be used at once, in work that runs after the copy; if the future fails, so does that work. The slice may be changed as
// soon as UploadAsync returns. If the upload could not begin, the tensor is nil and the future says why.
func (o Ops) UploadAsync(data any, shape ...int) (Tensor, *Future) {
	if o.run == nil {
		return nil, Failed(errZeroOps)
	}
	return o.run.Upload(o.context(), data, shape...)
}

// ApplyAsync runs the operation of that name in the catalogue on operands of any shape, with everything that operation
// offers: broadcasting, batches, axes. Scalars and options are those of the batch method of that operation; where it has several
// results, y is a []any of that many slices.
func (o Ops) ApplyAsync(entry string, y any, operands []Operand, scalars []float32, options any) *Future {
	ys, ok := y.([]any)
	if !ok {
		ys = []any{y}
	}
	return o.start(entry, destinations(ys...), operands, scalars, options)
}

// destinations are slices whose shapes are what the operation makes them; only their lengths are checked.
func destinations(y ...any) []Operand {
	out := make([]Operand, len(y))
	for i := range y {
		out[i].Data = y[i]
	}
	return out
}

// optional returns the options of a call, of which there is at most one. More make a value that no operation accepts.
func optional[T any](options []T) any {
	switch len(options) {
	case 0:
		var zero T
		return zero
	case 1:
		return options[0]
	}
	return options
}

// rowsOf lays a slice out as rows of equal length. What does not divide is caught as a wrong length.
func rowsOf(x []float32, rows int) Operand {
	return Of(x, rows, len(x)/max(rows, 1))
}

func (o Ops) matmulBias(c, a, b, bias []float32, m, k, n int, options []MatMulOptions) *Future {
	if bias == nil {
		bias = []float32{} // nil means none below
	}
	return o.matmul(c, a, b, bias, nil, m, k, n, options)
}

func (o Ops) matmul(c, a, b, bias []float32, batch []int, m, k, n int, options []MatMulOptions) *Future {
	var opt MatMulOptions
	if len(options) == 1 {
		opt = options[0]
	}
	sa, sb := []int{m, k}, []int{k, n}
	if opt.TransA {
		sa = []int{k, m}
	}
	if opt.TransB {
		sb = []int{n, k}
	}
	in := []Operand{Of(a, slices.Concat(batch, sa)...), Of(b, slices.Concat(batch, sb)...)}
	if bias != nil {
		in = append(in, Of(bias))
	}
	return o.start("matmul", destinations(c), in, nil, optional(options))
}
