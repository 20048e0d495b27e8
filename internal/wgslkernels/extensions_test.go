package wgslkernels

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

// Variants that need extensions of WGSL are offered where a device has them, never first but for integer dot products, and say what they
// use.
func TestExtensions(t *testing.T) {
	half := func(shape ...int) program.Type { return program.Type{DType: compute.Float16, Shape: shape} }
	calls := map[*program.Entry][][]program.Type{
		catalogue.MatMul:    {{half(5, 8), half(8, 12)}, {half(5, 7), half(7, 11)}, {half(40, 600), half(600, 3)}},
		catalogue.MatVec:    {{program.F32(300, 1000), program.F32(1000)}, {half(3, 70), program.F32(70)}},
		catalogue.Cast:      {{half(1000)}},
		catalogue.LayerNorm: {{program.F32(3, 64), program.F32(64), program.F32(64)}, {program.F32(200003), program.F32(200003), program.F32(200003)}},
	}
	for e := range reductions {
		for _, n := range []int{5, 100, 100000} {
			calls[e] = append(calls[e], []program.Type{program.F32(3, n), program.F32(3, n)}[:len(e.Inputs)])
		}
	}
	for e := range statistics {
		if len(e.Inputs) == 1 || statistics[e].second == gradient {
			calls[e] = [][]program.Type{rowsOperands(t, e, []int{3, 1000})}
		}
	}
	calls[catalogue.SoftmaxBackward] = [][]program.Type{{program.F32(3, 100), program.F32(3, 100)}}
	packed := packedType(t, compute.Q4_K, 5, 512)
	calls[catalogue.QuantMatMulRowMajor] = [][]program.Type{{program.F32(1, 512), packed}, {program.F32(7, 512), packed}}
	calls[catalogue.QuantRMSNormMatVec] = [][]program.Type{{program.F32(1, 512), program.F32(512), packed}}
	calls[catalogue.QuantGateUpSwiGLU] = [][]program.Type{{program.F32(1, 512), packed, packed}}
	plain, extended := wgsl.DefaultCaps, wgsl.DefaultCaps
	extended.Subgroups, extended.F16, extended.IntegerDots = true, true, true
	usual, seen := texts{}, texts{}
	offered := map[string]bool{}
	for e, all := range calls {
		var options any = e.Options
		switch {
		case reductions[e].value != "":
			options = compute.LastAxis
		case e == catalogue.Cast:
			options = compute.CastOptions{To: compute.Float32}
		case options == any(compute.QuantOptions{}):
			options = compute.QuantOptions{Format: compute.Q4_K, Q8: true}
		}
		for _, in := range all {
			before := len(seen)
			usual.variants(t, e, options, &plain, in...)
			names := seen.variants(t, e, options, &extended, in...)
			for _, name := range names {
				offered[name] = true
			}
			require.True(t, len(seen) > before, "%s %v: new names %v", e.Name, in, names)
		}
	}
	for _, name := range []string{"subgroups", "native", "rows/subgroups", "dots"} {
		require.Contains(t, offered, name)
	}
	kinds := map[string]int{}
	for key, text := range seen {
		enabled := false
		for extension, sign := range map[string]string{"f16": "f16>", "subgroups": "subgroup", packedDots: "4I8"} {
			head, body, _ := strings.Cut(text, "fn linear_id")
			enables := strings.Contains(head, map[bool]string{false: "enable ", true: "requires "}[extension == packedDots]+extension+";")
			require.Equal(t, enables, strings.Contains(body, sign), "%s: %s", key, extension)
			enabled = enabled || enables
			if enables {
				kinds[extension]++
			}
		}
		require.Equal(t, enabled, usual[key] != text, "%s: without extensions a kernel is what it is on other devices", key)
	}
	require.GreaterOrEqual(t, kinds["f16"], 5)
	require.Greater(t, kinds["subgroups"], 20)
	require.Greater(t, kinds[packedDots], 8, "four products by lanes and by subgroups, two ways of rounding")
}
