//go:build !js

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/internal/testseed"
)

// run checks its results itself.
func TestRun(t *testing.T) {
	points, values := 70_000, 1_000_000
	if testseed.Whole() {
		points, values = 1_000_000, 10_000_000
	}
	for name, opts := range map[string][]wavelane.Option{"cpu": {wavelane.WithDevice("cpu")}, "webgpu": {wavelane.WithSoftware()}} {
		t.Run(name, func(t *testing.T) {
			dev, err := wavelane.Open(t.Context(), append(opts, wavelane.WithoutRouting())...)
			require.NoError(t, err)
			defer dev.Close()
			var out bytes.Buffer
			require.NoError(t, run(t.Context(), &out, dev, points, values))
			t.Logf("%s\n%s", dev.Explain(), &out)
		})
	}
	t.Run("cuda", func(t *testing.T) {
		dev, err := cuda.Open(t.Context(), cuda.WithSoftware(), cuda.WithCache(t.TempDir()))
		require.NoError(t, err)
		defer dev.Close()
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), &out, dev, 70_000, 1_000_000))
		t.Log(&out)
	})
}
