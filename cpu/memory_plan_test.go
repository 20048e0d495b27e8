package cpu_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// calls are what random programs are made of: with and without scratch memory, in place, updating, of several results, skipped.
var calls = []struct {
	e *program.Entry
	a program.Attr
	n int // operands
}{
	{catalogue.Add, program.Attr{}, 2}, {catalogue.Mul, program.Attr{}, 2}, {catalogue.FMA, program.Attr{}, 3}, {catalogue.ReLU, program.Attr{}, 1}, {catalogue.Neg, program.Attr{}, 1},
	{catalogue.Softmax, program.Attr{}, 1}, {catalogue.RMSNorm, program.Attr{Scalars: []float32{1e-6}}, 2}, {catalogue.AddRMSNorm, program.Attr{Scalars: []float32{1e-6}}, 3},
	{catalogue.MatMul, program.Attr{Options: compute.MatMulOptions{}}, 2}, {catalogue.Transpose, program.Attr{Options: compute.TransposeOptions{}}, 1},
	{catalogue.Sum, program.Attr{Options: compute.AllAxes}, 1},
	{catalogue.Reshape, program.Attr{Options: compute.ReshapeOptions{Shape: []int{-1}}}, 1},
	{catalogue.Reshape, program.Attr{Options: compute.ReshapeOptions{Shape: []int{24, -1}}}, 1},
	{catalogue.Reshape, program.Attr{Options: compute.ReshapeOptions{Shape: []int{-1, 24}}}, 1},
	{catalogue.RMSNormMatVec, program.Attr{Scalars: []float32{1e-6}}, 3}, {catalogue.GateUpSwiGLU, program.Attr{}, 3},
	{catalogue.Adam, program.Attr{Options: compute.AdamOptions{LR: 0.1, Step: 1}}, 4},
}

// randomCalls draws a program; whatever operands do not fit is left out.
func randomCalls(t *rapid.T) *program.Program {
	p := &program.Program{}
	for range rapid.IntRange(1, 3).Draw(t, "inputs") {
		shape := rapid.SampledFrom([][]int{{24, 24}, {24}, {1, 24}, {48, 24}, {24, 48}}).Draw(t, "shape")
		p.Add(program.F32(shape...), rapid.SampledFrom([]program.Source{program.FromHost, program.FromHost, program.FromTensor}).Draw(t, "source"))
	}
	slot := func() program.Slot {
		return program.Slot(rapid.IntRange(max(0, len(p.Values)-12), len(p.Values)-1).Draw(t, "operand"))
	}
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		c := rapid.SampledFrom(calls).Draw(t, "call")
		in := make([]program.Slot, c.n)
		for i := range in {
			in[i] = slot()
		}
		_, _ = p.ApplyAll(c.e, c.a, in...)
	}
	for range rapid.IntRange(1, 4).Draw(t, "results") {
		p.Read = append(p.Read, slot())
	}
	if p.Keep = []program.Slot{slot()}; rapid.IntRange(0, 3).Draw(t, "keep") > 0 || p.Check() != nil {
		p.Keep = nil
	}
	if p.Check() != nil { // a result that has changed since
		p.Read = nil
		for i := range p.Steps {
			p.Read = append(p.Read, p.Steps[i].Out...)
		}
		storage := p.Storage()
		var read []program.Slot
		for _, s := range p.Read {
			if storage[s] == s {
				read = append(read, s)
			}
		}
		p.Read = read
	}
	return p
}

// Values that share memory are the same as values that do not, bit by bit, in memory that is full of NaN at first.
func TestSharedMemoryDoesNotShow(t *testing.T) {
	d := open(t)
	d.Poison()
	saved, programs := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p := randomCalls(t)
		seed := rapid.Uint64().Draw(t, "seed")
		var results [2][][]float32
		var peak [2]int
		for i := range results {
			p.NoReuse = i == 0
			r := rand.New(rand.NewPCG(seed, 0))
			data := func(s program.Slot) []float32 {
				x := make([]float32, p.Values[s].Len())
				for i := range x {
					x[i] = 2*r.Float32() - 1
				}
				return x
			}
			io := &program.IO{}
			for _, s := range p.Host {
				io.Host = append(io.Host, data(s))
			}
			for _, s := range p.Tensor {
				x, err := d.Upload(t.Context(), data(s), p.Values[s].Shape...)
				require.NoError(t, err)
				defer x.Close()
				io.Tensors = append(io.Tensors, x)
			}
			for _, s := range p.Read {
				y := make([]float32, p.Values[s].Len())
				io.Read, results[i] = append(io.Read, y), append(results[i], y)
			}
			x, err := program.ExecutorOf(d).Compile(t.Context(), p)
			require.NoError(t, err)
			require.NoError(t, wait(x.Start(io)))
			for _, k := range io.Keep {
				require.NoError(t, k.Close())
			}
			peak[i] = x.Memory().Peak
			require.NoError(t, x.Close())
		}
		require.LessOrEqual(t, peak[1], peak[0])
		if programs++; peak[1] < peak[0] {
			saved++
		}
		for i := range results[0] {
			require.Equal(t, bitsOf(results[0][i]), bitsOf(results[1][i]), "result %d, value %d", i, p.Read[i])
		}
	})
	require.Greater(t, saved, programs/20, "memory is shared in two of three programs; with -short there are 20")
}

func bitsOf(x []float32) []uint32 {
	y := make([]uint32, len(x))
	for i, v := range x {
		y[i] = math.Float32bits(v)
	}
	return y
}

// A reshape of a tensor that a later step updates in place keeps the elements that the tensor had.
func TestReshapeBeforeUpdate(t *testing.T) {
	d := open(t)
	before := []float32{0, 1, 2, 3, 4, 5}
	cache, err := d.Upload(t.Context(), before, 1, 2, 1, 3)
	require.NoError(t, err)
	p := &program.Program{}
	x := p.Add(program.F32(1, 2, 1, 3), program.FromTensor)
	row := p.Add(program.F32(1, 1, 1, 3), program.FromHost)
	at := p.Add(program.Type{DType: compute.Int32, Shape: []int{1}}, program.FromHost)
	y, err := p.Apply(catalogue.Reshape, program.Attr{Options: compute.ReshapeOptions{Shape: []int{6}}}, x)
	require.NoError(t, err)
	_, err = p.Apply(catalogue.KVAppend, program.Attr{}, x, row, at)
	require.NoError(t, err)
	z, err := p.Apply(catalogue.Abs, program.Attr{}, y)
	require.NoError(t, err)
	p.Read = []program.Slot{z}
	e, err := program.ExecutorOf(d).Compile(t.Context(), p)
	require.NoError(t, err)
	got := make([]float32, 6)
	require.NoError(t, wait(e.Start(&program.IO{Host: []any{[]float32{7, 8, 9}, []int32{1}}, Tensors: []compute.Tensor{cache}, Read: []any{got}})))
	require.Equal(t, before, got)
}
