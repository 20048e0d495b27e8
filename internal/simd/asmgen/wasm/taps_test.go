package wasm

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTaps puts each of the operands at the end of the memory in turns.
func TestTaps(t *testing.T) {
	code, _, err := build(nil)
	require.NoError(t, err)
	m := newMachine(t, code, 1)
	r := random(t)
	for n := 1; n < 60; n++ {
		for last := range 2 {
			rows, taps := 1+r.IntN(3), 1+r.IntN(12)
			ystep, xstep, spread := n+r.IntN(4), r.IntN(20), 1+r.IntN(30)
			x, w := values(r, (rows-1)*xstep+spread+n), values(r, taps)
			offsets := make([]int, taps)
			for p := range offsets {
				offsets[p] = r.IntN(spread + 1)
			}
			offsets[taps-1] = spread // the last element is read
			y := values(r, (rows-1)*ystep+n)
			want := append([]float32(nil), y...)
			for i := range rows {
				for j := range n {
					sum := float32(0)
					for p, at := range offsets {
						sum += float32(w[p] * x[i*xstep+at+j])
					}
					want[i*ystep+j] = sum
				}
			}
			m.fill()
			atY, atX := int(m.mem.Size())-4*len(y), 4096
			if last == 1 {
				atY, atX = 4096, int(m.mem.Size())-4*len(x)
			}
			const atW, atOffsets = 2048, 3072
			m.write(atY, y)
			m.write(atX, x)
			m.write(atW, w)
			for p, o := range offsets {
				binary.LittleEndian.PutUint32(m.slice(atOffsets+4*p, 4), uint32(o))
			}
			before := append([]byte(nil), m.slice(0, int(m.mem.Size()))...)
			m.call(runTaps, 0, []int{atY, atX, atW, atOffsets}, nil, n, rows, ystep, xstep, taps)
			requireSame(t, want, m.read(atY, len(y)), "%d elements in %d rows, %d taps", n, rows, taps)
			copy(before[atY:], m.slice(atY, 4*len(y)))
			const box = boxAt + boxSize
			require.Equal(t, before[box:], m.slice(box, len(before)-box), "writes elsewhere")
		}
	}
}
