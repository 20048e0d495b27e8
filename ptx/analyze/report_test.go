package analyze_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/analyze"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
	"github.com/wavelane/wavelane/ptx/roofline"
)

var update = flag.Bool("update", false, "write the expected reports anew")

func analysed(t *testing.T, m *ir.Module, o analyze.Options) *analyze.Report {
	t.Helper()
	r, err := analyze.Module(m, o)
	require.NoError(t, err)
	return r
}

func parsed(t *testing.T, text string) *ir.Module {
	t.Helper()
	m, err := parse.Module("k.ptx", []byte(text))
	require.NoError(t, err)
	return m
}

// The report of a kernel that has a bit of everything, as text and as JSON.
func TestReport(t *testing.T) {
	_, m := load(t, "report.ptx")
	gpu, err := roofline.Named("A100")
	require.NoError(t, err)
	r := analysed(t, m, analyze.Options{GPU: &gpu, Registers: map[string]int{"sum_rows": 130}})
	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	data, err := json.MarshalIndent(r, "", "\t")
	require.NoError(t, err)
	for name, got := range map[string][]byte{"testdata/report.txt": text.Bytes(), "testdata/report.json": append(data, '\n')} {
		if *update {
			require.NoError(t, os.WriteFile(name, got, 0o644))
		}
		want, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), name)
	}
	var back analyze.Report
	require.NoError(t, json.Unmarshal(data, &back))
	again, err := json.MarshalIndent(back, "", "\t")
	require.NoError(t, err)
	require.Equal(t, string(data), string(again))
}

// What a report says of the kernel, worked out by hand.
func TestMetrics(t *testing.T) {
	_, m := load(t, "report.ptx")
	k := analysed(t, m, analyze.Options{SM: 90}).Kernels[0]
	require.Equal(t, 16*2+1.0, k.Flops) // both ways of the bounds check count
	require.Equal(t, 16*4+4.0, k.Bytes)
	require.Equal(t, 512, k.Shared)
	require.Equal(t, 4, k.Local)
	require.Equal(t, 16.0, k.Memory.GlobalLoads.Accesses)
	require.Equal(t, 1.0, k.Memory.GlobalStores.Accesses)
	require.Zero(t, k.OpenLoops)
	// 16 loads of 32 sectors where 4 would do, one store of 4.
	require.InDelta(t, float64(16*4+4)/(16*32+4), k.Memory.Coalescing, 1e-12)
	require.Equal(t, 1.0, k.Memory.BankConflicts)
	require.Equal(t, 16, k.Occupancy.Blocks) // 64 warps on sm_90
	require.Nil(t, k.Placement)
}

func TestTensorFlops(t *testing.T) {
	for _, c := range []struct {
		code  string
		flops float64
		rate  roofline.Rate
	}{
		{"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r1,%r1,%r1}, {%r1,%r1}, {%f1,%f2,%f3,%f4};",
			2 * 16 * 8 * 16 / 32, roofline.F16},
		{"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, {%r1,%r1,%r1,%r1}, {%r1,%r1}, {%f1,%f2,%f3,%f4};",
			2 * 16 * 8 * 8 / 32, roofline.TF32},
		{"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r2,%r3,%r4,%r5}, {%r1,%r1,%r1,%r1}, {%r1,%r1}, {%r2,%r3,%r4,%r5};",
			2 * 16 * 8 * 32 / 32, roofline.Int8},
		{"fma.rn.f16x2 %r2, %r1, %r1, %r1;", 4, roofline.F32},
		{"fma.rn.f64 %d1, %d1, %d1, %d1;", 2, roofline.F64},
		{"sqrt.rn.f32 %f1, %f1;", 1, roofline.F32},
		{"add.u32 %r2, %r1, %r1;", 0, roofline.F32},
	} {
		m := parsed(t, ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() .reqntid 32\n{\n\t.reg .b32 %r<8>;\n"+
			"\t.reg .f32 %f<8>;\n\t.reg .f64 %d<2>;\n\t"+c.code+"\n\tret;\n}\n")
		k := analysed(t, m, analyze.Options{}).Kernels[0]
		require.Equal(t, c.flops, k.Flops, c.code)
		require.Equal(t, c.rate, k.Rate, c.code)
	}
}

// Loops whose length is known count as often as they iterate, nested ones too, others once.
func TestTripCounts(t *testing.T) {
	loops := func(outer, inner string) *ir.Module {
		return parsed(t, fmt.Sprintf(`.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u32 n) .reqntid 64
{
	.reg .b32 %%r<8>;
	.reg .pred %%p<4>;
	.reg .f32 %%f<4>;
	ld.param.u32 %%r1, [n];
	mov.f32 %%f1, 0f00000000;
	mov.u32 %%r2, 0;
$outer:
	mov.u32 %%r3, 0;
$inner:
	add.rn.f32 %%f1, %%f1, 0f3F800000;
	add.u32 %%r3, %%r3, 1;
	setp.lt.u32 %%p1, %%r3, %s;
	@%%p1 bra $inner;
	add.u32 %%r2, %%r2, 1;
	setp.lt.u32 %%p2, %%r2, %s;
	@%%p2 bra $outer;
	ret;
}
`, inner, outer))
	}
	for _, c := range []struct {
		outer, inner string
		flops        float64
		open         int
	}{{"5", "7", 35, 0}, {"%r1", "7", 7, 1}, {"5", "%r1", 5, 1}, {"%r1", "%r1", 1, 2}} {
		k := analysed(t, loops(c.outer, c.inner), analyze.Options{}).Kernels[0]
		require.Equal(t, c.flops, k.Flops, "%s × %s", c.outer, c.inner)
		require.Equal(t, c.open, k.OpenLoops)
		require.True(t, k.Walked)
	}
	k := analysed(t, loops("%r1", "%r1"), analyze.Options{Params: map[string]uint64{"n": 6}}).Kernels[0]
	require.Equal(t, 36.0, k.Flops)
}

func TestCompare(t *testing.T) {
	_, m := load(t, "report.ptx")
	before := analysed(t, m, analyze.Options{})
	same := analyze.Compare(before, before)
	require.Empty(t, same.Added)
	require.Empty(t, same.Removed)
	require.Empty(t, same.Kernels)
	var text strings.Builder
	require.NoError(t, same.WriteText(&text))
	require.Empty(t, text.String())

	c := m.Clone()
	for i := range c.Funcs[0].Body {
		if c.Funcs[0].Body[i].Op == "xor" { // now each thread reads what it wrote
			c.Funcs[0].Body[i].Args[2] = ir.Int(0)
		}
	}
	other := c.Funcs[0].Clone()
	other.Name = "other"
	c.Funcs = append(c.Funcs, other)
	after := analysed(t, c, analyze.Options{Registers: map[string]int{"sum_rows": 64}})
	d := analyze.Compare(before, after)
	require.Len(t, d.Removed, 1)
	require.Equal(t, analyze.Class("MissingBarrierSync"), d.Removed[0].Class)
	for _, f := range d.Added {
		require.Equal(t, "other", f.Kernel)
	}
	require.Contains(t, d.Kernels, analyze.KernelChange{Kernel: "other", What: "present", Old: 0, New: 1})
	require.Contains(t, d.Kernels, analyze.KernelChange{Kernel: "sum_rows", What: "registers",
		Old: float64(before.Kernels[0].Registers), New: 64})
	require.NoError(t, d.WriteText(&text))
	require.Contains(t, text.String(), "- report.ptx:")
	require.Contains(t, text.String(), "other: present: 0 → 1")
	back := analyze.Compare(after, before)
	require.Equal(t, d.Added, back.Removed)
	require.Equal(t, d.Removed, back.Added)
}
