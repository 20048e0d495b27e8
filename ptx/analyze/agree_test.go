package analyze_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/analyze"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/parse"
	"github.com/wavelane/wavelane/ptx/sim"
)

// randomAccesses is a kernel of one block that loads from random functions of the thread's index.
func randomAccesses(rng *rand.Rand, block int) string {
	const size = 1 << 14
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "\t"+format+"\n", args...) }
	fmt.Fprintf(&b, ".version 7.0\n.target sm_80\n.address_size 64\n"+
		".visible .entry k(.param .u64 x, .param .u32 n) .reqntid %d\n{\n", block)
	line(".reg .b32 %%r<64>;\n\t.reg .b64 %%rd<64>;\n\t.reg .pred %%p<4>;\n\t.shared .align 128 .b8 tile[%d];", size)
	line("ld.param.u64 %%rd1, [x];\n\tcvta.to.global.u64 %%rd1, %%rd1;\n\tld.param.u32 %%r2, [n];\n\tmov.u32 %%r1, %%tid.x;")
	line("mov.u32 %%r3, tile;\n\tmov.u32 %%r4, %%r1;")
	// Every byte of the array is written first.
	line("mov.u32 %%r5, 0;\n\tshl.b32 %%r6, %%r1, 4;\n\tadd.u32 %%r6, %%r6, %%r3;")
	fmt.Fprintf(&b, "$fill:\n")
	line("st.shared.v4.u32 [%%r6], {%%r5, %%r5, %%r5, %%r5};\n\tadd.u32 %%r6, %%r6, %d;", 16*block)
	line("add.u32 %%r5, %%r5, 1;\n\tsetp.lt.u32 %%p1, %%r5, %d;\n\t@%%p1 bra $fill;\n\tbar.sync 0;", size/(16*block))
	sum := "mov.u32 %r40, 0;"
	line("%s", sum)
	for range 6 {
		for range 1 + rng.IntN(4) {
			switch rng.IntN(7) {
			case 0:
				line("mad.lo.u32 %%r4, %%r4, %d, %%r1;", 1+rng.IntN(40))
			case 1:
				line("xor.b32 %%r4, %%r4, %d;", rng.IntN(256))
			case 2:
				line("shr.u32 %%r7, %%r4, %d;\n\txor.b32 %%r4, %%r4, %%r7;", 1+rng.IntN(4))
			case 3:
				line("shl.b32 %%r4, %%r4, %d;", rng.IntN(4))
			case 4:
				line("and.b32 %%r4, %%r4, %d;", rng.IntN(4096))
			case 5:
				line("add.u32 %%r4, %%r4, %%r2;")
			case 6:
				line("mul.lo.u32 %%r4, %%r4, %%r2;")
			}
		}
		width := []int{1, 2, 4}[rng.IntN(3)]
		vector := []string{"u32 %r10", "v2.u32 {%r10, %r11}", "", "v4.u32 {%r10, %r11, %r12, %r13}"}[width-1]
		line("and.b32 %%r8, %%r4, %d;", size/4-width)
		line("shl.b32 %%r8, %%r8, 2;")
		if width > 1 {
			line("and.b32 %%r8, %%r8, %d;", -4*width)
		}
		if rng.IntN(2) == 0 {
			line("add.u32 %%r9, %%r8, %%r3;\n\tld.shared.%s, [%%r9];", vector)
		} else {
			line("cvt.u64.u32 %%rd2, %%r8;\n\tadd.s64 %%rd2, %%rd2, %%rd1;\n\tld.global.%s, [%%rd2];", vector)
		}
		for i := range width {
			line("add.u32 %%r40, %%r40, %%r%d;", 10+i)
		}
	}
	line("mul.wide.u32 %%rd3, %%r1, 4;\n\tadd.s64 %%rd3, %%rd3, %%rd1;\n\tbar.sync 0;")
	line("st.global.u32 [%%rd3+%d], %%r40;\n\tret;\n}", size)
	return b.String()
}

// The analyser's transactions are those that the software GPU counts, instruction by instruction.
func TestTransactionsAgree(t *testing.T) {
	rng := ptxtest.Random(t)
	rounds := 120
	if testing.Short() {
		rounds = 20
	}
	for range rounds {
		block := []int{32, 64, 128, 256, 512}[rng.IntN(5)]
		n := uint32(1 + rng.IntN(40))
		text := randomAccesses(rng, block)
		m, err := parse.Module("k.ptx", []byte(text))
		require.NoError(t, err, "%s", text)
		r, err := analyze.Module(m, analyze.Options{Params: map[string]uint64{"n": uint64(n)}, Grid: [3]int{1}})
		require.NoError(t, err)

		gpu := sim.New(sim.Config{Counters: true})
		mod, err := gpu.Load(m)
		require.NoError(t, err)
		k, err := mod.Kernel("k")
		require.NoError(t, err)
		x, err := gpu.Alloc(1<<14 + 4*block)
		require.NoError(t, err)
		require.NoError(t, gpu.Fill(x, 1<<14+4*block, 1))
		params, err := k.Pack(x, n)
		require.NoError(t, err)
		stats, err := gpu.Run(context.Background(), k, sim.Launch{Grid: sim.Dim3{X: 1}, Block: sim.Dim3{X: block}, Params: params})
		require.NoError(t, err)

		want := map[string]sim.LineStats{}
		for _, l := range stats.Lines {
			want[l.Pos.String()] = l
		}
		require.NotEmpty(t, r.Kernels[0].Accesses)
		for _, a := range r.Kernels[0].Accesses {
			w, ok := want[a.Pos]
			require.True(t, ok, "%s", a.Instr)
			require.False(t, a.Unknown, "%s\n%s", a.Instr, text)
			total, conflicts := int(w.Sectors), int(w.Sectors-w.SectorsIdeal)
			if a.Space == "shared" {
				total, conflicts = int(w.Wavefronts), int(w.Conflicts)
			}
			require.Equal(t, total, a.Transactions, "%s\n%s", a.Instr, text)
			require.Equal(t, conflicts, a.Transactions-a.Ideal, "%s\n%s", a.Instr, text)
		}
	}
}
