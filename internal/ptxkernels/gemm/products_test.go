package gemm

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/sim"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// exact is a product of small integers: every kind of numbers holds them and their sums.
type exact struct {
	kind    string // f16, bf16, or of float32
	emit    func(m *Problem)
	batch   int
	m, n, k int
	transA  bool
	transB  bool
	shareB  bool // one b for the whole batch
}

func (e exact) size() int {
	if e.kind == "f16" || e.kind == "bf16" {
		return 2
	}
	return 4
}

func (e exact) fill(rng *rand.Rand, n int) (x []float64, raw []byte) {
	for range n {
		v := float32(rng.IntN(17) - 8)
		x = append(x, float64(v))
		switch e.kind {
		case "f16":
			raw = binary.LittleEndian.AppendUint16(raw, uint16(ptx.F16Of(v)))
		case "bf16":
			raw = binary.LittleEndian.AppendUint16(raw, uint16(ptx.BF16Of(v)))
		default:
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
	}
	return x, raw
}

func (e exact) check(t *testing.T, r *kerneltest.Rig, rng *rand.Rand) {
	strideB, ofB := e.k*e.n, e.batch
	if e.shareB {
		strideB, ofB = 0, 1
	}
	x, a := e.fill(rng, e.batch*e.m*e.k)
	y, b := e.fill(rng, ofB*e.k*e.n)
	dtypes := map[string]compute.DType{"f16": compute.Float16, "bf16": compute.BFloat16} // else float32
	s := &kit.Step{Caps: &r.Caps, Step: &lowering.Step[*kit.Launch]{Operands: []program.Type{{DType: dtypes[e.kind], Shape: []int{len(x)}}, {DType: dtypes[e.kind], Shape: []int{len(y)}}}}}
	p := Problem{Step: s, transA: e.transA, transB: e.transB, A: kit.In(0), B: kit.In(1),
		MatMulDims: catalogue.MatMulDims{Batch: e.batch, M: e.m, N: e.n, K: e.k, StrideA: e.m * e.k, StrideB: strideB}}
	e.emit(&p)
	require.NoError(t, s.Err)
	got := r.Perform(t, s.Code, 4*e.batch*e.m*e.n, a, b)
	for z := range e.batch {
		for i := range e.m {
			for j := range e.n {
				want := 0.0
				for d := range e.k {
					u, v := (z*e.m+i)*e.k+d, z*strideB+d*e.n+j
					if e.transA {
						u = (z*e.k+d)*e.m + i
					}
					if e.transB {
						v = z*strideB + j*e.k + d
					}
					want += x[u] * y[v]
				}
				have := math.Float32frombits(binary.LittleEndian.Uint32(got[4*((z*e.m+i)*e.n+j):]))
				require.Equal(t, want, float64(have), "%+v: %d, %d, %d", e, z, i, j)
			}
		}
	}
}

// emitCut emits a product whole or cut up at random: some tiles of the first, in shares of any size, or all in equal parts.
func emitCut(m *Problem, t *testing.T, rng *rand.Rand, of tiling.Grid, emit func(parts kit.Buffer, c tiling.Schedule)) {
	tiles, length := of.Tiles()*of.Batch, kit.CeilDiv(m.K, tiling.DepthUnit)
	all := []tiling.Schedule{{Parts: 1, Length: max(1, length), Share: 1, Tiling: of}}
	if length > 0 {
		all = of.AppendSchedule(all, "", 1+rng.IntN(tiles), length, 1+rng.IntN(2*length), 0)
		share := 1 + rng.IntN(length)
		all = of.AppendSchedule(all, "", tiles, kit.CeilDiv(length, share)*share, share, 0)
	}
	c := all[rng.IntN(len(all))]
	parts := kit.Out
	if c.Parts > 1 {
		parts = m.NewScratch(4 * c.Parts * c.Elements)
	}
	t.Logf("%d parts of %d tiles among %d, of %d units in shares of %d", c.Parts, c.Tiles, tiles, c.Length, c.Share)
	emit(parts, c)
	if c.Parts > 1 {
		tiling.AddPartials(m.Step, c, 0, 0, nil, parts, m.Bias, kit.Out)
	}
}

// Products by mma.sync: layouts, odd sizes, batches.
func TestMmaProducts(t *testing.T) {
	for _, set := range []*mmaSet{mmaF16, mmaBF16, mmaTF32, mmaTF32x3} {
		for tile := range mmaTiles {
			t.Run(set.MMAKind.Name+mmaTiles[tile].name(), func(t *testing.T) {
				t.Parallel()
				rng := ptxtest.Random(t)
				for i := range 4 {
					r := kerneltest.New(t, sim.Config{Checks: sim.AllChecks, Seed: rng.Uint64(), Perturb: true}, nil)
					e := exact{kind: set.MMAKind.Name, batch: kerneltest.OneOf(rng, 1, 2), m: 1 + rng.IntN(140), n: 1 + rng.IntN(140), k: rng.IntN(330),
						transA: i&1 == 1, transB: i&2 == 2, shareB: rng.IntN(2) == 0}
					if rng.IntN(2) == 0 {
						e.m, e.n, e.k = (e.m+7)&^7, (e.n+7)&^7, (e.k+7)&^7
					}
					e.emit = func(m *Problem) {
						m.emitMma(set, tile, kit.Out, kit.Out, tiling.GridOf(m.MatMulDims, mmaTiles[tile].m, mmaTiles[tile].n, 1).Schedules(m.Caps.Multiprocessors, m.K, 1, 1)[0])
					}
					e.check(t, r, rng)
				}
			})
		}
	}
}

// Products by wgmma: layouts, sizes that end inside of tiles, batches, more tiles than blocks.
func TestWgmmaProducts(t *testing.T) {
	for kind, set := range map[string]*wgmmaSet{"f16": wgmmaF16, "bf16": wgmmaBF16, "tf32": wgmmaTF32, "tf32x3": wgmmaTF32x3} {
		for tile, of := range set.tiles {
			t.Run(fmt.Sprintf("%s_%d", kind, of.n), func(t *testing.T) {
				t.Parallel()
				rng := ptxtest.Random(t)
				for i := range 4 {
					r := kerneltest.New(t, sim.Config{Checks: sim.AllChecks, Seed: rng.Uint64(), Perturb: true}, nil)
					e := exact{kind: kind, batch: kerneltest.OneOf(rng, 1, 2), m: 8 * (1 + rng.IntN(20)), n: 8 * (1 + rng.IntN(36)),
						k: 8 * (1 + rng.IntN(20)), transA: i&1 == 1, transB: i&2 == 2, shareB: rng.IntN(2) == 0}
					if set.typ == tensormap.TF32 { // rows of whole 16 bytes are needed only of what is not transposed first
						e.m, e.n = 1+rng.IntN(160), 1+rng.IntN(290)
						if e.transA && !e.transB || set.parts() > 1 {
							e.k = 1 + rng.IntN(160)
						} else {
							e.k -= 4 * rng.IntN(2)
						}
					}
					e.emit = func(m *Problem) {
						emitCut(m, t, rng, tiling.GridOf(m.MatMulDims, wgmmaM, of.n, wgmmaGroup), func(parts kit.Buffer, c tiling.Schedule) {
							m.emitWgmma(set, tile, kit.Out, parts, c)
						})
					}
					e.check(t, r, rng)
				}
			})
		}
	}
}

// Products by gemm_async.
func TestAsyncProducts(t *testing.T) {
	rng := ptxtest.Random(t)
	for i := range 8 {
		r := kerneltest.New(t, sim.Config{Checks: sim.AllChecks, Seed: rng.Uint64(), Perturb: true}, nil)
		e := exact{kind: "f32", batch: kerneltest.OneOf(rng, 1, 2), m: 1 + rng.IntN(140), n: 1 + rng.IntN(270), k: 1 + rng.IntN(40),
			transA: i&1 == 1, transB: i&2 == 2, shareB: rng.IntN(2) == 0}
		if e.transA {
			e.m = (e.m + 3) &^ 3
		}
		if !e.transB {
			e.n = (e.n + 3) &^ 3
		}
		e.emit = func(m *Problem) { m.emitAsync(1, kit.Out) }
		e.check(t, r, rng)
	}
}
