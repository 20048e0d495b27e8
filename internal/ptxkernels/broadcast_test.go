package ptxkernels

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxtest"
)

// Random shapes of up to eight axes, some of them larger than what the grid reads at once, whose operands repeat along random
// axes: each element of the sum a·b + c tells which elements it came from.
func TestBroadcast(t *testing.T) {
	rng := ptxtest.Random(t)
	r := NewRig(t, kerneltest.EveryCheck(rng.Uint64()))
	r.Caps.Multiprocessors = 1
	trials := 60
	if testing.Short() {
		trials = 10
	}
	launched := map[*kit.Kernel]int{}
	for range trials {
		shape := make([]int, 2+rng.IntN(program.MaxRank-1))
		for i, n := 0, 50_000; i < len(shape); i++ {
			shape[i] = 1 + rng.IntN(min(n, 9))
			if i == len(shape)-1 && rng.IntN(2) == 0 {
				shape[i] = 4 * (1 + rng.IntN(min(100, n)))
			}
			n = max(1, n/shape[i])
		}
		p, io := &program.Program{}, &program.IO{}
		var in []program.Slot
		var data, strides = make([][]float32, 3), make([][]int, 3)
		for o, base := range []float32{1, 1, 0} {
			own := slices.Clone(shape[rng.IntN(len(shape)):])
			for i := range own {
				if rng.IntN(3) == 0 {
					own[i] = 1
				}
			}
			if o == 0 {
				own = shape
			}
			x := make([]float32, program.Len(own))
			for i := range x {
				x[i] = base + float32(rng.IntN(1<<10))
			}
			data[o], strides[o] = x, program.BroadcastStrides(own, shape)
			in = append(in, p.Add(program.F32(own...), program.FromHost))
			io.Host = append(io.Host, x)
		}
		out, err := p.Apply(catalogue.FMA, program.Attr{}, in...)
		require.NoError(t, err)
		p.Read = append(p.Read, out)
		y := make([]float32, program.Len(shape))
		io.Read = append(io.Read, y)
		x, err := r.Compile(t.Context(), p)
		require.NoError(t, err)
		launched[x.(*kerneltest.RigProgram).Code[0].Actions[0].Launch.Kernel]++
		require.NoError(t, x.Start(io).Await(context.Background()))

		wrong := 0
		program.Walk(shape, func(i int, index []int) {
			at := func(o int) float32 { return data[o][program.Dot(index, strides[o])] }
			if y[i] != at(0)*at(1)+at(2) { // integers: exact
				wrong++
			}
		})
		require.Zero(t, wrong, "elements of %v, strides %v", shape, strides)
	}
	for _, k := range kit.FamilyOf("binary").Kernels {
		if slices.Contains([]string{"fma_quads", "fma_elements"}, k.Name) && !testing.Short() {
			require.NotZero(t, launched[k], k.Name)
		}
	}
}
