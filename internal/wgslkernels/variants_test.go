package wgslkernels

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/recent"
	"github.com/wavelane/wavelane/internal/testseed"
	"github.com/wavelane/wavelane/wgsl"
)

// force chooses the variant of that name in its class, where it must be among the candidates.
func force(t *testing.T, of, name string) lowering.Chooser {
	return func(class, problem string, candidates []string) int {
		if class != of {
			return 0
		}
		i := slices.Index(candidates, name)
		require.GreaterOrEqual(t, i, 0, "%s %s offers %v", class, problem, candidates)
		return i
	}
}

// variants lowers a call once by every variant that it offers and checks each; it returns their names, none where there is
// no choice. An error of the limits must say so, and must not depend on the variant.
func (seen texts) variants(t *testing.T, e *program.Entry, options any, caps *wgsl.Caps, in ...program.Type) []string {
	t.Helper()
	a := program.Attr{Options: options}
	for range e.Scalars {
		a.Scalars = append(a.Scalars, 1)
	}
	out, err := e.Check(in, a)
	require.NoError(t, err)
	if caps.MaxInvocations == wgsl.DefaultCaps.MaxInvocations {
		kernels.kept = recent.New[*wgsl.Kernel](mostKernels) // so that a key used twice shows
	}
	var names []string
	classes := map[string]string{} // by name
	l, err := Lower(&program.Step{Entry: e, Attr: a}, in, out, caps, func(class, problem string, candidates []string) int {
		require.Equal(t, slices.Compact(slices.Sorted(slices.Values(candidates))), slices.Sorted(slices.Values(candidates)), "a name twice")
		names = append(names, candidates...)
		for _, name := range candidates {
			classes[name] = class
		}
		return 0
	})
	if err != nil {
		require.ErrorIs(t, err, compute.ErrTooLarge)
		require.ErrorContains(t, err, e.Name+" [")
		return nil
	}
	require.Equal(t, out[0].Len() == 0, len(l.Actions) == 0)
	seen.check(t, l, caps, in, out)
	for _, name := range names {
		l, err := Lower(&program.Step{Entry: e, Attr: a}, in, out, caps, force(t, classes[name], name))
		require.NoError(t, err)
		seen.check(t, l, caps, in, out)
	}
	return names
}

func TestMatMulLowering(t *testing.T) {
	r := testseed.Rand(t)
	all := map[string]bool{}
	for capsName, caps := range someCaps() {
		t.Run(capsName, func(t *testing.T) {
			seen := texts{}
			for _, s := range [][4]int{{1, 1, 1, 1}, {1, 1, 0, 1}, {1, 5, 7, 3}, {1, 33, 20, 37}, {1, 64, 64, 64}, {1, 1, 700, 40},
				{1, 5, 1030, 36}, {1, 40, 1030, 1}, {1, 100, 64, 7}, {3, 33, 17, 34}, {2, 36, 600, 40}, {1, 128, 128, 128},
				{1, 2, 70000, 3}, {1, 8, 300, 1000}, {70000, 2, 3, 2}, {1, 2000, 8, 12}, {1, 0, 3, 4}} {
				for _, f := range r.Perm(16)[:3] {
					o := compute.MatMulOptions{TransA: f&1 != 0, TransB: f&2 != 0, Act: []compute.Activation{compute.NoActivation, compute.GELU}[f/8]}
					x, y := []int{s[1], s[2]}, []int{s[2], s[3]}
					if o.TransA {
						slices.Reverse(x)
					}
					if o.TransB {
						slices.Reverse(y)
					}
					if s[0] > 1 {
						x = append([]int{s[0]}, x...)
					}
					in := []program.Type{program.F32(x...), program.F32(y...), program.F32(s[3])}[:2+f/4%2]
					for _, name := range seen.variants(t, catalogue.MatMul, o, caps, in...) {
						all[name] = true
					}
				}
				seen.variants(t, catalogue.MatVec, nil, caps, program.F32(s[1], s[2]), program.F32(s[2]))
			}
		})
	}
	for _, name := range []string{"naive", "reg4x4", "reg8x8", "reg16x16", "tile32", "tile64", "tile64x8", "tile32x2", "skinny", "rows", "rows256",
		"tile32/splitk", "reg4x4/splitk", "skinny/splitk", "rows/splitk"} {
		require.Contains(t, all, name, "no problem offers it")
	}
}

// What one binding cannot hold is computed in pieces that together make the whole.
func TestMatMulPieces(t *testing.T) {
	caps := *narrow()
	r := testseed.Rand(t)
	for range 2000 {
		d := catalogue.MatMulDims{Batch: 1 + r.IntN(3), M: 1 + r.IntN(80), K: r.IntN(80), N: 1 + r.IntN(80)}
		o := compute.MatMulOptions{TransA: r.IntN(2) == 0, TransB: r.IntN(2) == 0}
		x, y := []int{d.Batch, d.M, d.K}, []int{d.K, d.N}
		if o.TransA {
			x[1], x[2] = x[2], x[1]
		}
		if o.TransB {
			slices.Reverse(y)
		}
		in := []program.Type{program.F32(x...), program.F32(y...)}
		d, err := catalogue.MatMulShape(x, y, o)
		require.NoError(t, err)
		s := &step{Step: &lowering.Step[*Dispatch]{Operands: in, Result: program.F32(d.Batch, d.M, d.N)}, caps: &caps}
		m := &matmul{step: s, MatMulDims: d, a: operand(0), b: operand(1), c: result, product: product{TransA: o.TransA, TransB: o.TransB}}
		lda, ldb := x[2], y[1]
		groups, err := m.pieces(lda, ldb)
		if err != nil {
			require.ErrorIs(t, err, compute.ErrTooLarge)
			continue
		}
		products := 0
		at := func(b Buffer, offset int) int { return b.Offset/4 + offset }
		for _, p := range slices.Concat(groups...) {
			products += p.batch * p.m * p.n * p.k
			for _, b := range []Buffer{p.a, p.b, p.c} {
				require.LessOrEqual(t, uint64(b.Size), caps.MaxBinding)
			}
			if d.K == 0 {
				continue
			}
			// The first and the last element of each side lie in their bindings, and rows that begin at multiples of four still do.
			lastA := at(p.a, p.offA) + (p.batch-1)*p.strideA + (p.m-1)*p.lda + p.k - 1
			if o.TransA {
				lastA = at(p.a, p.offA) + (p.batch-1)*p.strideA + (p.k-1)*p.lda + p.m - 1
			}
			require.Less(t, lastA, in[0].Len())
			if p.a.Size > 0 {
				require.LessOrEqual(t, 4*(lastA+1), int(p.a.Offset+p.a.Size))
			}
			require.True(t, lda%4 != 0 || p.offA%4 == 0, "vectors of a: %+v", p)
			require.True(t, ldb%4 != 0 || p.offB%4 == 0, "vectors of b: %+v", p)
			require.True(t, o.TransB || d.N%4 != 0 || p.offC%4 == 0, "vectors of the result: %+v", p)
		}
		require.Equal(t, d.Batch*d.M*d.N*d.K, products)
		for _, group := range groups {
			require.Len(t, group, len(groups[0]))
		}
	}
}

func TestConvolutionLowering(t *testing.T) {
	r := testseed.Rand(t)
	all := map[string]bool{}
	for capsName, caps := range someCaps() {
		t.Run(capsName, func(t *testing.T) {
			seen := texts{}
			for _, s := range []struct{ x, w []int }{
				{[]int{9, 11}, []int{3, 3}}, {[]int{1, 1}, []int{1, 1}}, {[]int{2, 4, 9, 8}, []int{6, 4, 3, 2}},
				{[]int{1, 16, 8, 8}, []int{24, 16, 3, 3}}, {[]int{2, 4, 9, 8}, []int{6, 4, 1, 1}}, {[]int{1, 9000, 2, 2}, []int{3, 9000, 2, 2}},
				{[]int{500, 1, 5, 5}, []int{1, 1, 3, 3}}, {[]int{0, 3, 8, 8}, []int{4, 3, 3, 3}}, {[]int{2, 0, 4, 4}, []int{3, 0, 3, 3}}} {
				flags := r.Perm(16)
				if !testseed.Whole() {
					flags = flags[:5]
				}
				slices.Sort(flags) // those of groups come last: they change the weights
				for _, f := range flags {
					o := compute.Conv2DOptions{Pad: [2]int{f & 1, f & 1}, Stride: [2]int{1, 1 + f>>1&1}, Act: compute.Activation(f >> 2 & 1)}
					if f>>3 == 1 && len(s.x) == 4 && s.w[1]%2 == 0 && s.w[0]%2 == 0 {
						o.Groups = 2
						s.w = []int{s.w[0], s.x[1] / 2, s.w[2], s.w[3]}
					}
					in := []program.Type{program.F32(s.x...), program.F32(s.w...), program.F32(1)}
					if len(s.w) == 4 {
						in[2] = program.F32(s.w[0])
					}
					for _, name := range seen.variants(t, catalogue.Conv2D, o, caps, in[:2+f>>2&1]...) {
						all[name] = true
					}
				}
			}
			for _, e := range []*program.Entry{catalogue.MaxPool2D, catalogue.AvgPool2D} {
				for _, x := range [][]int{{20, 30}, {300, 3, 21, 20}, {70000, 20, 20}} {
					for _, size := range [][2]int{{2, 2}, {1, 5}, {20, 20}} {
						seen.variants(t, e, compute.PoolOptions{Size: size, Pad: [2]int{size[0] / 2, 0}, Stride: [2]int{1, 2}}, caps, program.F32(x...))
					}
				}
			}
		})
	}
	for _, b := range convBlocks {
		require.Contains(t, all, b.String(), "no problem offers it")
	}
}

func TestMoveLowering(t *testing.T) {
	r := testseed.Rand(t)
	i32 := func(shape ...int) program.Type { return program.Type{DType: compute.Int32, Shape: shape} }
	f16 := func(shape ...int) program.Type { return program.Type{DType: compute.Float16, Shape: shape} }
	for capsName, caps := range someCaps() {
		t.Run(capsName, func(t *testing.T) {
			seen := texts{}
			for _, s := range [][]int{{3, 5}, {33, 50}, {1, 7}, {200, 100}, {4, 5, 6}, {40, 5, 60}, {2, 2, 3, 2, 2, 3, 2, 2}, {0, 3}} {
				perm := r.Perm(len(s))
				t.Logf("%v by %v", s, perm)
				seen.variants(t, catalogue.Transpose, compute.TransposeOptions{Perm: perm}, caps, i32(s...))
				seen.variants(t, catalogue.Transpose, compute.TransposeOptions{}, caps, program.F32(s...))
				half, back, pad := make([]int, len(s)), make([]int, len(s)), make([]int, len(s))
				for d := range s {
					half[d], back[d], pad[d] = (s[d]+1)/2, -2, d
				}
				start := make([]int, len(s))
				for d := range s {
					start[d] = max(0, s[d]-1)
				}
				if program.Len(s) > 0 {
					seen.variants(t, catalogue.Slice, compute.SliceOptions{Start: make([]int, len(s)), Size: half}, caps, program.F32(s...))
					if !slices.Contains(s, 1) {
						seen.variants(t, catalogue.Slice, compute.SliceOptions{Start: start, Size: half, Step: back}, caps, program.F32(s...))
					}
				}
				seen.variants(t, catalogue.Pad, compute.PadOptions{Before: pad, After: half}, caps, program.F32(s...))
				for axis := range s {
					seen.variants(t, catalogue.Concat, compute.ConcatOptions{Axis: axis}, caps, i32(s...), i32(s...), i32(s...))
				}
				seen.variants(t, catalogue.Reshape, compute.ReshapeOptions{Shape: []int{program.Len(s)}}, caps, f16(s...))
				seen.variants(t, catalogue.Fill, compute.FillOptions{Shape: s}, caps)
			}
			for _, n := range []int{0, 1, 2, 3, 5, 7000, 70001} {
				seen.variants(t, catalogue.Copy, nil, caps, f16(n))
				seen.variants(t, catalogue.Cast, compute.CastOptions{To: compute.Float16}, caps, program.F32(n))
				seen.variants(t, catalogue.Cast, compute.CastOptions{To: compute.Float32}, caps, f16(n))
				seen.variants(t, catalogue.Cast, compute.CastOptions{To: compute.Float32}, caps, program.F32(n))
				seen.variants(t, catalogue.Embedding, nil, caps, program.F32(n, 3), i32(n%100))
				seen.variants(t, catalogue.Embedding, nil, caps, program.F32(n%10, 8), i32(2, n))
			}
		})
	}
}

// The largest tensors that may exist stay within the grids of every device, and so does all that comes of them.
func TestLargestMatricesAndMoves(t *testing.T) {
	caps := wgsl.DefaultCaps
	caps.MaxBinding, caps.MaxBuffer = 1<<33, 1<<33
	seen := texts{}
	for _, s := range [][3]int{{46340, 3, 46340}, {1 << 30, 1, 1}, {1, 1, 1 << 30}, {1, 1 << 30, 1}, {4, 1 << 28, 4}} {
		seen.variants(t, catalogue.MatMul, compute.MatMulOptions{}, &caps, program.F32(s[0], s[1]), program.F32(s[1], s[2]))
		seen.variants(t, catalogue.MatMul, compute.MatMulOptions{TransA: true, TransB: true}, &caps, program.F32(s[1], s[0]), program.F32(s[2], s[1]))
	}
	seen.variants(t, catalogue.MatMul, compute.MatMulOptions{}, &caps, program.F32(1<<28, 2, 1), program.F32(1<<28, 1, 2))
	seen.variants(t, catalogue.Conv2D, compute.Conv2DOptions{}, &caps, program.F32(46340, 46340), program.F32(3, 3))
	seen.variants(t, catalogue.MaxPool2D, compute.PoolOptions{Size: [2]int{1, 1}}, &caps, program.F32(46340, 46340))
	seen.variants(t, catalogue.Transpose, compute.TransposeOptions{}, &caps, program.F32(46340, 46340))
	seen.variants(t, catalogue.Transpose, compute.TransposeOptions{Perm: []int{2, 1, 0}}, &caps, program.F32(1290, 1290, 1290))
	seen.variants(t, catalogue.Fill, compute.FillOptions{Shape: []int{program.MaxElements}}, &caps)
	seen.variants(t, catalogue.Cast, compute.CastOptions{To: compute.Float16}, &caps, program.F32(program.MaxElements))
	seen.variants(t, catalogue.Embedding, nil, &caps, program.F32(50257, 4096), program.Type{DType: compute.Int32, Shape: []int{500000}})
}

func TestMoveThatNoBindingHolds(t *testing.T) {
	caps := wgsl.DefaultCaps // 128 MiB
	for _, perm := range [][]int{{1, 0, 2}, {2, 0, 1}, {2, 1, 0}} {
		in := []program.Type{program.F32(600, 500, 400)}
		e, a := catalogue.Transpose, program.Attr{Options: compute.TransposeOptions{Perm: perm}}
		out, err := e.Check(in, a)
		require.NoError(t, err)
		l, err := Lower(&program.Step{Entry: e, Attr: a}, in, out, &caps, nil)
		require.NoError(t, err)
		texts{}.check(t, l, &caps, in, out)
		require.Greater(t, len(l.Actions), 3)
		require.Less(t, len(l.Actions), 100)
	}
}

// Kernels say how much workgroup memory they declare.
func TestSharedMemory(t *testing.T) {
	for _, ta := range []bool{false, true} {
		for _, tb := range []bool{false, true} {
			for _, v := range tiles {
				p := product{TransA: ta, TransB: tb}
				d := productText{product: p, tile: v.tile}
				require.Equal(t, v.KT > 0, v.shared(p) > 0)
				require.LessOrEqual(t, v.shared(p), int(wgsl.DefaultCaps.MaxShared), "%s by default limits", v.name)
				if ta && v.small() {
					continue
				}
				text := p.tiled(v.tile).Source
				require.Equal(t, v.KT > 0, strings.Contains(text, fmt.Sprintf("tile_a: array<vec4<f32>, %d>", d.SizeA())))
			}
		}
	}
}

// The default suits the shape: few rows do not take square tiles, few tiles of great depth are split.
func TestMatMulDefaults(t *testing.T) {
	caps := wgsl.DefaultCaps
	first := func(m, k, n int, o compute.MatMulOptions, x, y []int) string {
		var name string
		in := []program.Type{program.F32(x...), program.F32(y...)}
		a := program.Attr{Options: o}
		out, err := catalogue.MatMul.Check(in, a)
		require.NoError(t, err)
		require.Equal(t, []int{m, n}, out[0].Shape)
		_, err = Lower(&program.Step{Entry: catalogue.MatMul, Attr: a}, in, out, &caps, func(_, _ string, c []string) int { name = c[0]; return 0 })
		require.NoError(t, err, k)
		return name
	}
	nn, nt := compute.MatMulOptions{}, compute.MatMulOptions{TransB: true}
	require.Equal(t, "tile32", first(1024, 1024, 1024, nn, []int{1024, 1024}, []int{1024, 1024}))
	require.Equal(t, "tile32/splitk", first(64, 4096, 64, nn, []int{64, 4096}, []int{4096, 64}))
	require.Equal(t, "rows", first(4096, 4096, 1, nn, []int{4096, 4096}, []int{4096, 1}))
	require.Equal(t, "rows", first(1, 4096, 4096, nt, []int{1, 4096}, []int{4096, 4096}))
	require.Equal(t, "rows/splitk", first(4, 65536, 1, nn, []int{4, 65536}, []int{65536, 1}))
	require.Equal(t, "skinny/splitk", first(4, 4096, 4096, nn, []int{4, 4096}, []int{4096, 4096}))
	require.Equal(t, "skinny", first(4, 64, 65536, nn, []int{4, 64}, []int{64, 65536}))

	caps.Software = true
	require.Equal(t, "reg8x8", first(1024, 1024, 1024, nn, []int{1024, 1024}, []int{1024, 1024}))
	require.Equal(t, "reg8x8/splitk", first(64, 4096, 64, nn, []int{64, 4096}, []int{4096, 64}))
	require.Equal(t, "reg4x4", first(20, 64, 20, nn, []int{20, 64}, []int{64, 20}))
	require.Equal(t, "tile32", first(12, 64, 12, nn, []int{12, 64}, []int{64, 12}))
	require.Equal(t, "rows", first(4096, 4096, 1, nn, []int{4096, 4096}, []int{4096, 1}))
}

// However many expressions there are, few of their kernels are kept.
func TestKernelsAreBounded(t *testing.T) {
	const limit = 16
	kernels.kept = recent.New[*wgsl.Kernel](limit)
	defer func() { kernels.kept = recent.New[*wgsl.Kernel](mostKernels) }()
	caps := wgsl.DefaultCaps
	in := []program.Type{program.F32(5)}
	for i := range 10 * limit {
		x := program.Expression{Inputs: 1, Results: []int{8}}
		for bit := range 8 {
			x.Nodes = append(x.Nodes, program.Node{Entry: []*program.Entry{catalogue.Neg, catalogue.Abs}[i>>bit&1], Args: []int{bit}})
		}
		_, err := Lower(&program.Step{Entry: program.Fused, Attr: program.Attr{Options: x}}, in, in, &caps, nil)
		require.NoError(t, err)
		require.LessOrEqual(t, kernels.kept.Len(), 2*limit)
	}
}

// What limits do not allow is not fused.
func TestFusesWithinLimits(t *testing.T) {
	sum := func(inputs, results int, scales int) (*program.Step, []program.Type, []program.Type) {
		x := program.Expression{Inputs: inputs}
		var in, out []program.Type
		for i := range inputs {
			in = append(in, program.F32(10))
			if i > 0 {
				x.Nodes = append(x.Nodes, program.Node{Entry: catalogue.Add, Args: []int{inputs + i - 2, i}})
			}
		}
		if inputs > 1 {
			x.Nodes[0].Args[0] = 0
		}
		for range scales {
			x.Nodes = append(x.Nodes, program.Node{Entry: catalogue.Scale, Args: []int{inputs + len(x.Nodes) - 1}})
		}
		for i := range results {
			x.Results = append(x.Results, i)
			out = append(out, program.F32(10))
		}
		s := &program.Step{Entry: program.Fused, Attr: program.Attr{Options: x, Scalars: make([]float32, scales)}}
		for i := range inputs {
			s.In = append(s.In, program.Slot(i))
		}
		return s, in, out
	}
	caps := wgsl.DefaultCaps
	fuses := func(s *program.Step, in, out []program.Type) bool { return Fuses(s, in, out, &caps, nil) }
	require.True(t, fuses(sum(7, 1, 0)))
	require.False(t, fuses(sum(7, 2, 0)), "nine buffers")
	s, in, out := sum(8, 1, 0)
	require.False(t, fuses(s, in, out), "nine buffers")
	s.In[3] = s.In[1]
	require.True(t, fuses(s, in, out), "of which two are one")
	require.True(t, fuses(sum(2, 1, 60)))
	require.False(t, fuses(sum(2, 1, 70)), "more scalars than a uniform holds")
	x := program.F32(9, 8)
	prologue := program.Expression{Inputs: 2, Nodes: []program.Node{{Entry: catalogue.Add, Args: []int{0, 1}}}, Results: []int{2}}
	for _, e := range []*program.Entry{catalogue.Softmax, catalogue.Sum} {
		s := &program.Step{Entry: e, Attr: program.Attr{Options: e.Options, Prologue: prologue}}
		out, err := e.Check([]program.Type{x, x}, s.Attr)
		require.NoError(t, err)
		require.True(t, fuses(s, []program.Type{x, x}, out))
		small := caps
		small.MaxStorageBuffers = 2
		require.False(t, Fuses(s, []program.Type{x, x}, out, &small, nil))
	}
}
