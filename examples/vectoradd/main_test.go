//go:build !js

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cuda"
)

func TestRun(t *testing.T) {
	for _, n := range []int{1, 257, 10_000} {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), &out, n, true, cuda.WithSoftware(cuda.SoftwareOptions{Checked: true}), cuda.WithoutCache()))
		require.Contains(t, out.String(), ".visible .entry add(")
		require.Contains(t, out.String(), " sums, all right, in ")
	}
	require.Error(t, run(t.Context(), &bytes.Buffer{}, 0, false))
}
