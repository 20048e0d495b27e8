package ptxkernels

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
)

// ofHalves is a product a lowering of which is to be chosen.
func ofHalves(t *testing.T, caps kit.Caps, batch, m, k, n int) (names []string, first kit.Lowering) {
	s := &program.Step{Entry: catalogue.MatMul, Attr: program.Attr{Options: compute.MatMulOptions{}}}
	in := []program.Type{{DType: compute.Float16, Shape: []int{batch, m, k}}, {DType: compute.Float16, Shape: []int{batch, k, n}}}
	out, err := catalogue.MatMul.Check(in, s.Attr)
	require.NoError(t, err)
	first, err = Lower(s, in, out, &caps, func(_, _ string, c []string) int {
		names = c
		return 0
	})
	require.NoError(t, err)
	return names, first
}

// The first candidate is the one that takes least time by the model, whose figures for these shapes are as they should be.
func TestCutsChosen(t *testing.T) {
	old, new := kit.DefaultCaps, kit.DefaultCaps
	old.Target.SM, old.Target.Suffix = 80, ""
	for _, c := range []struct {
		caps           kit.Caps
		batch, m, k, n int
		want           string
		kernels        int
	}{
		// 272 tiles on 264 places: a second wave for eight of them, or 66 units each.
		{old, 1, 17 * 128, 4096, 16 * 128, "mma_128x128/streamk", 2},
		{old, 1, 16 * 128, 4096, 16 * 128, "mma_128x128", 1},         // one wave, nearly full
		{old, 1, 17 * 128, 512, 16 * 128, "mma_128x128", 1},          // the second wave is as short as adding up
		{old, 1, 64, 8192, 64, "mma_64x64/splitk", 2},                // one tile: parts are equal anyway
		{old, 1, 40 * 128, 2048, 20 * 128, "mma_128x128/streamk", 2}, // 800 tiles are 3.03 waves
		{old, 8, 17 * 64, 2048, 9 * 128, "mma_128x128/streamk", 2},   // 648 tiles of a batch are 2.45 waves
		{new, 1, 12 * 128, 4096, 12 * 256, "wgmma_128x256/streamk", 2},
		{new, 1, 11 * 128, 4096, 12 * 256, "wgmma_128x256", 1},        // 132 tiles, a block each
		{new, 1, 5 * 128, 16384, 4 * 256, "wgmma_128x256/streamk", 2}, // 20 tiles: split-K has waves of its own
		{new, 1, 1024, 1024, 1024, "wgmma_128x64", 1},                 // as measured
		{old, 1, 16, 256, 16, "mma_64x64", 1},
	} {
		t.Run(fmt.Sprintf("%d*%dx%dx%d", c.batch, c.m, c.k, c.n), func(t *testing.T) {
			names, l := ofHalves(t, c.caps, c.batch, c.m, c.k, c.n)
			require.Equal(t, c.want, names[0], "of %v", names)
			require.Len(t, l.Actions, c.kernels)
		})
	}
}

// Float32 as TF32 goes to wgmma, K-major: what is not is transposed first if it is multiplied often. So does float32 as two TF32, which
// are made first.
func TestTF32Chosen(t *testing.T) {
	caps := kit.DefaultCaps
	const tf32, parts = compute.TF32, compute.FP32Tensor
	for _, c := range []struct {
		precision      compute.Precision
		m, k, n        int
		transA, transB bool
		want           string
		kernels        int
	}{
		{tf32, 4096, 4096, 4096, false, true, "wgmma_128x256", 1},
		{tf32, 4096, 4096, 4096, false, false, "wgmma_128x256", 2},
		{tf32, 4096, 4096, 4096, true, false, "wgmma_128x256", 3},
		{tf32, 4096, 4095, 4096, true, false, "wgmma_128x256", 3}, // rows of 4095 are padded
		{tf32, 4096, 4095, 4096, false, false, "mma_128x128", 1},
		{tf32, 256, 4096, 16384, false, true, "wgmma_128x256", 1},
		{tf32, 256, 4096, 16384, false, false, "mma_128x128", 1},
		{parts, 4096, 4095, 4096, false, true, "wgmma_128x128", 3},
		{parts, 256, 4096, 16384, false, true, "mma_128x128", 1},
	} {
		o := compute.MatMulOptions{Precision: c.precision, TransA: c.transA, TransB: c.transB}
		s := &program.Step{Entry: catalogue.MatMul, Attr: program.Attr{Options: o}}
		a, b := []int{c.m, c.k}, []int{c.k, c.n}
		if c.transA {
			slices.Reverse(a)
		}
		if c.transB {
			slices.Reverse(b)
		}
		in := []program.Type{program.F32(a...), program.F32(b...)}
		out, err := catalogue.MatMul.Check(in, s.Attr)
		require.NoError(t, err)
		var names []string
		l, err := Lower(s, in, out, &caps, func(_, _ string, candidates []string) int {
			names = candidates
			return 0
		})
		require.NoError(t, err)
		require.Equal(t, c.want, names[0], "%+v: of %v", c, names)
		require.Len(t, l.Actions, c.kernels, "%+v", c)
	}
}
