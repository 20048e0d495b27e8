package conformance

import (
	"context"
	"slices"
	"sync"

	"github.com/x448/float16"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

// referenceDevice is a device that computes by the catalogue's references. It passes the suite by construction, and with a
// mutation it must not: that shows that the suite can fail.
type referenceDevice struct {
	program.Executor // nil: nobody calls the other methods
	// mutate, when set, may change the result of a step before it is stored.
	mutate func(s program.Step, in []operand, result any)
	// skip leaves destinations as they are.
	skip bool
}

func (r *referenceDevice) Compile(_ context.Context, p *program.Program) (program.Executable, error) {
	return &referenceExecutable{device: r, p: p}, p.Check()
}

type referenceExecutable struct {
	program.Executable // nil: nobody calls the other methods
	device             *referenceDevice
	p                  *program.Program
	mu                 sync.Mutex
	closed             bool
}

func (x *referenceExecutable) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	return nil
}

func (x *referenceExecutable) Start(io *program.IO) *compute.Future {
	x.mu.Lock()
	closed := x.closed
	x.mu.Unlock()
	if closed {
		return compute.Failed(compute.ErrClosed)
	}
	if err := x.p.CheckIO(io, nil); err != nil {
		return compute.Failed(err)
	}
	data := make([]any, len(x.p.Values))
	for i, s := range x.p.Host {
		data[s] = operand{data: io.Host[i]}.clone().data
	}
	for i, s := range x.p.Tensor {
		t, ok := io.Tensors[i].(*referenceTensor)
		if !ok {
			return compute.Failed(compute.ErrForeignTensor)
		}
		if t.isClosed() {
			return compute.Failed(compute.ErrClosed)
		}
		data[s] = t.data
	}
	for _, s := range x.p.Steps {
		in := make([]operand, len(s.In))
		for i, slot := range s.In {
			in[i] = operand{x.p.Values[slot].Type, data[slot]}
		}
		out := x.p.Types(s.Out)
		for k, y := range reference.Of(s.Entry, arrays(in), s.Attr.At(io.Scalars), out) {
			data[s.Out[k]] = narrow(y.Data, out[k])
		}
		if s.Entry == catalogue.Copy || s.Entry == catalogue.Reshape {
			data[s.Out[0]] = in[0].clone().data // words that are NaN as floats stay what they are
		}
		if x.device.mutate != nil {
			x.device.mutate(s, in, data[s.Out[0]])
		}
	}
	for s, at := range x.p.Storage() {
		if at != program.Slot(s) {
			copy(program.Bytes(data[at]), program.Bytes(data[s])) // the tensor itself; steps are in order, so the last one stays
		}
	}
	io.Keep = nil
	for _, s := range x.p.Keep {
		io.Keep = append(io.Keep, &referenceTensor{t: x.p.Values[s].Type, data: operand{data: data[s]}.clone().data})
	}
	f, resolve := compute.NewFuture(nil)
	resolve(nil, func() {
		for i, s := range x.p.Read {
			if !x.device.skip {
				copy(program.Bytes(io.Read[i]), program.Bytes(data[s]))
			}
		}
	})
	return f
}

func narrow(v []float64, t program.Type) any {
	out := program.MakeSlice(t)
	for i, f := range v {
		switch s := out.(type) {
		case []float32:
			s[i] = float32(f)
		case []int32:
			s[i] = int32(f)
		case []uint32:
			s[i] = uint32(f)
		case []compute.F16:
			s[i] = compute.F16(float16.Fromfloat32(float32(f)).Bits())
		case []uint8:
			s[i] = uint8(f)
		case []compute.BF16:
			s[i] = compute.BF16Of(float32(f))
		}
	}
	return out
}

type referenceTensor struct {
	t      program.Type
	data   any
	mu     sync.Mutex
	closed bool
}

func (t *referenceTensor) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

func (t *referenceTensor) Shape() []int         { return slices.Clone(t.t.Shape) }
func (t *referenceTensor) DType() compute.DType { return t.t.DType }

func (t *referenceTensor) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	return nil
}

func (t *referenceTensor) ReadAsync(dst any) *compute.Future {
	if t.isClosed() {
		return compute.Failed(compute.ErrClosed)
	}
	if err := program.CheckSlice(dst, t.t); err != nil {
		return compute.Failed(err)
	}
	f, resolve := compute.NewFuture(nil)
	resolve(nil, func() { copy(program.Bytes(dst), program.Bytes(t.data)) })
	return f
}
