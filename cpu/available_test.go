package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
)

// TestSystemMemory: what the system does not have is an error, and blocks kept for reuse are given back before.
func TestSystemMemory(t *testing.T) {
	require.NotZero(t, available())
	m := newMemory(0)
	b, err := m.Take(checkedSize)
	require.NoError(t, err)
	b.release()
	require.NotZero(t, m.figures().Cached)
	m.available = func() uint64 { return checkedSize }
	_, err = m.Take(2 * checkedSize)
	require.ErrorIs(t, err, compute.ErrOutOfMemory)
	require.Zero(t, m.figures().Cached)
	_, err = newMemory(0).Take(1 << 50)
	require.ErrorIs(t, err, compute.ErrOutOfMemory)
}
