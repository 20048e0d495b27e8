package sim_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/kernels"
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

// BenchmarkGEMM256 multiplies two matrices of 256 × 256 with the register-tiled kernel.
func BenchmarkGEMM256(b *testing.B) {
	const n = 256
	kernel := kernels.SGEMM(kernels.Tile{M: 64, N: 64, K: 16, PerThreadM: 8, PerThreadN: 8})
	ir, err := kernel.Module()
	require.NoError(b, err)
	rng := ptxtest.Random(b)
	for _, c := range []struct {
		name string
		cfg  sim.Config
	}{{"unchecked", sim.Config{}}, {"checked", sim.Config{Checks: sim.AllChecks}}} {
		b.Run(c.name, func(b *testing.B) {
			g := sim.New(c.cfg)
			m, err := g.Load(ir)
			require.NoError(b, err)
			k, err := m.Kernel(kernel.Name)
			require.NoError(b, err)
			var buffers [3]uint64
			for i := range buffers {
				v := make([]uint32, n*n)
				for j := range v {
					v[j] = math.Float32bits(rng.Float32()*2 - 1)
				}
				buffers[i] = upload(b, g, v)
			}
			params, err := k.Pack(uint32(n), uint32(n), uint32(n), buffers[0], buffers[1], buffers[2])
			require.NoError(b, err)
			grid := kernel.Grid(n, n, n)
			l := sim.Launch{Grid: sim.Dim3{X: grid[0], Y: grid[1], Z: grid[2]}, Block: sim.Dim3{X: kernel.Block[0]}, Params: params}
			for b.Loop() {
				_, err := g.Run(context.Background(), k, l)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.N)*n*n*n/b.Elapsed().Seconds()/1e6, "Mlane-FMA/s")
		})
	}
}
