package batch

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Device is a device of this module: [github.com/wavelane/wavelane.Device], [github.com/wavelane/wavelane/cuda.Device],
// [github.com/wavelane/wavelane/gpu.Device] or [github.com/wavelane/wavelane/cpu.Device]. Other packages cannot implement it.
type Device interface{ sealedDevice }

// Kernel is a kernel of your own, made by NewKernel of package gpu or cpu or by a module of package cuda, for the device that runs the
// batch. Other packages cannot implement it.
type Kernel interface {
	Name() string // for errors and listings
	sealedKernel
}

type (
	sealedDevice = program.Device
	sealedKernel = program.Kernel
)

// Batch records operations on values.
type Batch struct {
	device  program.Executor // nil for a batch that will not run
	options options
	program program.Program
	host    []any            // data of program.Host
	tensors []compute.Tensor // of program.Tensor
	results []*Result        // one per program.Read
	kept    []*Kept          // one per program.Keep
	scalars []float32        // one per program.Variables, as recorded
	guards  []guard
	sites   map[int]string // file:line by step, if needed
	sources [][]string     // by step, see [WithSources]
	err     error

	parameters []program.Slot // values that including batches give
	returns    []program.Slot
	uploads    map[Value]Value // of batches that are included
}

// Value is a handle of a value that a batch will compute. It belongs to its batch.
type Value struct {
	batch *Batch
	slot  program.Slot
}

// New returns an empty batch for a device. One for a nil device can be recorded and listed, and not run.
func New(device Device, options ...Option) *Batch {
	b := &Batch{}
	if present(device) {
		b.device = program.ExecutorOf(device)
	}
	for _, o := range options {
		o(&b.options)
	}
	return b
}

// present reports whether there is a device or kernel: not nil, nor a nil pointer.
func present(x any) bool {
	v := reflect.ValueOf(x)
	return v.IsValid() && (v.Kind() != reflect.Pointer || !v.IsNil())
}

// Err returns the first error of recording.
func (b *Batch) Err() error { return b.err }

// Len returns the number of steps recorded.
func (b *Batch) Len() int { return len(b.program.Steps) }

// Shape returns the shape of a value, or nil if an error prevented the value from being recorded.
func (b *Batch) Shape(v Value) []int {
	if v.batch != b {
		return nil
	}
	return slices.Clone(b.program.Values[v.slot].Shape)
}

// Upload makes a value of a slice in host memory: []float32, []int32, []uint32, []compute.BF16, or []uint16 for Float16 bits.
// Without a shape it is a vector. The slice is read when the batch runs.
func (b *Batch) Upload(data any, shape ...int) Value {
	if b.err != nil {
		return Value{}
	}
	d, n, err := program.TypeOf(data)
	if err != nil {
		return b.fail(fmt.Errorf("upload: %w", err))
	}
	if shape == nil { // an empty one is that of a scalar
		shape = []int{n}
	}
	t := program.Type{DType: d, Shape: slices.Clone(shape)}
	if err := t.Check(); err != nil {
		return b.fail(fmt.Errorf("upload: %w", err))
	}
	if err := program.CheckSlice(data, t); err != nil {
		return b.fail(fmt.Errorf("upload: %w", err))
	}
	b.host = append(b.host, data)
	return Value{b, b.program.Add(t, program.FromHost)}
}

// Scalar makes a value of shape [] that holds x; operands of shape [] are broadcast.
func (b *Batch) Scalar(x float32) Value { return b.Fill(x) }

// Import makes a value of a tensor that is on the device already. Importing it again gives the same value. An operation that
// updates the value in place changes the tensor itself: the programs that use it must run one after the other as they were
// started, and after a failed run its contents are undefined.
func (b *Batch) Import(t compute.Tensor) Value {
	if b.err != nil {
		return Value{}
	}
	if t == nil {
		return b.fail(fmt.Errorf("import of a nil tensor: %w", compute.ErrArgument))
	}
	if i := slices.IndexFunc(b.tensors, func(o compute.Tensor) bool { return program.SameTensor(o, t) }); i >= 0 {
		return Value{b, b.program.Tensor[i]}
	}
	b.tensors = append(b.tensors, t)
	return Value{b, b.program.Add(program.Type{DType: t.DType(), Shape: slices.Clone(t.Shape())}, program.FromTensor)}
}

// Kernel runs a user's kernel on values. Launch says how, in the device's own terms (such as gpu.Launch); the result has the
// given element type and shape.
func (b *Batch) Kernel(k Kernel, launch any, result compute.DType, shape []int, in ...Value) Value {
	slots, ok := b.slots(in)
	if !ok {
		return Value{}
	}
	if !present(k) {
		return b.fail(fmt.Errorf("nil kernel: %w", compute.ErrArgument))
	}
	out := program.Type{DType: result, Shape: slices.Clone(shape)}
	s, err := b.program.ApplyKernel(k, program.Attr{Options: launch}, out, slots...)
	if err != nil {
		return b.fail(err)
	}
	b.note()
	return Value{b, s}
}

// Read copies a value to host memory when the batch runs.
func (b *Batch) Read(v Value) *Result {
	return b.read(v, nil)
}

// ReadInto is Read into the caller's slice, whose type and length must be those of the value.
func (b *Batch) ReadInto(v Value, dst any) *Result {
	if b.err == nil && dst == nil {
		b.fail(fmt.Errorf("read into nil: %w", compute.ErrArgument))
	}
	return b.read(v, dst)
}

func (b *Batch) read(v Value, dst any) *Result {
	r := &Result{}
	slots, ok := b.slots([]Value{v})
	if !ok {
		return r
	}
	r.typ = b.program.Values[slots[0]].Type
	if dst != nil {
		if err := program.CheckSlice(dst, r.typ); err != nil {
			b.fail(fmt.Errorf("read: %w", err))
			return r
		}
	}
	r.data = dst
	b.program.Read = append(b.program.Read, slots[0])
	b.results = append(b.results, r)
	return r
}

// Keep retains a value on the device as a tensor when the batch runs. Each run makes a new tensor, which is the caller's once
// [Kept.Tensor] has returned it. A tensor that nobody took is closed when the next run starts, or when the plan is closed.
func (b *Batch) Keep(v Value) *Kept {
	k := &Kept{}
	if slots, ok := b.slots([]Value{v}); ok {
		b.program.Keep = append(b.program.Keep, slots[0])
		b.kept = append(b.kept, k)
	}
	return k
}

// apply records a step of the catalogue with one result; the generated methods call it.
func (b *Batch) apply(e *program.Entry, scalars []float32, options any, in ...Value) Value {
	return b.applyAll(e, scalars, options, in...)[0]
}

// applyAll is apply for any number of results.
func (b *Batch) applyAll(e *program.Entry, scalars []float32, options any, in ...Value) []Value {
	values := make([]Value, e.ResultCount())
	slots, ok := b.slots(in)
	if !ok {
		return values
	}
	out, err := b.program.ApplyAll(e, program.Attr{Scalars: scalars, Options: options}, slots...)
	if err != nil {
		b.fail(err)
		return values
	}
	b.note()
	for i, s := range out {
		values[i] = Value{b, s}
	}
	return values
}

// slots returns the slots of operands, or false if recording is over.
func (b *Batch) slots(in []Value) ([]program.Slot, bool) {
	if b.err != nil {
		return nil, false
	}
	slots := make([]program.Slot, len(in))
	for i, v := range in {
		switch {
		case v.batch == nil:
			b.fail(fmt.Errorf("operand %d is no value: %w", i, compute.ErrArgument))
			return nil, false
		case v.batch != b:
			b.fail(fmt.Errorf("operand %d is a value of another batch: %w", i, compute.ErrForeignTensor))
			return nil, false
		}
		slots[i] = v.slot
	}
	return slots, true
}

// fail keeps the first error, with the line of the caller's code that recorded it.
func (b *Batch) fail(err error) Value {
	if b.err == nil {
		b.err = fmt.Errorf("%w (recorded at %s)", err, caller())
	}
	return Value{}
}

// note remembers where the latest step was recorded, for guards and for the error of a memory limit.
func (b *Batch) note() {
	if b.options.sources != nil {
		b.sources = append(b.sources, b.options.sources())
	}
	if b.options.guard == nil && b.options.memoryLimit == 0 {
		return
	}
	if b.sites == nil {
		b.sites = map[int]string{}
	}
	b.sites[len(b.program.Steps)-1] = caller()
}

const packagePath = "github.com/wavelane/wavelane/batch."

// caller returns file:line of the innermost frame outside this package.
func caller() (site string) {
	outside(func(f *runtime.Frame) bool {
		site = fmt.Sprintf("%s:%d", f.File, f.Line)
		return false
	})
	return site
}

// outside calls f for the frames outside this package, the innermost first, until it returns false.
func outside(f func(*runtime.Frame) bool) {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for more := true; more; {
		var frame runtime.Frame
		if frame, more = frames.Next(); !strings.HasPrefix(frame.Function, packagePath) || !more {
			if !f(&frame) {
				return
			}
		}
	}
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
