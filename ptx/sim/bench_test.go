package sim_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"

	"github.com/wavelane/wavelane/internal/ptxkernels"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/sim"
)

// tile is a kernel with the inner loop of a register-tiled GEMM: each of n rounds loads 8 words of shared memory and does 64 fma.
func tile() string {
	var b strings.Builder
	b.WriteString(`.visible .entry k(.param .u64 out, .param .u32 n) {
	.reg .pred %p; .reg .b32 %r<10>; .reg .b64 %rd<4>; .reg .f32 %c<64>; .reg .f32 %a<8>; .reg .f32 %b<8>;
	.shared .align 16 .b8 s[4128];
	ld.param.u32 %r0, [n];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, s;
	shl.b32 %r3, %r1, 5;
	and.b32 %r3, %r3, 4095;
	add.u32 %r2, %r2, %r3;
	cvt.rn.f32.u32 %a0, %r1;
	mul.f32 %a0, %a0, 0f3DFCD6EA;
`)
	for i := range 8 {
		fmt.Fprintf(&b, "\tst.shared.f32 [%%r2+%d], %%a0;\n", 4*i)
	}
	b.WriteString("\tbar.sync 0;\n")
	for i := range 64 {
		fmt.Fprintf(&b, "\tmov.f32 %%c%d, 0f00000000;\n", i)
	}
	b.WriteString(`LOOP:
	ld.shared.v4.f32 {%a0, %a1, %a2, %a3}, [%r2];
	ld.shared.v4.f32 {%a4, %a5, %a6, %a7}, [%r2+16];
	ld.shared.v4.f32 {%b0, %b1, %b2, %b3}, [%r2];
	ld.shared.v4.f32 {%b4, %b5, %b6, %b7}, [%r2+16];
`)
	for i := range 64 {
		fmt.Fprintf(&b, "\tfma.rn.f32 %%c%d, %%a%d, %%b%d, %%c%d;\n", i, i/8, i%8, i)
	}
	b.WriteString(`	add.s32 %r0, %r0, -1;
	setp.ne.s32 %p, %r0, 0;
	@%p bra LOOP;
	ld.param.u64 %rd0, [out];
	mad.wide.u32 %rd0, %r1, 4, %rd0;
`)
	for i := range 64 {
		fmt.Fprintf(&b, "\tadd.f32 %%c0, %%c0, %%c%d;\n", i)
	}
	b.WriteString("\tst.global.f32 [%rd0], %c0;\n\tret;\n}\n")
	return b.String()
}

// BenchmarkFMA reports lane-FMA/s of a register tile, with checks off and with all of them.
func BenchmarkFMA(b *testing.B) {
	for _, c := range []struct {
		name string
		cfg  sim.Config
	}{{"unchecked", sim.Config{}}, {"checked", sim.Config{Checks: sim.AllChecks}}} {
		b.Run(c.name, func(b *testing.B) {
			const blockSize, rounds = 128, 256
			g := sim.New(c.cfg)
			m, err := g.Load(module(b, tile()))
			require.NoError(b, err)
			k, err := m.Kernel("k")
			require.NoError(b, err)
			out, err := g.Alloc(4 * blockSize)
			require.NoError(b, err)
			params, err := k.Pack(out, uint32(rounds))
			require.NoError(b, err)
			for b.Loop() {
				_, err := g.Run(context.Background(), k, sim.Launch{Grid: sim.Dim3{X: 1}, Block: sim.Dim3{X: blockSize}, Params: params})
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.N)*64*rounds*blockSize/b.Elapsed().Seconds()/1e6, "Mlane-FMA/s")
		})
	}
}

// checkedOrNot are the configurations that benchmarks compare.
var checkedOrNot = []struct {
	name string
	cfg  sim.Config
}{{"unchecked", sim.Config{}}, {"checked", sim.Config{Checks: sim.AllChecks}}}

// BenchmarkGEMM256 multiplies two matrices of 256 × 256 with kernels of the catalogue: tiles that are loaded, and tiles that
// arrive in the background.
func BenchmarkGEMM256(b *testing.B) {
	const n = 256
	for _, variant := range []string{"tile64x64", "async"} {
		kernel, launch := lowered(b, catalogue.MatMul, compute.MatMulOptions{}, variant, program.F32(n, n), program.F32(n, n))
		for _, c := range checkedOrNot {
			b.Run(variant+"/"+c.name, func(b *testing.B) {
				run := ready(b, kernel, launch, c.cfg, n*n)
				for b.Loop() {
					run()
				}
				b.ReportMetric(float64(b.N)*n*n*n/b.Elapsed().Seconds()/1e6, "Mlane-FMA/s")
			})
		}
	}
}

// BenchmarkSum sums the rows of a matrix: loads of four words, shuffles, shared memory.
func BenchmarkSum(b *testing.B) {
	const rows, cols = 4096, 128
	kernel, launch := lowered(b, catalogue.Sum, compute.LastAxis, "", program.F32(rows, cols))
	for _, c := range checkedOrNot {
		b.Run(c.name, func(b *testing.B) {
			run := ready(b, kernel, launch, c.cfg, rows*cols)
			for b.Loop() {
				run()
			}
			b.ReportMetric(float64(b.N)*rows*cols/b.Elapsed().Seconds()/1e6, "Mvalues/s")
		})
	}
}

// ready loads a kernel and what its pointers point to, so many random floats each, and returns what launches it.
func ready(b *testing.B, kernel *kit.Kernel, launch *kit.Launch, cfg sim.Config, n int) func() {
	g := sim.New(cfg)
	rng := ptxtest.Replay(1)
	ir, err := kernel.Module()
	require.NoError(b, err)
	m, err := g.Load(ir)
	require.NoError(b, err)
	k, err := m.Kernel(kernel.Name)
	require.NoError(b, err)
	for _, p := range launch.Pointers {
		v := make([]uint32, n)
		for j := range v {
			v[j] = math.Float32bits(rng.Float32()*2 - 1)
		}
		binary.LittleEndian.PutUint64(launch.Params[p.At:], upload(b, g, v)+uint64(p.Offset))
	}
	grid, block := launch.Grid, kernel.Block
	l := sim.Launch{Grid: sim.Dim3{X: int(grid[0]), Y: int(grid[1]), Z: int(grid[2])}, Params: launch.Params,
		Block: sim.Dim3{X: block[0], Y: block[1], Z: block[2]}, Shared: kernel.Shared}
	return func() {
		_, err := g.Run(context.Background(), k, l)
		require.NoError(b, err)
	}
}

// lowered is the launch by which the catalogue executes an entry, in a variant if there are some.
func lowered(b *testing.B, e *program.Entry, options any, variant string, in ...program.Type) (*kit.Kernel, *kit.Launch) {
	p := &program.Program{}
	var slots []program.Slot
	for _, t := range in {
		slots = append(slots, p.Add(t, program.FromHost))
	}
	out, err := p.Apply(e, program.Attr{Options: options}, slots...)
	require.NoError(b, err)
	l, err := ptxkernels.Lower(&p.Steps[0], p.Types(slots), p.Types([]program.Slot{out}), &kit.DefaultCaps,
		func(_, _ string, candidates []string) int {
			i := slices.Index(candidates, variant)
			require.GreaterOrEqual(b, i, 0, "%s is none of %v", variant, candidates)
			return i
		})
	require.NoError(b, err)
	require.Len(b, l.Actions, 1)
	return l.Actions[0].Launch.Kernel, l.Actions[0].Launch
}
