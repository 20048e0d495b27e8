package kernels

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzKernels reads from its input which kernel to run on which tier, where operands lie, parameters and elements, and
// compares with the portable fallback.
func FuzzKernels(f *testing.F) {
	for i := range table {
		for tier := range Available() {
			f.Add([]byte{byte(i), byte(tier), 70, 1, 2, 3, 4, byte(i % 3), 1, 0, 0, 0x80, 0x3f, 0, 0, 0xc0, 0x7f, 1, 2, 3, 4})
		}
	}
	before := Active()
	f.Cleanup(func() { require.NoError(f, SetTier(before)) })
	f.Fuzz(func(t *testing.T, data []byte) {
		next := func() int {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return int(b)
		}
		number := func(i int) float32 { // the input's rest, again and again
			if len(data) < 4 {
				return float32(i)
			}
			return math.Float32frombits(binary.LittleEndian.Uint32(data[4*i%(len(data)-3):]))
		}
		tr := &trial{k: &table[next()%len(table)]}
		tr.s = specOf(t, tr.k)
		tier := available[next()%len(available)]
		require.NoError(t, SetTier(tier))
		tr.n = 3 * next()
		p := place{offsets: [4]int{next() % 16, next() % 16, next() % 16, next() % 16}}
		if over := next() % 4; tr.k.store && over <= tr.k.inputs {
			p.over, p.by = over, next()
		}
		for i := range tr.p {
			tr.p[i] = number(i)
		}
		for j := range tr.k.inputs {
			tr.x[j] = make([]float32, tr.n)
			for i := range tr.x[j] {
				tr.x[j][i] = number(2 + i + j*tr.n)
			}
		}
		tr.expect()
		tr.run(t, p)
	})
}
