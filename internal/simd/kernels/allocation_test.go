package kernels

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNothingIsAllocated(t *testing.T) {
	before := Active()
	defer func() { require.NoError(t, SetTier(before)) }()
	for _, tier := range Available() {
		require.NoError(t, SetTier(tier))
		for i := range table {
			k := &table[i]
			c := newTrial(t, k, random(t), 1000, salted).want
			require.Zero(t, testing.AllocsPerRun(10, func() { k.run(&c) }), "%s on %s", k.name, tier)
		}
	}
}
