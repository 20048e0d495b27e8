package mbarrier

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPhases(t *testing.T) {
	_, err := New(0)
	require.ErrorContains(t, err, "count 0")
	_, err = New(1 << 20)
	require.Error(t, err)
	b, err := New(3)
	require.NoError(t, err)
	start := b.Token()
	require.True(t, b.PassedParity(1), "the phase before the first counts as over")
	require.False(t, b.PassedParity(0))
	for i := range 3 {
		done, err := b.Arrive(1, false)
		require.NoError(t, err)
		require.Equal(t, i == 2, done)
	}
	require.True(t, b.PassedParity(0))
	require.False(t, b.PassedParity(1))
	over, err := b.Passed(start)
	require.NoError(t, err)
	require.True(t, over)
	over, err = b.Passed(b.Token())
	require.NoError(t, err)
	require.False(t, over)
	_, err = b.Arrive(3, true)
	require.NoError(t, err)
	_, err = b.Passed(start)
	require.ErrorContains(t, err, "only the current phase and the one before")
	require.Zero(t, b.expected, "all dropped")
	_, err = b.Arrive(1, false)
	require.ErrorContains(t, err, "beyond its count")
}

func TestDrop(t *testing.T) {
	b, _ := New(4)
	_, err := b.Arrive(1, true)
	require.NoError(t, err)
	done, err := b.Arrive(3, false)
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, 3, b.pending)
	_, err = b.Arrive(4, false)
	require.ErrorContains(t, err, "beyond its count")
	_, err = b.Arrive(0, false)
	require.ErrorContains(t, err, "count 0")
}

func TestBytes(t *testing.T) {
	b, _ := New(1)
	_, err := b.Complete(100) // before its announcement: allowed while an arrival is pending
	require.NoError(t, err)
	_, err = b.Expect(300)
	require.NoError(t, err)
	done, err := b.Arrive(1, false)
	require.NoError(t, err)
	require.False(t, done)
	done, err = b.Complete(200)
	require.NoError(t, err)
	require.True(t, done)

	_, err = b.Complete(16)
	require.NoError(t, err)
	_, err = b.Arrive(1, false)
	require.ErrorContains(t, err, "16 bytes more have come than expect_tx announced")

	b, _ = New(1)
	_, err = b.Expect(maxTx)
	require.NoError(t, err)
	_, err = b.Expect(1)
	require.ErrorContains(t, err, "limit")
	b, _ = New(1)
	_, err = b.Complete(maxTx + 1)
	require.ErrorContains(t, err, "limit")
}
