package gpu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/wgsl"
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

// What a thread would hold in variables and values is bounded; buffers of any size are not.
func TestThreadMemory(t *testing.T) {
	large := "struct Big { n: u32, a: array<f32, 100000>, s: array<array<f32, 8>, 5000>, } alias A = array<f32, 1 << 20>; " +
		"@group(0) @binding(0) var<storage, read_write> y: Big; @group(0) @binding(1) var<storage> x: A; @group(0) @binding(2) var<storage> z: array<Big>; "
	check := func(text string) error {
		_, err := checkText(&wgsl.Kernel{Source: text}, &wgsl.DefaultCaps)
		return err
	}
	for _, text := range []string{
		"var<private> p: array<f32, 2048>;",
		"const n = 4; fn f() { const m = n * 2; var a: array<f32, m>; var<function> b = array<vec4<f32>, 100>(); let c = array(1, 2); }",
		large + "fn f(i: u32) -> f32 { y.a[i] = x[2 * i + y.n]; let row = y.s[i]; return row[1] + z[i].a[3] + z[y.n].s[i][2]; }",
		large + "fn f(p: ptr<storage, Big>) -> u32 { return arrayLength(&z) + p.n; }",
		"struct S { x: array<f32>, } @group(0) @binding(0) var<storage> s: S; fn f() -> f32 { return s.x[arrayLength(&s.x) - 1]; }",
	} {
		require.NoError(t, check(text), text)
	}
	for _, text := range []string{
		"var<private> p: array<f32, 2049>;",
		"var<private> p: array<f32, 1500>; var<private> q: array<f32, 1500>;",
		"var<private> p = array<f32, 100000000>();",
		"fn f() { var a: array<array<f32, 1000>, 1000>; }",
		"fn f() { var<function> a: array<f32, 1500>; if true { var b: array<f32, 1500>; } }",
		"override n = 4096; fn f() { let a = array<f32, n>(); }",
		"fn f() { const n = 1 << 20; var a: array<f32, n>; }",
		large + "fn f(v: A) {}", large + "fn f() -> Big { return z[0]; }",
		large + "fn f() { let v = y; }", large + "fn f() { let v = y.a; }", large + "fn f() { x = x; }", large + "fn f() { let v = z[1]; }",
		large + "fn f() { let p = &y.a; let v = *p; }",
	} {
		require.ErrorIs(t, check(text), compute.ErrTooLarge, text)
	}
	for _, text := range []string{
		"var<private> p: array<f32, m>;", "fn f() { var a: array<f32, unheard>; }",
		"fn f() { const n = 1; { const n = 1 << 20; var a: array<f32, n>; } }",
	} {
		require.ErrorIs(t, check(text), compute.ErrUnsupported, text)
	}
}

// Drivers inline every call, so that calls of calls can be exponential in the length of the text.
func TestInlinedCalls(t *testing.T) {
	tree := func(depth int) string {
		var b strings.Builder
		b.WriteString("fn f0(x: f32) -> f32 { return fract(x); }")
		for i := range depth {
			b.WriteString(fmt.Sprintf("fn f%d(x: f32) -> f32 { return f%d(x) + f%d(x + 1.0); }", i+1, i, i))
		}
		return b.String()
	}
	require.NoError(t, parseShader(tree(10)).checkCalls())
	for _, depth := range []int{20, 60, 1000} {
		require.ErrorIs(t, parseShader(tree(depth)).checkCalls(), compute.ErrTooLarge, depth)
	}
	require.NoError(t, parseShader("fn a() { b(); } fn b() { a(); }").checkCalls(), "recursion is for the compiler to refuse")
}

// What is bound has at least the bytes of the variable's type.
func TestBindingSizes(t *testing.T) {
	got := parseShader(`struct S { a: array<f32, 64>, b: f32 } struct R { n: vec4<u32>, x: array<vec3f> } const three = 3;
@group(0) @binding(0) var<storage, read> s: S; @binding(1) @group(0) var<storage, read_write> r: R;
@group(0) @binding(2u) var<storage> x: array<f32>; @group(0) @binding(three) var<uniform> u: vec4f; @group(0) @binding(9) var t: texture_2d<f32>;`).bindingSizes()
	require.Equal(t, map[int]uint64{0: 260, 1: 32, 2: 4, 3: 16}, got)
}
