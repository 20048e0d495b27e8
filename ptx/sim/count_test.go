package sim

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
)

func counted(t *testing.T, s *sample) *Stats {
	_, _, st, err := execute(t, s, Config{Counters: true}, ptxtest.Replay(1))
	require.NoError(t, err)
	return st
}

// TestBankConflicts is a tile read by columns: without padding all lanes meet in one bank, with it none do.
func TestBankConflicts(t *testing.T) {
	column := func(pitch string) *sample {
		return &sample{name: "column", shared: 8192, block: 32, ptx: `
			mul.lo.u32 %r1, %t, ` + pitch + `; mov.u32 %r2, buf; add.u32 %r1, %r1, %r2;
			st.shared.u32 [%r1], %t;
			ld.shared.u32 %r3, [%r1];
			st.global.u32 [%yi], %r3;`}
	}
	st := counted(t, column("128"))
	require.Equal(t, uint64(2), st.SharedRequests)
	require.Equal(t, uint64(64), st.Wavefronts)
	require.Equal(t, uint64(62), st.Conflicts)
	require.Equal(t, uint64(128), st.SharedRead)
	require.Equal(t, uint64(128), st.SharedWritten)
	var at string
	for _, l := range st.Lines {
		if l.Conflicts > 0 && l.Class == "load shared" {
			at = l.Instr
			require.Equal(t, uint64(31), l.Conflicts)
			require.Equal(t, "column.ptx", l.Pos.File)
		}
	}
	require.Equal(t, "ld.shared.u32 %r3, [%r1];", at)
	require.Contains(t, st.String(), "31 bank conflicts at column.ptx:")
	st = counted(t, column("132"))
	require.Equal(t, uint64(2), st.Wavefronts)
	require.Zero(t, st.Conflicts)
}

// TestSectors reads neighbours, and words of 32 sectors.
func TestSectors(t *testing.T) {
	s := &sample{name: "coalesced", block: 64, words: 4096, ptx: `
		ld.global.u32 %r1, [%xi];
		mul.wide.u32 %d1, %t, 128; add.u64 %d1, %d1, %x;
		ld.u32 %r2, [%d1];
		add.u32 %r1, %r1, %r2;
		st.global.u32 [%yi], %r1;`}
	st := counted(t, s)
	require.Equal(t, uint64(6), st.GlobalRequests)
	require.Equal(t, uint64(2*4+2*32+2*4), st.Sectors)
	require.Equal(t, uint64(6*4), st.SectorsIdeal)
	require.Equal(t, uint64(512), st.GlobalRead)
	require.Equal(t, uint64(256), st.GlobalWritten)
	require.Equal(t, uint64(2), st.Classes["load generic"])
	require.Contains(t, st.String(), "56 superfluous sectors")
}

func TestCounts(t *testing.T) {
	st := counted(t, &sample{name: "counts", block: 64, grid: 3, zero: 192, shared: 256, ptx: `
		mov.f32 %f1, 0f3F800000; fma.rn.f32 %f2, %f1, %f1, %f1; add.rn.f32 %f2, %f2, %f1; neg.f32 %f2, %f2;
		setp.lt.u32 %p1, %l, 7;
		@%p1 bra L;
		mul.rn.f32 %f2, %f2, %f2;
	L:	setp.lt.u32 %p1, %t, 32;
		@%p1 bra M;
		red.global.add.u32 [%y], 1;
	M:	bar.sync 0;
		cvt.rzi.u32.f32 %r1, %f1;
		atom.shared.exch.b32 %r2, [buf], %r1;`})
	require.Equal(t, 3, st.Blocks)
	require.Equal(t, 192, st.Threads)
	require.Equal(t, uint64(192*3+150), st.Flops)
	require.Equal(t, uint64(12), st.Branches)
	require.Equal(t, uint64(6), st.Diverged)
	require.Equal(t, uint64(96+192), st.Atomics)
	require.Equal(t, uint64(6), st.Classes["barrier"])
	require.Equal(t, uint64(3), st.Classes["atomic global"])
	require.Equal(t, uint64(6), st.Classes["conversion"])
	raw, err := json.Marshal(st)
	require.NoError(t, err)
	var back Stats
	require.NoError(t, json.Unmarshal(raw, &back))
	require.Equal(t, *st, back)
	require.Contains(t, string(raw), `"bank_conflicts"`)
	require.Contains(t, st.String(), "3 blocks, 192 threads")
}

// TestCopiesAreCounted looks at ldmatrix and cp.async, and at the flops of a product.
func TestCopiesAreCounted(t *testing.T) {
	st := counted(t, &sample{name: "matrix", block: 32, shared: 4096, ptx: `
		mul.lo.u32 %r1, %t, 16; mov.u32 %r2, buf; add.u32 %r1, %r1, %r2;
		mul.wide.u32 %d1, %t, 16; add.u64 %d1, %d1, %x;
		cp.async.cg.shared.global [%r1], [%d1], 16;
		cp.async.wait_all;
		bar.sync 0;
		ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r1];
		mul.lo.u32 %r3, %t, 128; add.u32 %r3, %r3, %r2;
		ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r8, %r9}, [%r3];
		mov.f32 %f1, 0f00000000;
		mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f4, %f5, %f6, %f7}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, {%f1, %f1, %f1, %f1};
		st.global.f32 [%yi], %f4;`})
	require.Equal(t, uint64(2*16*8*16), st.Flops)
	require.Equal(t, uint64(512), st.GlobalRead)
	require.Equal(t, uint64(512), st.SharedWritten)
	require.Equal(t, uint64(512+256), st.SharedRead)
	require.Equal(t, uint64(3), st.SharedRequests)
	require.Equal(t, uint64(4+4+16), st.Wavefronts) // the last one: rows of 128 bytes begin in the same bank
	require.Equal(t, uint64(14), st.Conflicts)
	require.Equal(t, uint64(16), st.Sectors-4)
}
