//go:build ((linux && !android) || darwin || windows) && (amd64 || arm64)

package webgpu

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/wgsl"
)

// Whatever the compiler prints, it becomes an error, and its position is inside what was printed.
func FuzzShaderError(f *testing.F) {
	f.Add("Validation Error\n\nCaused by:\n  Shader 'x' parsing error: expected `;`, found \"}\"\n  ┌─ wgsl:3:5\n  │\n")
	f.Add("In wgpuDeviceCreateComputePipeline\n  note: label = `x`\n  Workgroup size is out of range\n")
	f.Add("┌─ :99999999999999999999:1\n")
	f.Fuzz(func(t *testing.T, report string) {
		e := newShaderError(&wgsl.Kernel{Key: "k#1"}, report)
		require.Equal(t, "k", e.Label)
		require.GreaterOrEqual(t, e.Line, 0)
		require.GreaterOrEqual(t, e.Column, 0)
		require.True(t, strings.HasPrefix(e.Error(), "kernel k: "))
	})
}
