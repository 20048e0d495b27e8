package conformance

import (
	"os"
	"slices"
	"strings"
	"syscall/js"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/wgslkernels"
	"github.com/wavelane/wavelane/wgsl"
)

// The kernels that need extensions of WGSL compile. WAVELANE_FEATURES names those that the device must have; kernels with others are
// left out.
func TestExtensionsCompile(t *testing.T) {
	adapter := settled(t, js.Global().Get("navigator").Get("gpu").Call("requestAdapter"))
	require.True(t, adapter.Truthy(), "no adapter")
	ask, caps := []any{}, wgsl.DefaultCaps
	for f, has := range map[string]*bool{"shader-f16": &caps.F16, "subgroups": &caps.Subgroups} {
		if *has = adapter.Get("features").Call("has", f).Bool(); *has {
			ask = append(ask, f)
		}
	}
	caps.IntegerDots = js.Global().Get("navigator").Get("gpu").Get("wgslLanguageFeatures").Call("has", packedDots).Bool()
	require.True(t, caps.IntegerDots)
	for _, f := range strings.Fields(os.Getenv("WAVELANE_FEATURES")) {
		require.Contains(t, ask, f)
	}
	device := settled(t, adapter.Call("requestDevice", map[string]any{"requiredFeatures": ask}))
	defer device.Call("destroy")
	kernels := map[string]*wgsl.Kernel{}
	for _, e := range catalogue.All() { // all calls: few need some of the extensions
		calls, err := Calls(e)
		require.NoError(t, err)
		for _, c := range calls {
			extended(t, e, c, &caps, kernels)
		}
	}
	extensions := map[string]int{}
	for key, k := range kernels {
		module := device.Call("createShaderModule", map[string]any{"code": k.Source})
		settled(t, device.Call("createComputePipelineAsync", map[string]any{"label": key, "layout": "auto",
			"compute": map[string]any{"module": module, "entryPoint": k.Entry}}))
		for _, line := range strings.SplitN(k.Source, "\n", 3)[:2] {
			if needs(line) {
				extensions[strings.Fields(line)[1]]++
			}
		}
	}
	t.Logf("%d kernels compile: %v", len(kernels), extensions)
	require.Equal(t, caps.F16, extensions["f16;"] > 0)
	require.Equal(t, caps.Subgroups, extensions["subgroups;"] > 0)
	require.Positive(t, extensions[packedDots+";"])
}

const packedDots = "packed_4x8_integer_dot_product"

// needs reports whether a text begins with an extension.
func needs(text string) bool {
	return strings.HasPrefix(text, "enable ") || strings.HasPrefix(text, "requires ")
}

// extended collects the kernels with extensions that a call may be compiled to: with all its variants where elements are f16.
func extended(t *testing.T, e *program.Entry, c Call, caps *wgsl.Caps, kernels map[string]*wgsl.Kernel) {
	out, err := e.Check(c.In, c.Attr)
	require.NoError(t, err)
	for variant, variants := 0, 1; variant < variants; variant++ {
		halves := false
		l, err := wgslkernels.Lower(&program.Step{Entry: e, Attr: c.Attr}, c.In, out, caps, func(class, _ string, names []string) int {
			if halves = halves || class == "f16"; halves && class == "matmul" {
				variants = max(variants, len(names))
				return min(variant, len(names)-1)
			}
			return max(0, slices.IndexFunc(names, func(n string) bool { return n == "native" || strings.HasSuffix(n, "subgroups") }))
		})
		require.NoError(t, err)
		for _, a := range l.Actions {
			if d := a.Launch; d != nil && needs(d.Kernel.Source) {
				kernels[d.Kernel.Key] = d.Kernel
			}
		}
	}
}

func settled(t *testing.T, promise js.Value) js.Value {
	result := make(chan js.Value, 1)
	fail := make(chan string, 1)
	ok := js.FuncOf(func(_ js.Value, args []js.Value) any { result <- args[0]; return nil })
	defer ok.Release()
	bad := js.FuncOf(func(_ js.Value, args []js.Value) any { fail <- args[0].Call("toString").String(); return nil })
	defer bad.Release()
	promise.Call("then", ok, bad)
	select {
	case v := <-result:
		return v
	case why := <-fail:
		require.FailNow(t, why)
	}
	return js.Undefined()
}
