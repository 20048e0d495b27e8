//go:build !js

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cuda"
)

func TestRun(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, 200, cuda.WithSoftware(), cuda.WithoutCache()))
	require.Contains(t, out.String(), "2 replays of a graph of 100; the same bits")
	require.Error(t, run(t.Context(), &out, 150))
}
