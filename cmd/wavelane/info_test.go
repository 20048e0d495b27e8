//go:build !js

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSize(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0 bytes", 1023: "1023 bytes", 1536: "1.5 KiB", 32 << 20: "32 MiB", 1 << 37: "128 GiB", 1<<64 - 1: "unlimited", 1 << 62: "unlimited",
	} {
		require.Equal(t, want, size(n), n)
	}
}
