package cuda_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda"
)

// TestForeign has a function that is not the package's called within a recording: with the stream, and its error kept.
func TestForeign(t *testing.T) {
	d, err := cuda.Open(t.Context(), cuda.WithSoftware(), cuda.WithoutCache())
	require.NoError(t, err)
	defer d.Close()
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	defer s.Close()
	var first uintptr
	for _, fail := range []error{nil, errors.New("on purpose")} {
		r, err := s.Begin()
		require.NoError(t, err)
		require.ErrorIs(t, cuda.Foreign(r, nil), compute.ErrArgument)
		calls := 0
		err = cuda.Foreign(r, func(stream uintptr) error {
			calls++
			require.NotZero(t, stream)
			if first == 0 {
				first = stream
			}
			require.Equal(t, first, stream)
			return fail
		})
		require.ErrorIs(t, err, fail)
		require.Equal(t, 1, calls)
		x, err := r.Submit()
		require.ErrorIs(t, err, fail)
		if err == nil {
			_, err = x.Wait(t.Context())
			require.NoError(t, err)
		}
		require.ErrorIs(t, cuda.Foreign(r, func(uintptr) error { return nil }), compute.ErrClosed)
	}
	require.ErrorIs(t, cuda.Foreign(nil, func(uintptr) error { return nil }), compute.ErrArgument)
}
