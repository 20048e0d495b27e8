//go:build !js

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane"
)

func TestRun(t *testing.T) {
	for _, opts := range [][]wavelane.Option{{wavelane.WithDevice("cpu")}, {wavelane.WithSoftware()}} {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), &out, 3, opts...)) // it checks its results itself
		require.Contains(t, out.String(), "3 passes of 64 rows")
	}
	require.Error(t, run(t.Context(), &bytes.Buffer{}, 0))
}
