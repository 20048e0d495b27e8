// Package simdtest runs tests on every instruction set of the machine.
package simdtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// OnEveryTier runs a test on each instruction set of this machine. Under the race detector, which does not see what assembly does,
// it runs the portable kernels alone.
func OnEveryTier(t *testing.T, f func(t *testing.T)) {
	was := kernels.Active()
	defer func() { require.NoError(t, kernels.SetTier(was)) }()
	for _, tier := range kernels.Available() {
		if Racing && tier != kernels.Scalar {
			continue
		}
		require.NoError(t, kernels.SetTier(tier))
		t.Run(tier.String(), f)
	}
}

// SplitEarly makes functions on slices use several threads for little work, until the function that it returns is called.
func SplitEarly() (restore func()) {
	split, part := engine.SplitTime, engine.PartTime
	engine.SplitTime, engine.PartTime = 0, 0
	return func() { engine.SplitTime, engine.PartTime = split, part }
}
