package kernels

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every kernel on every tier, in L1, in L2 and in memory. MB/s counts what is read and what is stored.
func BenchmarkKernels(b *testing.B) {
	before := Active()
	defer func() { require.NoError(b, SetTier(before)) }()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range table {
		k := &table[i]
		s := specOf(b, k)
		for _, tier := range Available() {
			for _, n := range []int{64, 1 << 10, 16 << 10, 1 << 20} {
				b.Run(fmt.Sprintf("%s/%s/%d", k.name, tier, n), func(b *testing.B) {
					require.NoError(b, SetTier(tier))
					var c call
					slices := k.inputs
					for j := range k.inputs {
						c.in[j] = newField(n)[margin:][:n]
						fill(r, c.in[j], ordinary, max(s.low, -20), min(s.high, 20)) // no denormal results, which are slow
					}
					if s.params != nil {
						c.p = s.params(r)
					}
					if k.name == "Find" {
						c.p[0] = s.high + 1 // not there
					}
					if k.store {
						c.y = newField(n)[margin:][:n]
						slices++
					}
					b.SetBytes(int64(4 * n * slices))
					for b.Loop() {
						k.run(&c)
					}
				})
			}
		}
	}
}
