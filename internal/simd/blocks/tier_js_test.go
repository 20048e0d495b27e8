package blocks

import (
	"bytes"
	"syscall/js"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// init has Node.js 20 do what its successors and browsers do anyway. Its first compiler computes wrong products of bytes.
func init() {
	code := js.Global().Get("Uint8Array").New(len(relaxedCode))
	js.CopyBytesToJS(code, relaxedCode)
	if !js.Global().Get("WebAssembly").Call("validate", code).Bool() {
		v8 := js.Global().Call("require", "v8")
		for _, flag := range []string{"--experimental-wasm-relaxed-simd", "--no-liftoff"} {
			v8.Call("setFlagsFromString", flag)
		}
	}
}

// withoutBytewise runs f as in an engine that has no relaxed SIMD.
func withoutBytewise(f func()) {
	relaxed = false
	defer func() { relaxed = true }()
	f()
}

func TestRelaxedIsLoaded(t *testing.T) {
	require.Equal(t, kernels.SIMD128, kernels.Active())
	require.True(t, bytewise())
	// What an engine does not know is no part of the side module.
	code := append([]byte(nil), relaxedCode...)
	code[len(code)-20] ^= 0xff
	require.ErrorContains(t, kernels.Extend(code), "JavaScript error: ")
	// Nor is what computes something else: here x·y + z is z − x·y.
	was := relaxedCode
	t.Cleanup(func() { relaxedCode, extended = was, false })
	relaxedCode, extended = bytes.ReplaceAll(was, []byte{0xfd, 0x85, 0x02}, []byte{0xfd, 0x86, 0x02}), false
	require.False(t, bytewise())
	relaxedCode, extended = was, false
	require.True(t, bytewise())
	// The same product by other functions.
	const values = 256
	for _, f := range formats {
		_, w := finite(t, source(t), f, 1, values, false)
		x := make([]float32, values)
		for i := range x {
			x[i] = float32(i)
		}
		y := make([]float32, 2)
		rounded := roundedRows(x, 1)
		w.Multiply8(y, 1, rounded, 0, 1)
		withoutBytewise(func() { w.Multiply8(y[1:], 1, rounded, 0, 1) })
		require.InEpsilon(t, y[1], y[0], 1e-4, "%v", f.Type)
	}
}
