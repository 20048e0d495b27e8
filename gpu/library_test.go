//go:build !js

package gpu

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/wgpu"
)

// A library that is asked for and is not there is an error, whatever else there is.
func TestWithoutLibrary(t *testing.T) {
	missing := filepath.Join(t.TempDir(), wgpu.FileName)
	_, err := Open(ctx, WithSoftware(), WithLibrary(missing))
	require.ErrorIs(t, err, compute.ErrUnavailable)
	require.ErrorContains(t, err, missing)
	t.Setenv(wgpu.Environment, missing)
	_, err = Open(ctx, WithSoftware())
	require.ErrorIs(t, err, compute.ErrUnavailable)
	require.ErrorIs(t, Available(ctx), compute.ErrUnavailable)
	_, err = Adapters(ctx)
	require.ErrorIs(t, err, compute.ErrUnavailable)
	require.ErrorContains(t, err, missing)
}
