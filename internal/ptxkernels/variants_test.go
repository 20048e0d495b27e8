package ptxkernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/gemm"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/sim"
)

// forcing is a rig that takes a variant wherever it is a candidate, on a GPU large enough to split depths.
func forcing(t *testing.T, variant string, seed uint64) (r *kerneltest.Rig, chosen *int) {
	r, chosen = NewRig(t, sim.Config{Checks: sim.AllChecks, Seed: seed, Perturb: true}), new(int)
	r.Caps.Multiprocessors = 20
	r.Pick = func(_, _ string, names []string) int {
		i := slices.Index(names, variant)
		if i >= 0 {
			*chosen++
		}
		return max(i, 0)
	}
	return r, chosen
}

// checkVariant compares a call with the reference: of numbers random in [-1, 1], some of them infinite or NaN if wild.
func checkVariant(r *kerneltest.Rig, t *testing.T, rng *rand.Rand, e *program.Entry, a program.Attr, wild bool, shapes ...[]int) {
	p, io := &program.Program{}, &program.IO{}
	var slots []program.Slot
	var in, absolute []reference.Array
	for _, s := range shapes {
		data := make([]float32, program.Len(s))
		x := reference.Array{Shape: s, Data: make([]float64, len(data))}
		y := reference.Array{Shape: s, Data: make([]float64, len(data))}
		for i := range data {
			data[i] = 2*rng.Float32() - 1
			if wild && rng.IntN(2*len(data)) == 0 {
				data[i] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[rng.IntN(3)]
			}
			x.Data[i], y.Data[i] = float64(data[i]), math.Abs(float64(data[i]))
		}
		in, absolute = append(in, x), append(absolute, y)
		slots, io.Host = append(slots, p.Add(program.F32(s...), program.FromHost)), append(io.Host, data)
	}
	out, err := p.Apply(e, a, slots...)
	require.NoError(t, err)
	p.Read = []program.Slot{out}
	got := make([]float32, p.Values[out].Type.Len())
	io.Read = []any{got}
	x, err := r.Compile(t.Context(), p)
	require.NoError(t, err)
	require.NoError(t, x.Start(io).Err())
	types := []program.Type{p.Values[out].Type}
	want, magnitude := reference.Of(e, in, a, types)[0].Data, reference.Magnitudes(e, absolute, a, types)[0]
	tol := catalogue.ToleranceOf(e, a)
	for i, w := range want {
		g := float64(got[i])
		if math.IsNaN(w) && math.IsNaN(g) || g == w {
			continue
		}
		within := tol.Abs + tol.Rel*math.Abs(w) + tol.Mag*magnitude[i]
		require.True(t, math.Abs(g-w) <= within && !math.IsInf(w, 0), "%v %+v: element %d is %v, want %v ± %v", shapes, a.Options, i,
			g, w, within)
	}
}

// rounds is how many calls of each variant there are: new ones each time.
func rounds() int {
	if testing.Short() {
		return 3
	}
	return 6
}

// Every variant of a matrix product: layouts, batches, bias, activations, depths of none to more than one chain.
func TestMatMulVariants(t *testing.T) {
	for _, v := range []string{"rows", "columns", "small", "tile64x64", "tile128x128", "async"} {
		for _, split := range []bool{false, true} {
			if v == "small" && split {
				continue
			}
			name := v
			if split {
				name += "/splitk"
			}
			t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
				t.Parallel()
				rng := ptxtest.Random(t)
				r, chosen := forcing(t, name, rng.Uint64())
				for i := 0; i < rounds() || *chosen == 0 && i < 50; i++ { // some shapes are not for some variants
					o := compute.MatMulOptions{TransA: rng.IntN(2) == 0, TransB: rng.IntN(2) == 0, Act: compute.Activation(rng.IntN(7))}
					m, n := kerneltest.OneOf(rng, 1, 3, 5, 64, 65, 130), kerneltest.OneOf(rng, 1, 4, 7, 64, 66)
					depth := kerneltest.OneOf(rng, 0, 1, 4, 15, 16, 33, 100, tiling.LongestChain+5)
					var leadA, leadB []int
					if v == "rows" || v == "columns" {
						m, n, o.TransA = max(m, 5), 1+rng.IntN(gemm.FewVectors), v == "columns"
						if rng.IntN(2) == 0 {
							m, n, o.TransB = n, m, v == "rows"
						}
					}
					switch {
					case split:
						depth = kerneltest.OneOf(rng, 512, 601)
					case depth < 50 && rng.IntN(2) == 0:
						leadA = kerneltest.OneOf(rng, nil, []int{3})
						leadB = kerneltest.OneOf(rng, leadA, leadA, []int{3})
					}
					x, y := []int{m, depth}, []int{depth, n}
					if o.TransA {
						slices.Reverse(x)
					}
					if o.TransB {
						slices.Reverse(y)
					}
					shapes := [][]int{append(slices.Clone(leadA), x...), append(slices.Clone(leadB), y...)}
					if rng.IntN(2) == 0 {
						shapes = append(shapes, []int{n})
					}
					checkVariant(r, t, rng, catalogue.MatMul, program.Attr{Options: o}, rng.IntN(4) == 0, shapes...)
				}
				require.NotZero(t, *chosen, "calls that have the variant")
			})
		}
	}
}

// Every variant of a convolution: strides, padding, dilation, groups, bias, activations, sums of more than one chain, and
// infinite
// weights over padding.
func TestConv2DVariants(t *testing.T) {
	for _, name := range []string{"direct1", "direct4", "tile64x64", "tile64x64/splitk"} {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			t.Parallel()
			rng := ptxtest.Random(t)
			r, chosen := forcing(t, name, rng.Uint64())
			pair := func(least, most int) [2]int {
				return [2]int{least + rng.IntN(most-least+1), least + rng.IntN(most-least+1)}
			}
			for i := range rounds() {
				o := compute.Conv2DOptions{Stride: pair(1, 3), Pad: pair(0, 2), Dilation: pair(1, 2), Groups: 1 + rng.IntN(3),
					Act: compute.Activation(rng.IntN(7))}
				filter := pair(1, 4)
				in, out := 1+rng.IntN(5), kerneltest.OneOf(rng, 1, 3, 5, 33, 70)
				if i%8 == 0 || strings.HasSuffix(name, "splitk") {
					filter, in, o.Groups, out = [2]int{3, 3}, kerneltest.OneOf(rng, 64, 70), 1, min(out, 33)
				}
				if i == 0 {
					in, out = tiling.LongestChain/9+5, 3
				}
				h := [2]int{(filter[0]-1)*o.Dilation[0] + 1 + rng.IntN(9), (filter[1]-1)*o.Dilation[1] + 1 + rng.IntN(9)}
				shapes := [][]int{{1 + rng.IntN(3), in * o.Groups, h[0], h[1]}, {out * o.Groups, in, filter[0], filter[1]}}
				if rng.IntN(2) == 0 {
					shapes = append(shapes, []int{out * o.Groups})
				}
				checkVariant(r, t, rng, catalogue.Conv2D, program.Attr{Options: o}, rng.IntN(3) == 0, shapes...)
			}
			require.NotZero(t, *chosen, "calls that have the variant")
		})
	}
}
