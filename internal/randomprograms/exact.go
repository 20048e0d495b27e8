package randomprograms

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

// exact is a device that computes every operation by its reference and rounds each value, also those within expressions and
// within entries that are several operations, to its type. Whatever a program is rewritten to, results must not change by a bit.
// It checks the programs that it is given.
type exact struct {
	executor                            // nil: nobody calls the other methods
	refuses  func(s *program.Step) bool // nil: it agrees to everything
	steps    *[]program.Step            // nil, or where it notes what it was given
	corrupt  func(step int, y []reference.Array)
}

type executor = program.Executor

func (d exact) Fuses(s *program.Step, in, out []program.Type) bool {
	return d.refuses == nil || !d.refuses(s)
}

var errProgram = errors.New("the program is wrong")

// Compile checks that operands are computed before they are used and not updated before, that results are computed once, and
// that they are of their types.
func (d exact) Compile(_ context.Context, p *program.Program) (program.Executable, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	defined, spent := make([]bool, len(p.Values)), make([]bool, len(p.Values))
	for _, s := range slices.Concat(p.Host, p.Tensor) {
		defined[s] = true
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		for _, in := range s.In {
			if !defined[in] || spent[in] {
				return nil, fmt.Errorf("step %d, %s: operand %d: defined %v, updated %v: %w", i, s.Name(), in, defined[in], spent[in], errProgram)
			}
		}
		for k := range s.Entry.Updates {
			spent[s.In[k]] = true
		}
		types, err := s.Entry.Check(p.Types(s.In), s.Attr)
		if err != nil {
			return nil, fmt.Errorf("step %d, %s: %w", i, s.Name(), err)
		}
		for k, out := range s.Out {
			want := p.Values[out].Type
			if defined[out] || len(types) != len(s.Out) || types[k].DType != want.DType || !program.EqualShape(types[k].Shape, want.Shape) {
				return nil, fmt.Errorf("step %d, %s: result %d is %v, types %v: %w", i, s.Name(), out, want, types, errProgram)
			}
			defined[out] = true
		}
	}
	for _, s := range slices.Concat(p.Read, p.Keep) {
		if !defined[s] {
			return nil, fmt.Errorf("result %d is not computed: %w", s, errProgram)
		}
	}
	if d.steps != nil {
		*d.steps = p.Steps
	}
	return &exactExecutable{p: p, corrupt: d.corrupt}, nil
}

type exactExecutable struct {
	program.Executable // nil: nobody calls the other methods
	p                  *program.Program
	corrupt            func(step int, y []reference.Array)
}

func (x *exactExecutable) Close() error { return nil }

func (x *exactExecutable) Start(io *program.IO) *compute.Future {
	p := x.p
	if err := p.CheckIO(io, nil); err != nil {
		return compute.Failed(err)
	}
	values := make([]reference.Array, len(p.Values))
	for i, s := range p.Host {
		values[s] = reference.Array{Shape: p.Values[s].Shape, Data: numbers(io.Host[i])}
	}
	for i, s := range p.Tensor {
		values[s] = io.Tensors[i].(*exactTensor).Array
	}
	computeAll(p, values, x.corrupt)
	for i, s := range p.Read {
		write(io.Read[i], values[s].Data)
	}
	for i, s := range p.Keep {
		io.Keep[i] = &exactTensor{values[s], p.Values[s].DType}
	}
	for s, at := range p.Storage() {
		if i := slices.Index(p.Tensor, at); i >= 0 {
			io.Tensors[i].(*exactTensor).Array = values[s]
		}
	}
	return compute.Failed(nil)
}

// write stores numbers in a slice of their type.
func write(to any, from []float64) {
	for i, v := range from {
		switch y := to.(type) {
		case []float32:
			y[i] = float32(v)
		case []int32:
			y[i] = int32(v)
		case []uint32:
			y[i] = uint32(v)
		case []compute.F16:
			y[i] = halfBits(v)
		case []uint8:
			y[i] = uint8(v)
		case []compute.BF16:
			y[i] = compute.BF16Of(float32(v))
		}
	}
}

type exactTensor struct {
	reference.Array
	d compute.DType
}

func (t *exactTensor) Shape() []int         { return t.Array.Shape }
func (t *exactTensor) DType() compute.DType { return t.d }
func (t *exactTensor) Close() error         { return nil }
func (t *exactTensor) ReadAsync(dst any) *compute.Future {
	write(dst, t.Data)
	return compute.Failed(nil)
}
