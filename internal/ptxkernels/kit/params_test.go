package kit

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

type innerParams struct {
	Rows, Cols int `array:"sizes"`
	Plane      scalar.Divide
}

type testParams struct {
	innerParams
	More   int
	Single int       `array:"-"`
	Eps    []float32 `names:"eps"`
	X      Buffer
	Table  Buffer `of:"u32"`
	Y      []Buffer
}

func testKernel(build func(p *Params, at *testParams)) Kernel {
	fields := testParams{Eps: make([]float32, 1), Y: make([]Buffer, 2)}
	return Kernel{Name: "test", Block: [3]int{32, 1, 1}, Params: fields, Build: func(k *ptx.Kernel) {
		at := fields
		at.Y = make([]Buffer, 2)
		at.Eps = make([]float32, 1)
		build(NewParams(k, &at), &at)
	}}
}

func store(p *Params, at *testParams) {
	sum := p.U32(&at.Rows).Add(p.U32(&at.More)).Add(p.Quotient(&at.Plane, p.U32(&at.Cols)))
	single, eps := p.U32(&at.Single), Read(p, &at.Eps[0])
	x, table := Ptr[float32](p, &at.X), Ptr[uint32](p, &at.Table)
	y0, y1 := Ptr[float32](p, &at.Y[0]), Ptr[float32](p, &at.Y[1])
	table.Store(sum.Add(single).Add(p.U32(&at.Single)))
	y0.Store(eps)
	y1.Store(x.Load())
}

// One struct gives the declaration, the block of bytes, the pointers and the docs.
func TestParams(t *testing.T) {
	k := testKernel(store)
	require.Equal(t, "u32 sizes[] (rows, cols, plane as divisor, more), u32 single, f32 eps, f32* x, u32* table, f32* y0, f32* y1", k.Parameters())
	s := &Step{Step: &lowering.Step[*Launch]{}, Caps: &DefaultCaps}
	s.Launch(s.JIT("test", "params", k), [3]int{1, 1, 1}, testParams{innerParams{7, 9, 3}, 5, 11, []float32{0.5}, In(0), In(1), []Buffer{OutAt(0), OutAt(1)}})
	require.NoError(t, s.Err)
	l := s.Actions[0].Launch
	words := make([]uint32, 8)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(l.Params[4*i:])
	}
	divisor := scalar.DivisorOf(3)
	require.Equal(t, []uint32{7, 9, divisor[0], divisor[1], divisor[2], 5, 11, 0x3f000000}, words)
	require.Equal(t, []Pointer{{32, In(0)}, {40, In(1)}, {48, OutAt(0)}, {56, OutAt(1)}}, l.Pointers)
}

// What does not fit is an error: numbers, structs of other kernels, and parameters in an order that is not the struct's.
func TestParamsMistakes(t *testing.T) {
	k := testKernel(store)
	launch := func(params any) error {
		s := &Step{Step: &lowering.Step[*Launch]{}, Caps: &DefaultCaps}
		s.Launch(s.JIT("test", "mistakes", k), [3]int{1, 1, 1}, params)
		return s.Err
	}
	valid := testParams{innerParams{7, 9, 3}, 5, 11, []float32{0.5}, In(0), In(1), []Buffer{OutAt(0), OutAt(1)}}
	require.NoError(t, launch(valid))
	for _, change := range []func(p *testParams){func(p *testParams) { p.Cols = -1 }, func(p *testParams) { p.Single = 1 << 32 }} {
		p := valid
		change(&p)
		require.ErrorIs(t, launch(p), compute.ErrTooLarge)
	}
	fewer := valid
	fewer.Y = fewer.Y[:1]
	require.Error(t, launch(fewer))
	require.Error(t, launch(innerParams{7, 9, 3}))

	swapped := testKernel(func(p *Params, at *testParams) {
		table, x := Ptr[uint32](p, &at.Table), Ptr[float32](p, &at.X)
		table.Store(1)
		x.Store(1)
	})
	_, err := swapped.Write()
	require.ErrorContains(t, err, "parameter x is read after table")
}
