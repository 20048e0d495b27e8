package cost

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
)

// TestMemory compares the bank model with counting by definition.
func TestMemory(t *testing.T) {
	rng := ptxtest.Random(t)
	for range 2000 {
		size := []int{1, 2, 4, 8, 16}[rng.IntN(5)]
		mask := rng.Uint32() | rng.Uint32()
		stride, shift := uint64(rng.IntN(70)), uint64(rng.IntN(4))
		var at [32]uint64
		for i := range at {
			at[i] = uint64(size) * (uint64(i)*stride>>shift + uint64(rng.IntN(2))*rng.Uint64N(3))
		}
		worst, sum, ideal := Banks(&at, mask, size)
		group := map[int]int{8: 16, 16: 8}[size]
		if group == 0 {
			group = 32
		}
		want, least, top := 0, 0, 0
		for from := 0; from < 32; from += group {
			banks := [32]map[uint64]bool{}
			most := 0
			for i := from; i < from+group; i++ {
				for b := 0; mask>>i&1 != 0 && b < size; b++ {
					w := (at[i] + uint64(b)) / 4
					if banks[w%32] == nil {
						banks[w%32] = map[uint64]bool{}
					}
					banks[w%32][w] = true
					most = max(most, len(banks[w%32]))
				}
			}
			want += most
			top = max(top, most)
			least += min(most, 1)
		}
		require.Equal(t, want, sum)
		require.Equal(t, top, worst)
		require.Equal(t, least, ideal)

		touched, best := Sectors(&at, mask, size)
		set, bytes := map[uint64]bool{}, map[uint64]bool{}
		for i := range at {
			for b := 0; mask>>i&1 != 0 && b < size; b++ {
				set[(at[i]+uint64(b))/32] = true
				bytes[at[i]+uint64(b)] = true
			}
		}
		require.Equal(t, len(set), touched)
		require.Equal(t, (len(bytes)+31)/32, best)
	}
}

func TestOps(t *testing.T) {
	for _, c := range []struct {
		op   ir.Op
		mods []ir.Mod
		want Ops
	}{
		{"add", []ir.Mod{"f32"}, Ops{Lane: 1}},
		{"add", []ir.Mod{"f16x2"}, Ops{Lane: 2}},
		{"add", []ir.Mod{"s32"}, Ops{}},
		{"fma", []ir.Mod{"rn", "f64"}, Ops{Lane: 2}},
		{"fma", []ir.Mod{"rn", "bf16x2"}, Ops{Lane: 4}},
		{"max", []ir.Mod{"f32"}, Ops{}},
		{"abs", []ir.Mod{"f32"}, Ops{}},
		{"setp", []ir.Mod{"lt", "f32"}, Ops{}},
		{"cvt", []ir.Mod{"rn", "f16", "f32"}, Ops{}},
		{"mma", []ir.Mod{"sync", "aligned", "m16n8k16", "row", "col", "f32", "f16", "f16", "f32"}, Ops{Warp: 2 * 16 * 8 * 16}},
		{"mma", []ir.Mod{"sync", "aligned", "m8n8k4", "row", "col", "f32", "f16", "f16", "f32"}, Ops{Warp: 4 * 2 * 8 * 8 * 4}},
		{"mma", []ir.Mod{"sync", "aligned", "m8n8k4", "row", "col", "f64", "f64", "f64", "f64"}, Ops{Warp: 2 * 8 * 8 * 4}},
		{"mma", []ir.Mod{"sync", "aligned", "m16n8k32", "row", "col", "s32", "s8", "s8", "s32"}, Ops{Warp: 2 * 16 * 8 * 32, Integer: true}},
		{"wgmma.mma_async", []ir.Mod{"sync", "aligned", "m64n8k16", "f32", "f16", "f16"}, Ops{Warp: 2 * 16 * 8 * 16}},
		{"ldmatrix", []ir.Mod{"sync", "aligned", "m8n8", "x4", "shared", "b16"}, Ops{}},
	} {
		require.Equal(t, c.want, OpsOf(&ir.Instr{Op: c.op, Mods: c.mods}), "%s %v", c.op, c.mods)
	}
}
