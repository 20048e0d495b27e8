package dispatch

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

func stopAtNaN(b *ir.Builder) { b.Guard(b.IsNaN(b.Input(0))) }

func accumulate(merge ir.Merge) func(b *ir.Builder) {
	return func(b *ir.Builder) { b.Accumulate(0, merge, func(acc ir.F) ir.F { return b.Add(acc, b.Input(0)) }) }
}

func both(f, g func(b *ir.Builder)) func(b *ir.Builder) { return func(b *ir.Builder) { f(b); g(b) } }

func store(b *ir.Builder) { b.Store(b.Add(b.Input(0), b.Param(0))) }

func generate(t *testing.T, k *ir.Kernel) (shared, amd64, other, table, raw string) {
	files, err := Files([]*ir.Kernel{k})
	require.NoError(t, err)
	for name, b := range files {
		require.True(t, strings.HasPrefix(string(b), header), name)
	}
	return string(files["kernels/kernels_gen.go"]), string(files["kernels/dispatch_gen_amd64.go"]), string(files["kernels/dispatch_gen_other.go"]),
		string(files["kernels/table_gen_test.go"]), string(files["kernels/raw_gen_amd64_test.go"])
}

func TestPlain(t *testing.T) {
	k := &ir.Kernel{Name: "AddScalar", Doc: "y[i] = a[i] + s", Inputs: []string{"a"}, Params: []string{"s"}, Body: store}
	shared, amd64, other, table, raw := generate(t, k)
	require.Contains(t, shared, "// AddScalar computes\n//\n//\ty[i] = a[i] + s\nfunc AddScalar(y, a []float32, s float32) { addScalarDispatch(y, a, s) }\n")
	require.Contains(t, amd64, "\n\nfunc addScalarDispatch(y, a []float32, s float32) {\n")
	require.Contains(t, amd64, "case AVX2:\n\t\taddScalarAVX2(unsafe.SliceData(y), unsafe.SliceData(a), len(y), s)\n")
	require.Contains(t, amd64, "default:\n\t\taddScalarGo(y, a, s)\n")
	require.Contains(t, other, "//go:build "+Portable+"\n")
	require.Contains(t, other, "func addScalarDispatch(y, a []float32, s float32) { addScalarGo(y, a, s) }\n")
	require.Contains(t, table, `{name: "AddScalar", inputs: 1, params: 1, store: true,`)
	require.Contains(t, table, "AddScalar(c.y, c.in[0], c.p[0])")
	require.NotContains(t, raw, "AddScalar")
}

func TestFold(t *testing.T) {
	k := &ir.Kernel{Name: "Sum", Doc: "Sum is Σ a[i].", Inputs: []string{"a"}, Body: accumulate(ir.MergeAdd)}
	shared, amd64, _, table, _ := generate(t, k)
	require.Contains(t, shared, "// Sum is Σ a[i].\nfunc Sum(a []float32) float32 { return sumDispatch(a) }\n")
	require.Contains(t, amd64, "return sumSSE(unsafe.SliceData(a), len(a))")
	require.Contains(t, table, "c.out[0] = Sum(c.in[0])")
}

func TestLanes(t *testing.T) {
	_, amd64, _, _, _ := generate(t, &ir.Kernel{Name: "Lanes", Doc: "Lanes.", Inputs: []string{"a"}, Body: accumulate(ir.MergeNone)})
	require.Contains(t, amd64, "func lanesDispatch(lanes *[1 * Lanes]float32, a []float32) {")
	require.Contains(t, amd64, "lanesSSE(lanes, unsafe.SliceData(a), len(a))")
}

func TestGuard(t *testing.T) {
	k := &ir.Kernel{Name: "Sin", Doc: "Sin.", Inputs: []string{"x"}, Params: []string{"p"}, Body: both(stopAtNaN, store)}
	_, amd64, _, _, raw := generate(t, k)
	require.Contains(t, amd64, "done = sinAVX512(&y[i], &x[i], len(y)-i, uint64(math.Float32bits(p)))")
	require.Contains(t, amd64, "end := min(i+Lanes, len(y))\n\t\t\tsinGo(y[i:end], x[i:end], p)\n\t\t\ti = end")
	require.Contains(t, raw, "done = sinSSE(unsafe.SliceData(c.y), unsafe.SliceData(c.in[0]), len(c.in[0]), c.p[0])")

	k.Body = both(k.Body, accumulate(ir.MergeAdd))
	_, amd64, _, _, raw = generate(t, k)
	require.Contains(t, amd64, "done, part = sinAVX512(&y[i], &x[i], len(y)-i, uint64(math.Float32bits(p)))")
	require.Contains(t, amd64, "sum += sinGo(y[i:end], x[i:end], p)")
	require.Contains(t, raw, "done, _ = sinSSE(")
}

func TestSearch(t *testing.T) {
	_, amd64, other, table, _ := generate(t, &ir.Kernel{Name: "FindNaN", Doc: "FindNaN.", Inputs: []string{"a"}, Body: stopAtNaN})
	require.Contains(t, amd64, "func findNaNDispatch(a []float32) int {")
	require.Contains(t, amd64, "return i + findNaNGo(a[i:])")
	require.Contains(t, other, "return findNaNGo(a)")
	require.Contains(t, table, "c.n = FindNaN(c.in[0])")
}

func TestWhatDispatchCannotDo(t *testing.T) {
	for want, body := range map[string]func(b *ir.Builder){
		"some accumulators are merged":     both(accumulate(ir.MergeAdd), accumulate(ir.MergeNone)),
		"no portable fallback could go on": both(stopAtNaN, accumulate(ir.MergeNone)),
		"only one sum":                     both(stopAtNaN, accumulate(ir.MergeMax)),
		"no result":                        func(*ir.Builder) {},
		"is another than": func(b *ir.Builder) {
			if b.Features.FMA {
				stopAtNaN(b)
			}
			store(b)
		},
	} {
		_, err := Files([]*ir.Kernel{{Name: "Bad", Inputs: []string{"a"}, Params: []string{"p"}, Body: body}})
		require.ErrorContains(t, err, want)
	}
}
