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
		if o == nil {
			b.fail(fmt.Errorf("nil option: %w", compute.ErrArgument))
			break
		}
		o(&b.options)
	}
	return b
}

// present reports whether there is a device, kernel or tensor: not nil, nor a nil pointer.
func present(x any) bool {
	v := reflect.ValueOf(x)
	return v.IsValid() && (v.Kind() != reflect.Pointer || !v.IsNil())
}

// Err returns the first error of recording.
func (rec *Batch) Err() error { return rec.err }

// Len returns the number of steps recorded.
func (rec *Batch) Len() int { return len(rec.program.Steps) }

// Shape returns the shape of a value, or nil if an error prevented the value from being recorded.
func (rec *Batch) Shape(v Value) []int {
	if v.batch != rec {
		return nil
	}
	return slices.Clone(rec.program.Values[v.slot].Shape)
}

// Upload makes a value of a slice in host memory: []float32, []int32, []uint32, []uint8, []compute.F16 or []compute.BF16.
// Without a shape it is a vector. The slice is read when the batch runs.
func (rec *Batch) Upload(data any, shape ...int) Value {
	if rec.err != nil {
		return Value{}
	}
	d, n, err := program.TypeOf(data)
	if err != nil {
		return rec.fail(fmt.Errorf("upload: %w", err))
	}
	if shape == nil { // an empty one is that of a scalar
		shape = []int{n}
	}
	t := program.Type{DType: d, Shape: slices.Clone(shape)}
	if err := t.Check(); err != nil {
		return rec.fail(fmt.Errorf("upload: %w", err))
	}
	if err := program.CheckSlice(data, t); err != nil {
		return rec.fail(fmt.Errorf("upload: %w", err))
	}
	rec.host = append(rec.host, data)
	return Value{rec, rec.program.Add(t, program.FromHost)}
}

// Scalar makes a value of shape [] that holds x; operands of shape [] are broadcast.
func (rec *Batch) Scalar(x float32) Value { return rec.Fill(x) }

// Import makes a value of a tensor that is on the device already. Importing it again gives the same value. An operation that
// updates the value in place changes the tensor itself: the programs that use it must run one after the other as they were
// started, and after a failed run its contents are undefined.
func (rec *Batch) Import(t compute.Tensor) Value {
	if rec.err != nil {
		return Value{}
	}
	if !present(t) {
		return rec.fail(fmt.Errorf("import of a nil tensor: %w", compute.ErrArgument))
	}
	if i := slices.IndexFunc(rec.tensors, func(o compute.Tensor) bool { return program.SameTensor(o, t) }); i >= 0 {
		return Value{rec, rec.program.Tensor[i]}
	}
	rec.tensors = append(rec.tensors, t)
	return Value{rec, rec.program.Add(program.Type{DType: t.DType(), Shape: slices.Clone(t.Shape())}, program.FromTensor)}
}

// Kernel runs a user's kernel on values. Launch says how, in the device's own terms (such as gpu.Launch); the result has the
// given element type and shape.
func (rec *Batch) Kernel(k Kernel, launch any, result compute.DType, shape []int, in ...Value) Value {
	slots, ok := rec.slots(in)
	if !ok {
		return Value{}
	}
	if !present(k) {
		return rec.fail(fmt.Errorf("nil kernel: %w", compute.ErrArgument))
	}
	out := program.Type{DType: result, Shape: slices.Clone(shape)}
	s, err := rec.program.ApplyKernel(k, program.Attr{Options: launch}, out, slots...)
	if err != nil {
		return rec.fail(err)
	}
	rec.note()
	return Value{rec, s}
}

// Read copies a value to host memory when the batch runs.
func (rec *Batch) Read(v Value) *Result {
	return rec.read(v, nil)
}

// ReadInto is Read into the caller's slice, whose type and length must be those of the value. Slices of two results must not overlap: it is
// an error of the run.
func (rec *Batch) ReadInto(v Value, dst any) *Result {
	if rec.err == nil && dst == nil {
		rec.fail(fmt.Errorf("read into nil: %w", compute.ErrArgument))
	}
	return rec.read(v, dst)
}

func (rec *Batch) read(v Value, dst any) *Result {
	r := &Result{}
	slots, ok := rec.slots([]Value{v})
	if !ok {
		return r
	}
	r.typ = rec.program.Values[slots[0]].Type
	if dst != nil {
		if err := program.CheckSlice(dst, r.typ); err != nil {
			rec.fail(fmt.Errorf("read: %w", err))
			return r
		}
	}
	r.data = dst
	rec.program.Read = append(rec.program.Read, slots[0])
	rec.results = append(rec.results, r)
	return r
}

// Keep retains a value on the device as a tensor when the batch runs. Each run makes a new tensor, which is the caller's once
// [Kept.Tensor] has returned it. A tensor that nobody took is closed when the next run starts, or when the plan is closed.
func (rec *Batch) Keep(v Value) *Kept {
	k := &Kept{}
	if slots, ok := rec.slots([]Value{v}); ok {
		rec.program.Keep = append(rec.program.Keep, slots[0])
		rec.kept = append(rec.kept, k)
	}
	return k
}

// apply records a step of the catalogue with one result; the generated methods call it.
func (rec *Batch) apply(e *program.Entry, scalars []float32, options any, in ...Value) Value {
	return rec.applyAll(e, scalars, options, in...)[0]
}

// applyAll is apply for any number of results.
func (rec *Batch) applyAll(e *program.Entry, scalars []float32, options any, in ...Value) []Value {
	values := make([]Value, e.ResultCount())
	slots, ok := rec.slots(in)
	if !ok {
		return values
	}
	out, err := rec.program.ApplyAll(e, program.Attr{Scalars: scalars, Options: options}, slots...)
	if err != nil {
		rec.fail(err)
		return values
	}
	rec.note()
	for i, s := range out {
		values[i] = Value{rec, s}
	}
	return values
}

// slots returns the slots of operands, or false if recording is over.
func (rec *Batch) slots(in []Value) ([]program.Slot, bool) {
	if rec.err != nil {
		return nil, false
	}
	slots := make([]program.Slot, len(in))
	for i, v := range in {
		switch {
		case v.batch == nil:
			rec.fail(fmt.Errorf("operand %d is no value: %w", i, compute.ErrArgument))
			return nil, false
		case v.batch != rec:
			rec.fail(fmt.Errorf("operand %d is a value of another batch: %w", i, compute.ErrForeignTensor))
			return nil, false
		}
		slots[i] = v.slot
	}
	return slots, true
}

// fail keeps the first error, with the line of the caller's code that recorded it.
func (rec *Batch) fail(err error) Value {
	if rec.err == nil {
		rec.err = fmt.Errorf("%w (recorded at %s)", err, caller())
	}
	return Value{}
}

// note remembers where the latest step was recorded, for guards and for the error of a memory limit.
func (rec *Batch) note() {
	if rec.options.sources != nil {
		rec.sources = append(rec.sources, rec.options.sources())
	}
	if rec.options.guard == nil && rec.options.memoryLimit == 0 {
		return
	}
	if rec.sites == nil {
		rec.sites = map[int]string{}
	}
	rec.sites[len(rec.program.Steps)-1] = caller()
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
