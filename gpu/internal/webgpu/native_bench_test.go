//go:build ((linux && !android) || darwin || windows) && (amd64 || arm64)

package webgpu

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/gpu/internal/wgpu"
	"github.com/wavelane/wavelane/internal/monotime"
	"github.com/wavelane/wavelane/wgsl"
)

// BenchmarkRecord records command buffers of 250 dispatches, of which none is submitted, in turns by the library that is linked and by the one
// that is loaded. It reports the least and the median time of a dispatch.
func BenchmarkRecord(b *testing.B) {
	const n = 250
	libraries := []string{wgpu.LinkedName, filepath.Join("..", "..", "..", "out", "wgpu", "29", wgpu.FileName)}
	times := make([][]float64, len(libraries))
	var record []func()
	for i, l := range libraries {
		d := openSoftware(b, l).(*native)
		p, err := d.NewPipeline(&wgsl.Kernel{Key: "copy", Entry: "main", Bindings: []wgsl.Access{wgsl.Read, wgsl.ReadWrite}, Uniform: 16,
			Workgroup: [3]uint32{64, 1, 1}, Source: `
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> n: vec4<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { if id.x < n.x { y[id.x] = x[id.x]; } }`})
		require.NoError(b, err)
		defer p.Free()
		var bind []Binding
		for _, kind := range []BufferKind{StorageBuffer, StorageBuffer, UniformBuffer} {
			buffer, err := d.NewBuffer(kind, 1024)
			require.NoError(b, err)
			defer buffer.Free()
			bind = append(bind, Binding{buffer, 0, 1024})
		}
		bind[2].Size = 16
		g, err := d.NewGroup(p, bind)
		require.NoError(b, err)
		defer g.Free()
		commands := make([]Command, n)
		for i := range commands {
			commands[i] = Command{Pipeline: p, Group: g, Dynamic: uint32(i % 4 * 256), Grid: [3]uint32{1, 1, 1}}
		}
		record = append(record, func() {
			c := d.begin()
			defer c.End()
			stamp := uint32(0)
			start := monotime.Now()
			buffer := d.commandBuffer(c, &pending{}, commands, &stamp, true, true)
			times[i] = append(times[i], float64(monotime.Since(start))/n)
			require.False(b, c.Failed())
			c.Call(d.l.CommandBufferRelease, buffer)
		})
	}
	for b.Loop() {
		for _, f := range record {
			f()
		}
	}
	for i, name := range []string{"linked", "loaded"} {
		slices.Sort(times[i])
		b.ReportMetric(times[i][0], name+"-min-ns/dispatch")
		b.ReportMetric(times[i][len(times[i])/2], name+"-median-ns/dispatch")
	}
}
