package tensorcore

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The formulas that the PTX ISA prints below its figures, literally.
func TestFragmentsAsTheManualSays(t *testing.T) {
	for lane := range 32 {
		groupID, threadID := lane>>2, lane%4
		check := func(name string, row, col, wantRow, wantCol int) {
			require.Equal(t, [2]int{wantRow, wantCol}, [2]int{row, col}, "%s lane %d", name, lane)
		}
		pick := func(first bool, a, b int) int {
			if first {
				return a
			}
			return b
		}
		for i := range 4 { // m16n8k8 of f16 and bf16
			row, col := FragmentA(16, 2, lane, i/2, i%2)
			check("m16n8k8 A", row, col, pick(i < 2, groupID, groupID+8), threadID*2+i&1)
		}
		for i := range 2 {
			row, col := FragmentB(2, lane, 0, i)
			check("m16n8k8 B", row, col, threadID*2+i, groupID)
		}
		for i := range 8 { // m16n8k16 of f16 and bf16
			row, col := FragmentA(16, 2, lane, i/2, i%2)
			check("m16n8k16 A", row, col, pick(i < 2 || i >= 4 && i < 6, groupID, groupID+8),
				pick(i < 4, threadID*2+i&1, threadID*2+i&1+8))
		}
		for i := range 4 {
			row, col := FragmentB(2, lane, i/2, i%2)
			check("m16n8k16 B", row, col, pick(i < 2, threadID*2+i&1, threadID*2+i&1+8), groupID)
			row, col = FragmentC(lane, i)
			check("C", row, col, pick(i < 2, groupID, groupID+8), threadID*2+i&1)
			row, col = FragmentA(16, 1, lane, i, 0) // m16n8k8 of tf32; the first two are m16n8k4
			check("tf32 A", row, col, pick(i%2 == 0, groupID, groupID+8), pick(i < 2, threadID, threadID+4))
		}
		for i := range 2 {
			row, col := FragmentB(1, lane, i, 0)
			check("tf32 B", row, col, pick(i == 0, threadID, threadID+4), groupID)
		}
		for i := range 16 { // m16n8k32 of 8 bits; the first eight are m16n8k16
			row, col := FragmentA(16, 4, lane, i/4, i%4)
			check("m16n8k32 A", row, col, pick(i < 4 || i >= 8 && i < 12, groupID, groupID+8),
				pick(i < 8, threadID*4+i&3, threadID*4+i&3+16))
		}
		for i := range 8 {
			row, col := FragmentB(4, lane, i/4, i%4)
			check("m16n8k32 B", row, col, pick(i < 4, threadID*4+i&3, threadID*4+i&3+16), groupID)
		}
		for i := range 32 { // m16n8k64 of 4 bits
			row, col := FragmentA(16, 8, lane, i/8, i%8)
			check("m16n8k64 A", row, col, pick(i < 8 || i >= 16 && i < 24, groupID, groupID+8),
				pick(i < 16, threadID*8+i&7, threadID*8+i&7+32))
		}
		row, col := FragmentA(8, 1, lane, 0, 0) // m8n8k4 of f64
		check("f64 A", row, col, groupID, threadID)
		for i := range 8 { // m16n8k16 of f64
			row, col = FragmentA(16, 1, lane, i, 0)
			check("f64 A k16", row, col, pick(i%2 == 0, groupID, groupID+8), i/2*4+threadID)
		}
		for n := range 256 { // wgmma, accumulators of f32: rows of the warp, then pairs every 8 columns
			thread := 32*2 + lane
			row, col = WgmmaAccumulator(thread, n)
			check("wgmma D", row, col, 32+groupID+8*(n/2%2), n/4*8+threadID*2+n%2)
		}
	}
}

// Each element of each matrix has exactly one place.
func TestFragmentsCover(t *testing.T) {
	for _, per := range []int{1, 2, 4, 8, 32} {
		for _, m := range []int{8, 16} {
			for _, units := range []int{4, 8, 16} {
				seen := map[[2]int]bool{}
				for lane := range 32 {
					for reg := range m / 8 * units / 4 {
						for e := range per {
							row, k := FragmentA(m, per, lane, reg, e)
							require.True(t, row < m && k < units*per)
							seen[[2]int{row, k}] = true
						}
					}
				}
				require.Len(t, seen, m*units*per)
			}
		}
	}
	seen := map[[2]int]bool{}
	for row := range 8 {
		for col := range 8 {
			lane, half := LdmatrixElement(row, col)
			seen[[2]int{lane, half}] = true
			r, c := FragmentC(lane, half)
			require.Equal(t, [2]int{row, col}, [2]int{r, c}) // a matrix loaded by ldmatrix is a tile of C, and of A
		}
	}
	require.Len(t, seen, 64)
}
