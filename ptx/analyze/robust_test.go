package analyze_test

import (
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/analyze"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/roofline"
)

// corpus is all modules that tests have.
func corpus(t *testing.T) []*ir.Module {
	t.Helper()
	files, err := filepath.Glob("testdata/*.ptx")
	require.NoError(t, err)
	var out []*ir.Module
	for _, f := range files {
		_, m := load(t, filepath.Base(f))
		out = append(out, m)
	}
	return append(out, rightKernels(t)...)
}

// damage changes an instruction somewhere.
func damage(rng *rand.Rand, m *ir.Module) {
	f := m.Funcs[rng.IntN(len(m.Funcs))]
	if len(f.Body) == 0 {
		return
	}
	i, j := rng.IntN(len(f.Body)), rng.IntN(len(f.Body))
	in := &f.Body[i]
	switch rng.IntN(9) {
	case 0:
		f.Body = slices.Delete(f.Body, i, i+1)
	case 1:
		f.Body[i], f.Body[j] = f.Body[j], f.Body[i]
	case 2:
		f.Body = slices.Insert(f.Body, i, f.Body[j].Clone())
	case 3:
		if len(in.Args) > 0 {
			in.Args = in.Args[:rng.IntN(len(in.Args))]
		}
	case 4:
		if len(in.Args) > 0 {
			in.Args[rng.IntN(len(in.Args))] = ir.R(ir.Reg(rng.IntN(len(f.Regs) + 1)))
		}
	case 5:
		if len(in.Args) > 0 {
			in.Args[rng.IntN(len(in.Args))] = ir.Int(int64(rng.Uint64()))
		}
	case 6:
		if len(in.Mods) > 0 {
			in.Mods = slices.Delete(slices.Clone(in.Mods), 0, 1)
		}
	case 7:
		in.Guard = ir.Guard{Reg: ir.Reg(rng.IntN(len(f.Regs) + 1)), Not: rng.IntN(2) == 0}
	case 8:
		in.Op = f.Body[j].Op
	}
}

// Damaged code makes findings or none, never a panic, and the same ones each time.
func TestDamaged(t *testing.T) {
	rng := ptxtest.Random(t)
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	for _, m := range corpus(t) {
		for range rounds {
			c := m.Clone()
			for range 1 + rng.IntN(4) {
				damage(rng, c)
			}
			r, err := analyze.Module(c, analyze.Options{Strict: true})
			require.NoError(t, err)
			again, err := analyze.Module(c, analyze.Options{Strict: true})
			require.NoError(t, err)
			require.Equal(t, r, again)
			_, err = json.Marshal(r)
			require.NoError(t, err)
		}
	}
}

func TestOptions(t *testing.T) {
	_, m := load(t, "OutOfBounds.ptx")
	for _, c := range []struct {
		o    analyze.Options
		want error
	}{
		{analyze.Options{Block: [3]int{2048, 1, 1}}, compute.ErrTooLarge},
		{analyze.Options{Block: [3]int{-1, 1, 1}}, compute.ErrArgument},
		{analyze.Options{Grid: [3]int{1, -1, 1}}, compute.ErrArgument},
		{analyze.Options{Shared: -1}, compute.ErrArgument},
		{analyze.Options{Iterations: -1}, compute.ErrArgument},
		{analyze.Options{Params: map[string]uint64{"nobody": 1}}, compute.ErrArgument},
		{analyze.Options{Buffers: map[string]uint64{"nobody": 1}}, compute.ErrArgument},
	} {
		_, err := analyze.Module(m, c.o)
		require.ErrorIs(t, err, c.want)
	}
	// A GPU without the arithmetic.
	_, h := load(t, "kernels/hgemm_mma_64x64x32.ptx")
	gpu := roofline.Model{Name: "none", SM: 80, Bandwidth: 1, Peak: map[roofline.Rate]float64{roofline.F32: 1}}
	_, err := analyze.Module(h, analyze.Options{GPU: &gpu})
	require.ErrorIs(t, err, compute.ErrUnsupported)
}

// With sizes given, the first and the last block are walked with their numbers.
func TestBuffers(t *testing.T) {
	_, m := load(t, "kernels/vector_add.ptx")
	find := func(m *ir.Module, bytes uint64) []analyze.Finding {
		r, err := analyze.Module(m, analyze.Options{BugsOnly: true, Grid: [3]int{3, 1, 1}, Params: map[string]uint64{"n": 1000},
			Buffers: map[string]uint64{"x": bytes, "y": 4000, "out": 4000}})
		require.NoError(t, err)
		return r.Findings
	}
	require.Empty(t, find(m, 4000))
	short := find(m, 3996)
	require.NotEmpty(t, short)
	for _, f := range short {
		require.Equal(t, analyze.Class("OutOfBounds"), f.Class)
		require.Contains(t, f.Message, "which has 3996 bytes")
	}
}

// Strict finds at least what the default does, and bugs alone at most.
func TestModes(t *testing.T) {
	for _, m := range corpus(t) {
		var n []int
		for _, o := range []analyze.Options{{BugsOnly: true}, {}, {Strict: true}} {
			r, err := analyze.Module(m, o)
			require.NoError(t, err)
			n = append(n, len(r.Findings))
			if o.BugsOnly {
				require.Equal(t, len(r.Findings), r.Count(analyze.Bug))
			}
		}
		require.IsNonDecreasing(t, n)
	}
}
