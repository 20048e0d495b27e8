package ptxkernels

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/norm"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/sim"
)

// rowEntries are those of families reduce and rows.
func rowEntries() (entries []*program.Entry) {
	for _, e := range catalogue.All() {
		if e.Class == program.Reduce || e.Class == program.Rows {
			entries = append(entries, e)
		}
	}
	return entries
}

// TestRowsPerturbed lets approximate instructions err as far as they may.
func TestRowsPerturbed(t *testing.T) {
	module, err := kit.FamilyOf("reduce").Module()
	require.NoError(t, err)
	require.NotContains(t, module.String(), ".approx", "reductions are exact but for rounding: nothing to perturb")
	seed := conformance.Seed()
	conformance.RunEntries(t, "software GPU, approximations err", NewRig(t, sim.Config{Seed: seed, Perturb: true}),
		catalogue.Softmax, catalogue.LogSoftmax, catalogue.LayerNorm, catalogue.RMSNorm)
}

// apply runs one operation over rows on a rig.
func apply(t require.TestingT, r *kerneltest.Rig, e *program.Entry, a program.Attr, operands [][]float32, shape ...int) any {
	p, io := &program.Program{}, &program.IO{}
	var slots []program.Slot
	for i, x := range operands {
		s := shape
		if i > 0 && e.Class == program.Rows {
			s = shape[len(shape)-1:]
		}
		slots = append(slots, p.Add(program.F32(s...), program.FromHost))
		io.Host = append(io.Host, x)
	}
	out, err := p.Apply(e, a, slots...)
	require.NoError(t, err)
	p.Read = []program.Slot{out}
	y := program.MakeSlice(p.Values[out].Type)
	io.Read = []any{y}
	x, err := r.Compile(context.Background(), p)
	require.NoError(t, err)
	require.NoError(t, x.Start(io).Await(context.Background()))
	require.NoError(t, x.Close())
	return y
}

func attrOf(e *program.Entry) program.Attr {
	a := program.Attr{}
	for _, s := range e.Scalars {
		a.Scalars = append(a.Scalars, s.Test[0])
	}
	if e.Class == program.Reduce {
		a.Options = compute.LastAxis
	}
	return a
}

// judge compares with the reference.
func judge(t require.TestingT, e *program.Entry, a program.Attr, operands [][]float32, shape []int, got any) {
	var in []reference.Array
	var types []program.Type
	for i, x := range operands {
		s := shape
		if i > 0 && e.Class == program.Rows {
			s = shape[len(shape)-1:]
		}
		v := reference.Array{Shape: s}
		for _, f := range x {
			v.Data = append(v.Data, float64(f))
		}
		in, types = append(in, v), append(types, program.F32(s...))
	}
	out, err := e.Check(types, a)
	require.NoError(t, err)
	want, tol := reference.Of(e, in, a, out)[0].Data, catalogue.ToleranceOf(e, a)
	magnitudes := make([]float64, len(want))
	if tol.Mag > 0 {
		magnitudes = reference.Magnitudes(e, in, a, out)[0]
	}
	for i, w := range want {
		var g float64
		switch y := got.(type) {
		case []float32:
			g = float64(y[i])
		case []int32:
			g = float64(y[i])
		}
		if w != w && g != g || w == g {
			continue
		}
		if slack := tol.Abs + tol.Rel*math.Abs(w) + tol.Mag*magnitudes[i]; !(math.Abs(g-w) <= slack) {
			require.FailNow(t, "wrong", "%s of %v: element %d is %v, want %v ± %v", e.Name, shape, i, g, w, slack)
		}
	}
}

func random(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func inputs(r *rand.Rand, e *program.Entry, rows, cols int) (operands [][]float32) {
	for i := range e.Inputs {
		n := rows * cols
		if i > 0 && e.Class == program.Rows {
			n = cols
		}
		operands = append(operands, random(r, n))
	}
	return operands
}

// TestRowsOfEveryLength forces thread groups of every size, rows that are kept and such that are read twice, in one part and in
// several, aligned and not: GPUs of different sizes cut the same rows differently.
func TestRowsOfEveryLength(t *testing.T) {
	r := ptxtest.Random(t)
	seen, g := map[string]bool{}, NewRig(t, kerneltest.Fast())
	for _, multiprocessors := range []int{1, 132} {
		for _, shape := range [][2]int{{1, 8196}, {4, 8196}, {4, 8201}, {1, 8193}, {150, 5}, {80, 36}, {50, 81}, {30, 260},
			{17, 517}, {9, 1032}, {1, 2053}, {1, 4104}} {
			for _, e := range rowEntries() {
				g.Caps.Multiprocessors = multiprocessors
				rows, cols := shape[0], shape[1]+4*r.IntN(2)
				in, a := inputs(r, e, rows, cols), attrOf(e)
				judge(t, e, a, in, []int{rows, cols}, apply(t, g, e, a, in, rows, cols))
				if e.Class == program.Rows {
					seen[waysOf(t, g, e, rows, cols)] = true
				}
			}
		}
	}
	for _, way := range []string{"kept 1", "kept 8", "long", "parts"} {
		require.True(t, seen[way] && seen[way+" in vectors"], "no rows were %s, but %v", way, seen)
	}
}

// waysOf says how a lowering treats rows.
func waysOf(t *testing.T, g *kerneltest.Rig, e *program.Entry, rows, cols int) string {
	in := []program.Type{program.F32(rows, cols)}
	for range e.Inputs[1:] {
		in = append(in, program.F32(cols))
	}
	l, err := Lower(&program.Step{Entry: e, Attr: attrOf(e)}, in, in[:1], &g.Caps, nil)
	require.NoError(t, err)
	layout, err := l.Actions[0].Launch.Kernel.Layout()
	require.NoError(t, err)
	word := func(at int) byte { return l.Actions[0].Launch.Params[at] }
	way := map[byte]string{0: "long", 1: "kept 1", norm.KeptUnits: "kept 8"}[word(layout.Param(2).Offset)]
	if len(l.Actions) > 1 {
		way = "parts"
	}
	if word(layout.Param(0).Offset+4*4) != 0 {
		way += " in vectors"
	}
	return way
}

// TestRowsOnAnySchedule compares bits: nothing depends on the order in which warps and blocks run.
func TestRowsOnAnySchedule(t *testing.T) {
	r := ptxtest.Random(t)
	one, other := NewRig(t, sim.Config{Seed: r.Uint64()}), NewRig(t, sim.Config{Seed: r.Uint64()})
	for _, e := range rowEntries() {
		in, a := inputs(r, e, 2, 9001), attrOf(e)
		first, second := apply(t, one, e, a, in, 2, 9001), apply(t, other, e, a, in, 2, 9001)
		require.Equal(t, program.Bytes(first), program.Bytes(second), e.Name)
	}
}

// TestNegativeNaN puts NaN of every kind among numbers: each of them is above all.
func TestNegativeNaN(t *testing.T) {
	r, g := ptxtest.Random(t), NewRig(t, kerneltest.Fast())
	for _, bits := range []uint32{0xffc00000, 0x7fc00000, 0xff800001, 0x7f800001, 0xffffffff, 0x7fffffff} {
		for _, e := range []*program.Entry{catalogue.Max, catalogue.Min, catalogue.NormLInf, catalogue.ArgMax, catalogue.ArgMin, catalogue.Sum, catalogue.Softmax} {
			for _, cols := range []int{1, 3, 70, 5000} {
				x := random(r, cols)
				first, second := r.IntN(cols), r.IntN(cols)
				x[r.IntN(cols)] = float32(math.Inf(1))
				x[first], x[second] = math.Float32frombits(bits), math.Float32frombits(bits)
				judge(t, e, attrOf(e), [][]float32{x}, []int{1, cols}, apply(t, g, e, attrOf(e), [][]float32{x}, 1, cols))
			}
		}
	}
}
