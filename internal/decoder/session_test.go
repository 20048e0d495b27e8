//go:build !js

package decoder

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
)

func TestSession(t *testing.T) {
	dev := device(t, "cpu")
	f := opened(t, smallLlama)
	var progress []int64
	w := loaded(t, f, dev, LoadOptions{Progress: func(done, total int64) { progress = append(progress, done, total) }})
	require.Len(t, progress, 2*len(f.Tensors()))
	require.Equal(t, progress[len(progress)-1], progress[len(progress)-2])

	for _, o := range []SessionOptions{{Context: -1}, {Chunk: -1}, {Output: Output{TopK: -1}}} {
		_, err := w.NewSession(t.Context(), o)
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	s, err := w.NewSession(t.Context(), SessionOptions{Context: 8, Chunk: 4, Output: Output{TopK: 5}})
	require.NoError(t, err)
	for _, tokens := range [][]int32{{}, {-1}, {0, 320}} {
		_, err = s.Feed(t.Context(), tokens...)
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	_, err = s.Feed(t.Context(), make([]int32, 9)...)
	require.ErrorIs(t, err, compute.ErrTooLarge)
	require.Zero(t, s.Position())
	n, err := s.Feed(t.Context(), 1, 2, 3, 4, 5, 6)
	require.NoError(t, err)
	require.Len(t, n.Indices, 5)
	require.IsDecreasing(t, n.Logits)
	require.Equal(t, 2, s.Room())
	_, err = s.Feed(t.Context(), 7, 8)
	require.NoError(t, err)
	_, err = s.Feed(t.Context(), 9)
	require.ErrorIs(t, err, compute.ErrTooLarge)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	_, err = s.Feed(t.Context(), 1)
	require.ErrorIs(t, err, compute.ErrClosed)

	// More tokens than there are is all of them.
	s, err = w.NewSession(t.Context(), SessionOptions{Output: Output{TopK: 1000}})
	require.NoError(t, err)
	defer s.Close()
	n, err = s.Feed(t.Context(), 1)
	require.NoError(t, err)
	require.Len(t, n.Indices, 320)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = w.Model.Load(cancelled, dev, LoadOptions{})
	require.ErrorIs(t, err, context.Canceled)

	_, err = w.Map(t.Context(), dev, 1, LoadOptions{}, SessionOptions{})
	require.ErrorIs(t, err, compute.ErrUnsupported, "the CPU tells no launches")
}
