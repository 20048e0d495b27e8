//go:build !js

package gpu

import (
	"testing"

	"github.com/wavelane/wavelane/wgsl"
)

// FuzzShaderText: whatever the text, sizes are computed or refused.
func FuzzShaderText(f *testing.F) {
	f.Add("alias T = array<S, 3>; struct S { a: f32, @align(32) b: vec3<f32>, @size(8) c: u32 } var<workgroup> w: T;")
	f.Add("override n: u32 = 7; var<workgroup> w: array<f32, (n + 1u) * 4 >> 1,>; @compute @workgroup_size(n, 2) fn main() {}")
	f.Add("struct S { a: atomic<u32> } var<workgroup> w: array<S, 2>; @compute @workgroup_size(2) fn main(@builtin(num_workgroups) n: vec3u) { w[0].a; }")
	f.Add("var<workgroup> w: array<mat4x3<f16>, 1 << 3>; /* /* */ */ // x\n")
	f.Fuzz(func(t *testing.T, source string) {
		k := &wgsl.Kernel{Source: source}
		_, _ = checkText(k, &wgsl.DefaultCaps)
		s := parseShader(source)
		if n, err := s.workgroupMemory(); err == nil && n%16 != 0 && n <= maxWord {
			t.Fatalf("%d bytes", n)
		}
		_, _ = s.zeroed(source, "main")
	})
}
