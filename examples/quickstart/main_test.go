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
		require.NoError(t, run(t.Context(), &out, opts...))
		require.Contains(t, out.String(), "a·b = [4 5 10 11]\nsoftmax(½·relu(x)) = [0.333 0.333 0.333 0.186 0.307 0.506]\n")
	}
}
