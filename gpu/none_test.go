//go:build !cgo && !js

package gpu

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
)

// Builds without cgo say so.
func TestWithoutCgo(t *testing.T) {
	ctx := context.Background()
	_, err := Open(ctx)
	require.ErrorIs(t, err, compute.ErrUnavailable)
	require.ErrorContains(t, err, "CGO_ENABLED=1")
	require.ErrorIs(t, Available(ctx), compute.ErrUnavailable)
	_, err = Adapters(ctx)
	require.ErrorIs(t, err, compute.ErrUnavailable)
}
