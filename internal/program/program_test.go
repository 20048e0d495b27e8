package program_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func TestHostSlices(t *testing.T) {
	for _, c := range []struct {
		data any
		d    compute.DType
	}{{[]float32{1, 2, 3}, compute.Float32}, {[]int32{1, 2, 3}, compute.Int32}, {[]uint32{1, 2, 3}, compute.Uint32}, {[]compute.F16{1, 2, 3}, compute.Float16}} {
		d, n, err := program.TypeOf(c.data)
		require.NoError(t, err)
		require.Equal(t, c.d, d)
		require.Equal(t, 3, n)
		ty := program.Type{DType: d, Shape: []int{3}}
		require.NoError(t, program.CheckSlice(c.data, ty))
		require.ErrorIs(t, program.CheckSlice(c.data, program.Type{DType: d, Shape: []int{4}}), compute.ErrShape)
		require.ErrorIs(t, program.CheckSlice(c.data, program.Type{DType: (d + 1) % 4, Shape: []int{3}}), compute.ErrDType)
		require.Len(t, program.Bytes(c.data), ty.Bytes())
		made := program.MakeSlice(ty)
		require.IsType(t, c.data, made)
		copy(program.Bytes(made), program.Bytes(c.data))
		require.Equal(t, c.data, made)
	}
	_, _, err := program.TypeOf(nil)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, _, err = program.TypeOf([]float64{1})
	require.ErrorIs(t, err, compute.ErrDType)
	require.Nil(t, program.Bytes([]float32{}))
	require.Nil(t, program.Bytes([]float64{1}))
	require.Equal(t, "i32[3]", program.Type{DType: compute.Int32, Shape: []int{3}}.String())
	require.Equal(t, "[3]", program.F32(3).String())
}

type kernel struct{ program.KernelCheck }

func (kernel) Name() string { return "mine" }

func failing(err error) kernel {
	return kernel{func([]program.Type, program.Type, program.Attr) error { return err }}
}

type tensor struct{ program.Type }

func (t tensor) Shape() []int                  { return t.Type.Shape }
func (t tensor) DType() compute.DType          { return t.Type.DType }
func (t tensor) ReadAsync(any) *compute.Future { return nil }
func (t tensor) Close() error                  { return nil }

func TestProgram(t *testing.T) {
	p := &program.Program{}
	x := p.Add(program.F32(2, 3), program.FromHost)
	w := p.Add(program.F32(3), program.FromTensor)
	y, err := p.Apply(catalogue.Add, program.Attr{}, x, w)
	require.NoError(t, err)
	require.Equal(t, program.Value{Type: program.F32(2, 3), Source: program.FromStep}, p.Values[y])
	_, err = p.Apply(catalogue.MatMul, program.Attr{Options: compute.MatMulOptions{}}, x, w)
	require.ErrorIs(t, err, compute.ErrShape)
	require.Len(t, p.Steps, 1, "what fails leaves no step behind")
	require.Len(t, p.Values, 3)
	z, err := p.ApplyKernel(failing(nil), program.Attr{}, program.F32(7), y)
	require.NoError(t, err)
	require.Same(t, program.UserKernel, p.Steps[1].Entry)
	_, err = p.ApplyKernel(failing(compute.ErrArgument), program.Attr{}, program.F32(7), y)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = p.ApplyKernel(failing(nil), program.Attr{}, program.F32(-7), y)
	require.ErrorIs(t, err, compute.ErrShape)
	p.Read = []program.Slot{z}

	good := func() *program.IO {
		return &program.IO{Host: []any{make([]float32, 6)}, Tensors: []compute.Tensor{tensor{program.F32(3)}}, Read: []any{make([]float32, 7)}}
	}
	require.NoError(t, p.CheckIO(good(), nil))
	for _, c := range []struct {
		want error
		bend func(io *program.IO)
	}{
		{compute.ErrArgument, func(io *program.IO) { io.Host = nil }},
		{compute.ErrArgument, func(io *program.IO) { io.Tensors = nil }},
		{compute.ErrArgument, func(io *program.IO) { io.Read = nil }},
		{compute.ErrArgument, func(io *program.IO) { io.Host[0] = nil }},
		{compute.ErrShape, func(io *program.IO) { io.Host[0] = make([]float32, 5) }},
		{compute.ErrDType, func(io *program.IO) { io.Host[0] = make([]int32, 6) }},
		{compute.ErrDType, func(io *program.IO) { io.Read[0] = make([]float64, 7) }},
		{compute.ErrShape, func(io *program.IO) { io.Read[0] = make([]float32, 8) }},
		{compute.ErrArgument, func(io *program.IO) { io.Tensors[0] = nil }},
		{compute.ErrShape, func(io *program.IO) { io.Tensors[0] = tensor{program.F32(1, 3)} }},
		{compute.ErrShape, func(io *program.IO) { io.Tensors[0] = tensor{program.Type{DType: compute.Int32, Shape: []int{3}}} }},
	} {
		io := good()
		c.bend(io)
		require.ErrorIs(t, p.CheckIO(io, nil), c.want)
	}
}
