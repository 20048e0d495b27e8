package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMbarrierPhases(t *testing.T) {
	_, err := newMbarrier(0)
	require.ErrorContains(t, err, "count 0")
	_, err = newMbarrier(1 << 20)
	require.Error(t, err)
	b, err := newMbarrier(3)
	require.NoError(t, err)
	start := b.token(b.pending)
	require.True(t, b.passedParity(1), "the phase before the first counts as over")
	require.False(t, b.passedParity(0))
	for i := range 3 {
		done, err := b.arrive(1, false)
		require.NoError(t, err)
		require.Equal(t, i == 2, done)
	}
	require.True(t, b.passedParity(0))
	require.False(t, b.passedParity(1))
	over, err := b.passed(start)
	require.NoError(t, err)
	require.True(t, over)
	over, err = b.passed(b.token(0))
	require.NoError(t, err)
	require.False(t, over)
	_, err = b.arrive(3, true)
	require.NoError(t, err)
	_, err = b.passed(start)
	require.ErrorContains(t, err, "only the current phase and the one before")
	require.Zero(t, b.expected, "all dropped")
	_, err = b.arrive(1, false)
	require.ErrorContains(t, err, "beyond its count")
}

func TestMbarrierDrop(t *testing.T) {
	b, _ := newMbarrier(4)
	_, err := b.arrive(1, true)
	require.NoError(t, err)
	done, err := b.arrive(3, false)
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, 3, b.pending)
	_, err = b.arrive(4, false)
	require.ErrorContains(t, err, "beyond its count")
	_, err = b.arrive(0, false)
	require.ErrorContains(t, err, "count 0")
}

func TestMbarrierBytes(t *testing.T) {
	b, _ := newMbarrier(1)
	_, err := b.complete(100) // before its announcement: allowed while an arrival is pending
	require.NoError(t, err)
	_, err = b.expect(300)
	require.NoError(t, err)
	done, err := b.arrive(1, false)
	require.NoError(t, err)
	require.False(t, done)
	done, err = b.complete(200)
	require.NoError(t, err)
	require.True(t, done)

	_, err = b.complete(16)
	require.NoError(t, err)
	_, err = b.arrive(1, false)
	require.ErrorContains(t, err, "16 bytes more have come than expect_tx announced")

	b, _ = newMbarrier(1)
	_, err = b.expect(maxTx)
	require.NoError(t, err)
	_, err = b.expect(1)
	require.ErrorContains(t, err, "limit")
	b, _ = newMbarrier(1)
	_, err = b.complete(maxTx + 1)
	require.ErrorContains(t, err, "limit")
}
