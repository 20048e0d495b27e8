package op_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

func TestHostSlices(t *testing.T) {
	for _, c := range []struct {
		data any
		d    compute.DType
	}{{[]float32{1, 2, 3}, compute.Float32}, {[]int32{1, 2, 3}, compute.Int32}, {[]uint32{1, 2, 3}, compute.Uint32}, {[]uint16{1, 2, 3}, compute.Float16}} {
		d, n, err := op.TypeOf(c.data)
		require.NoError(t, err)
		require.Equal(t, c.d, d)
		require.Equal(t, 3, n)
		ty := op.Type{DType: d, Shape: []int{3}}
		require.NoError(t, op.CheckSlice(c.data, ty))
		require.ErrorIs(t, op.CheckSlice(c.data, op.Type{DType: d, Shape: []int{4}}), compute.ErrShape)
		require.ErrorIs(t, op.CheckSlice(c.data, op.Type{DType: (d + 1) % 4, Shape: []int{3}}), compute.ErrDType)
		require.Len(t, op.Bytes(c.data), ty.Bytes())
		made := op.MakeSlice(ty)
		require.IsType(t, c.data, made)
		copy(op.Bytes(made), op.Bytes(c.data))
		require.Equal(t, c.data, made)
	}
	_, _, err := op.TypeOf(nil)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, _, err = op.TypeOf([]float64{1})
	require.ErrorIs(t, err, compute.ErrDType)
	require.Nil(t, op.Bytes([]float32{}))
	require.Nil(t, op.Bytes([]float64{1}))
	require.Equal(t, "i32[3]", op.Type{DType: compute.Int32, Shape: []int{3}}.String())
	require.Equal(t, "[3]", op.F32(3).String())
}

type kernel struct{ err error }

func (k kernel) Check([]op.Type, op.Type, op.Attr) error { return k.err }
func (k kernel) Name() string                            { return "mine" }

type tensor struct{ op.Type }

func (t tensor) Shape() []int                  { return t.Type.Shape }
func (t tensor) DType() compute.DType          { return t.Type.DType }
func (t tensor) ReadAsync(any) *compute.Future { return nil }
func (t tensor) Close() error                  { return nil }

func TestProgram(t *testing.T) {
	p := &op.Program{}
	x := p.Add(op.F32(2, 3), op.FromHost)
	w := p.Add(op.F32(3), op.FromTensor)
	y, err := p.Apply(op.Add, op.Attr{}, x, w)
	require.NoError(t, err)
	require.Equal(t, op.Value{Type: op.F32(2, 3), Source: op.FromStep}, p.Values[y])
	_, err = p.Apply(op.MatMul, op.Attr{Options: compute.MatMulOptions{}}, x, w)
	require.ErrorIs(t, err, compute.ErrShape)
	require.Len(t, p.Steps, 1, "what fails leaves no step behind")
	require.Len(t, p.Values, 3)
	z, err := p.ApplyKernel(kernel{}, op.Attr{}, op.F32(7), y)
	require.NoError(t, err)
	require.Same(t, op.UserKernel, p.Steps[1].Entry)
	_, err = p.ApplyKernel(kernel{err: compute.ErrArgument}, op.Attr{}, op.F32(7), y)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = p.ApplyKernel(kernel{}, op.Attr{}, op.F32(-7), y)
	require.ErrorIs(t, err, compute.ErrShape)
	p.Read = []op.Slot{z}

	good := func() *op.IO {
		return &op.IO{Host: []any{make([]float32, 6)}, Tensors: []compute.Tensor{tensor{op.F32(3)}}, Read: []any{make([]float32, 7)}}
	}
	require.NoError(t, p.CheckIO(good()))
	for _, c := range []struct {
		want error
		bend func(io *op.IO)
	}{
		{compute.ErrArgument, func(io *op.IO) { io.Host = nil }},
		{compute.ErrArgument, func(io *op.IO) { io.Tensors = nil }},
		{compute.ErrArgument, func(io *op.IO) { io.Read = nil }},
		{compute.ErrArgument, func(io *op.IO) { io.Host[0] = nil }},
		{compute.ErrShape, func(io *op.IO) { io.Host[0] = make([]float32, 5) }},
		{compute.ErrDType, func(io *op.IO) { io.Host[0] = make([]int32, 6) }},
		{compute.ErrDType, func(io *op.IO) { io.Read[0] = make([]float64, 7) }},
		{compute.ErrShape, func(io *op.IO) { io.Read[0] = make([]float32, 8) }},
		{compute.ErrArgument, func(io *op.IO) { io.Tensors[0] = nil }},
		{compute.ErrShape, func(io *op.IO) { io.Tensors[0] = tensor{op.F32(1, 3)} }},
		{compute.ErrShape, func(io *op.IO) { io.Tensors[0] = tensor{i32(3)} }},
	} {
		io := good()
		c.bend(io)
		require.ErrorIs(t, p.CheckIO(io), c.want)
	}
}
