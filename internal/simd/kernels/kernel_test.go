package kernels

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// kernel is what tests know of a kernel. The table of all is generated.
type kernel struct {
	name          string
	inputs        int
	params        int
	accumulators  int
	store         bool // writes y
	guard         bool // stops at some elements, which the portable fallback then computes
	lanes         bool // hands out accumulators lane by lane instead of returning them
	run, portable func(c *call)
}

// search says that where the guard stops is the result.
func (k *kernel) search() bool { return k.guard && !k.store && k.accumulators == 0 }

// call is the operands and results of one call.
type call struct {
	y     []float32
	in    [3][]float32
	p     [2]float32
	out   [1]float32         // accumulators
	lanes [2 * Lanes]float32 // likewise, by lane
	n     int                // of a search
}

// eachKernel runs f for every kernel on every tier with assembly, the kernels of a tier side by side.
func eachKernel(t *testing.T, f func(t *testing.T, k *kernel)) {
	before := Active()
	defer func() { require.NoError(t, SetTier(before)) }()
	require.NotEmpty(t, table)
	for _, tier := range Available() {
		if tier == Scalar && expected() != Scalar {
			continue // the portable fallbacks, with which the others are compared
		}
		require.NoError(t, SetTier(tier))
		t.Run(tier.String(), func(t *testing.T) {
			for i := range table {
				k := &table[i]
				t.Run(k.name, func(t *testing.T) {
					t.Parallel()
					f(t, k)
				})
			}
		})
	}
}
