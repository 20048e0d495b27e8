package gpu

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
)

func TestWorkgroupMemory(t *testing.T) {
	for text, want := range map[string]uint64{
		"":                              0,
		"var<storage> w: array<f32>;":   0,
		"var<workgroup> w: f32;":        16,
		"var < workgroup > w : vec3f ;": 16,
		"var<workgroup> w: array<vec3<f32>, 10>; // var<workgroup> c: array<f32, 100>;":                             160,
		"/* var<workgroup> a: /* */ f32; */ var<workgroup> w: atomic<u32>;":                                         16,
		"var<workgroup> a: f32; var<workgroup> b: array<u32, 5>;":                                                   48,
		"var<workgroup> w: array<array<f16, 3>, 4>;":                                                                32,
		"var<workgroup> w: mat4x3<f32>;":                                                                            64,
		"var<workgroup> w: mat3x2h;":                                                                                16,
		"const n = m * 2u; const m: u32 = 0x10u; var<workgroup> w: array<f32, n>;":                                  128,
		"override n: u32 = 7; var<workgroup> w: array<f32, (n + 1u) * 4,>;":                                         128,
		"var<workgroup> w: array<f32, 1 << 4>;":                                                                     64,
		"var<workgroup> w: array<f32, (64 >> 2) - 8 % 3>;":                                                          64,
		"alias T = array<S, 3>; struct S { a: f32, @align(32) b: vec3<f32>, @size(8) c: u32 } var<workgroup> w: T;": 192,
		"struct f32 { a: array<u32, 64> } var<workgroup> w: f32;":                                                   256,
		"var<workgroup> w: array<f32, u32(8) | 0xf & 3>;":                                                           48,
		"var<workgroup> w: array<array<f32, 4000000000>, 4000000000>;":                                              1 << 32,
	} {
		got, err := parseShader(text).workgroupMemory()
		require.NoError(t, err, text)
		if want < 1<<32 {
			require.Equal(t, want, got, text)
		} else {
			require.GreaterOrEqual(t, got, want, text)
		}
	}
	for _, text := range []string{
		"var<workgroup> w: array<f32, n>;", "const n = n; var<workgroup> w: array<f32, n>;", "alias T = array<T, 2>; var<workgroup> w: T;",
		"var<workgroup> w: array<f32, 0>;", "var<workgroup> w: array<f32, 1.5>;", "var<workgroup> w: array<f32, -1 >> 1>;",
		"var<workgroup> w: array<f32, countOneBits(7)>;", "var<workgroup> w", "var<workgroup> w: array<f32>;", "var<workgroup> w: array<f32, 4u - 5u>;",
		"override n: u32; var<workgroup> w: array<f32, n>;", "var<workgroup> w: array<f32, 1 / 0>;", "var<workgroup> w: array<f32, 010>;",
		"alias a = array<b, 2>; struct b { x: c, y: c } var<workgroup> w: a;",
	} {
		_, err := parseShader(text).workgroupMemory()
		require.ErrorIs(t, err, compute.ErrUnsupported, text)
	}
	// A type with a size exponential in the length of the text takes no long time.
	var text strings.Builder
	text.WriteString("var<workgroup> w: s0;")
	for i := range 60 {
		text.WriteString(strings.ReplaceAll(strings.ReplaceAll("struct sA { x: sB, y: sB }", "A", string(rune('0'+i))), "B", string(rune('1'+i))))
	}
	_, err := parseShader(text.String()).workgroupMemory()
	require.Error(t, err)
}
