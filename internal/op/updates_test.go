package op_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

// accumulate changes its first two operands in place and has a third result besides.
var accumulate = &op.Entry{Name: "accumulate", Method: "Accumulate", Class: op.Layer,
	Inputs: []op.Input{{Name: "sum"}, {Name: "count"}, {Name: "x"}}, Results: []string{"sum", "count", "mean"}, Updates: 2,
	InferAll: func(in []op.Type, _ op.Attr) ([]op.Type, error) { return []op.Type{in[2], in[1], in[2]}, nil }}

func TestSeveralResults(t *testing.T) {
	p := &op.Program{}
	sum, count, x := p.Add(op.F32(3), op.FromTensor), p.Add(op.F32(), op.FromTensor), p.Add(op.F32(3), op.FromHost)
	out, err := p.ApplyAll(accumulate, op.Attr{}, sum, count, x)
	require.NoError(t, err)
	require.Equal(t, []op.Slot{3, 4, 5}, out)
	require.Equal(t, []op.Type{op.F32(3), op.F32(), op.F32(3)}, p.Types(out))
	require.Equal(t, 3, accumulate.ResultCount())
	require.Equal(t, 1, op.Add.ResultCount())
}

// What is changed in place lies where it lay; the rest has a place of its own.
func TestHomes(t *testing.T) {
	p := &op.Program{}
	sum, count, x := p.Add(op.F32(3), op.FromTensor), p.Add(op.F32(), op.FromHost), p.Add(op.F32(3), op.FromTensor)
	first, err := p.ApplyAll(accumulate, op.Attr{}, sum, count, x)
	require.NoError(t, err)
	second, err := p.ApplyAll(accumulate, op.Attr{}, first[0], first[1], x)
	require.NoError(t, err)
	homes := p.Homes()
	require.Equal(t, []op.Slot{sum, sum}, []op.Slot{homes[first[0]], homes[second[0]]})
	for _, s := range []op.Slot{sum, count, x, first[1], first[2], second[1], second[2]} {
		require.Equal(t, s, homes[s], "slot %d", s)
	}
	require.Equal(t, []int{0}, p.Changed())
	require.NoError(t, p.Check())

	p.Keep = []op.Slot{second[1], x}
	require.NoError(t, p.Check(), "what has a place of its own can be kept, and so can a tensor that stays as it is")
	for _, s := range []op.Slot{sum, second[0]} {
		p.Keep = []op.Slot{s}
		require.ErrorIs(t, p.Check(), compute.ErrArgument)
	}
	p.Keep, p.Read = nil, []op.Slot{second[0], count}
	require.NoError(t, p.Check())
	for _, s := range []op.Slot{sum, first[0]} {
		p.Read = []op.Slot{s}
		require.ErrorIs(t, p.Check(), compute.ErrArgument, "an earlier state of a tensor is gone when results are read")
	}
}

// An operand that a step has changed cannot be used again: its result has to be.
func TestChangedOperands(t *testing.T) {
	p := &op.Program{}
	sum, count, x := p.Add(op.F32(3), op.FromHost), p.Add(op.F32(), op.FromHost), p.Add(op.F32(3), op.FromHost)
	out, err := p.ApplyAll(accumulate, op.Attr{}, sum, count, x)
	require.NoError(t, err)
	_, err = p.Apply(op.Add, op.Attr{}, out[0], sum)
	require.ErrorIs(t, err, compute.ErrArgument)
	require.ErrorContains(t, err, "accumulate")
	_, err = p.ApplyKernel(kernel{}, op.Attr{}, op.F32(3), count)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = p.Apply(op.Add, op.Attr{}, out[0], x)
	require.NoError(t, err, "x was only read")
	_, err = p.ApplyAll(accumulate, op.Attr{}, x, out[1], x)
	require.ErrorIs(t, err, compute.ErrArgument, "read and changed by one step")
	require.Len(t, p.Steps, 2)

	_, err = p.ApplyAll(accumulate, op.Attr{}, p.Add(op.F32(4), op.FromHost), out[1], x)
	require.ErrorIs(t, err, compute.ErrShape, "the result does not fit the operand that it replaces")
}

// A tensor that changes cannot be given for another value as well.
func TestChangedTensorTwice(t *testing.T) {
	p := &op.Program{}
	a, b := p.Add(op.F32(3), op.FromTensor), p.Add(op.F32(3), op.FromTensor)
	_, err := p.ApplyAll(accumulate, op.Attr{}, a, p.Add(op.F32(), op.FromHost), b)
	require.NoError(t, err)
	x, y := &tensor{op.F32(3)}, &tensor{op.F32(3)}
	io := func(a, b compute.Tensor) *op.IO {
		return &op.IO{Host: []any{[]float32{0}}, Tensors: []compute.Tensor{a, b}}
	}
	require.NoError(t, p.CheckIO(io(x, y)))
	require.ErrorIs(t, p.CheckIO(io(x, x)), compute.ErrArgument)
}
