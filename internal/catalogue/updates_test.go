package catalogue_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// accumulate changes its first two operands in place and has a third result besides.
var accumulate = &program.Entry{Name: "accumulate", Method: "Accumulate", Class: program.Layer,
	Inputs: []program.Input{{Name: "sum"}, {Name: "count"}, {Name: "x"}}, Results: []string{"sum", "count", "mean"}, Updates: 2,
	InferAll: func(in []program.Type, _ program.Attr) ([]program.Type, error) {
		return []program.Type{in[2], in[1], in[2]}, nil
	}}

func TestSeveralResults(t *testing.T) {
	p := &program.Program{}
	sum, count, x := p.Add(program.F32(3), program.FromTensor), p.Add(program.F32(), program.FromTensor), p.Add(program.F32(3), program.FromHost)
	out, err := p.ApplyAll(accumulate, program.Attr{}, sum, count, x)
	require.NoError(t, err)
	require.Equal(t, []program.Slot{3, 4, 5}, out)
	require.Equal(t, []program.Type{program.F32(3), program.F32(), program.F32(3)}, p.Types(out))
	require.Equal(t, 3, accumulate.ResultCount())
	require.Equal(t, 1, catalogue.Add.ResultCount())
}

// What is changed in place lies where it lay; the rest has storage of its own.
func TestStorage(t *testing.T) {
	p := &program.Program{}
	sum, count, x := p.Add(program.F32(3), program.FromTensor), p.Add(program.F32(), program.FromHost), p.Add(program.F32(3), program.FromTensor)
	first, err := p.ApplyAll(accumulate, program.Attr{}, sum, count, x)
	require.NoError(t, err)
	second, err := p.ApplyAll(accumulate, program.Attr{}, first[0], first[1], x)
	require.NoError(t, err)
	homes := p.Storage()
	require.Equal(t, []program.Slot{sum, sum}, []program.Slot{homes[first[0]], homes[second[0]]})
	for _, s := range []program.Slot{sum, count, x, first[1], first[2], second[1], second[2]} {
		require.Equal(t, s, homes[s], "slot %d", s)
	}
	require.Equal(t, []int{0}, p.Changed())
	require.NoError(t, p.Check())

	p.Keep = []program.Slot{second[1], x}
	require.NoError(t, p.Check(), "what has storage of its own can be retained, and so can a tensor that does not change")
	for _, s := range []program.Slot{sum, second[0]} {
		p.Keep = []program.Slot{s}
		require.ErrorIs(t, p.Check(), compute.ErrArgument)
	}
	p.Keep, p.Read = nil, []program.Slot{second[0], count}
	require.NoError(t, p.Check())
	for _, s := range []program.Slot{sum, first[0]} {
		p.Read = []program.Slot{s}
		require.ErrorIs(t, p.Check(), compute.ErrArgument, "an earlier state of a tensor is gone when results are read")
	}
}

// An operand that a step has changed cannot be used again: its result has to be.
func TestChangedOperands(t *testing.T) {
	p := &program.Program{}
	sum, count, x := p.Add(program.F32(3), program.FromHost), p.Add(program.F32(), program.FromHost), p.Add(program.F32(3), program.FromHost)
	out, err := p.ApplyAll(accumulate, program.Attr{}, sum, count, x)
	require.NoError(t, err)
	_, err = p.Apply(catalogue.Add, program.Attr{}, out[0], sum)
	require.ErrorIs(t, err, compute.ErrArgument)
	require.ErrorContains(t, err, "accumulate")
	_, err = p.ApplyKernel(kernel{func([]program.Type, program.Type, program.Attr) error { return nil }}, program.Attr{}, program.F32(3), count)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = p.Apply(catalogue.Add, program.Attr{}, out[0], x)
	require.NoError(t, err, "x was only read")
	_, err = p.ApplyAll(accumulate, program.Attr{}, x, out[1], x)
	require.ErrorIs(t, err, compute.ErrArgument, "read and changed by one step")
	require.Len(t, p.Steps, 2)

	_, err = p.ApplyAll(accumulate, program.Attr{}, p.Add(program.F32(4), program.FromHost), out[1], x)
	require.ErrorIs(t, err, compute.ErrShape, "the result does not fit the operand that it replaces")
}

// A tensor that changes cannot be given for another value as well.
func TestChangedTensorTwice(t *testing.T) {
	p := &program.Program{}
	a, b := p.Add(program.F32(3), program.FromTensor), p.Add(program.F32(3), program.FromTensor)
	_, err := p.ApplyAll(accumulate, program.Attr{}, a, p.Add(program.F32(), program.FromHost), b)
	require.NoError(t, err)
	x, y := &tensor{program.F32(3)}, &tensor{program.F32(3)}
	io := func(a, b compute.Tensor) *program.IO {
		return &program.IO{Host: []any{[]float32{0}}, Tensors: []compute.Tensor{a, b}}
	}
	require.NoError(t, p.CheckIO(io(x, y), nil))
	require.ErrorIs(t, p.CheckIO(io(x, x), nil), compute.ErrArgument)
}

// kernel is a user's kernel that takes anything.
type kernel struct{ program.KernelCheck }

func (kernel) Name() string { return "mine" }

// tensor is a tensor without data.
type tensor struct{ program.Type }

func (t *tensor) Shape() []int                  { return t.Type.Shape }
func (t *tensor) DType() compute.DType          { return t.Type.DType }
func (t *tensor) ReadAsync(any) *compute.Future { return nil }
func (t *tensor) Close() error                  { return nil }
