package opt_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/opt"
	"github.com/wavelane/wavelane/ptx/parse"
)

// kernel parses the body of a kernel with one pointer, data in %a.
func kernel(t *testing.T, body string) *ir.Module {
	t.Helper()
	m, err := parse.Module("test", []byte(`.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data, .param .u32 n) {
	.reg .u64 %a, %b, %c; .reg .u32 %x, %y, %z, %w; .reg .f32 %f, %g, %h, %i; .reg .f64 %d, %e; .reg .pred %p, %q; .reg .u16 %s;
	.shared .align 16 .b8 tile[64];
	ld.param.u64 %a, [data];
`+body+"\n}\n"))
	require.NoError(t, err)
	return m
}

// code is the body of the kernel, without the loads of parameters.
func code(m *ir.Module) string {
	f := m.Func("k")
	var lines []string
	for i := range f.Body {
		if f.Body[i].Space() != ir.ParamSpace {
			lines = append(lines, strings.TrimSuffix(f.InstrString(&f.Body[i]), ";"))
		}
	}
	return strings.Join(lines, "\n")
}

// TestPasses shows what each pass does, and what it must leave alone.
func TestPasses(t *testing.T) {
	for _, c := range []struct {
		name     string
		passes   opt.Pass
		contract bool
		body     string
		want     string
	}{
		{"constants through copies and branches that agree", opt.Fold, false, `
			mov.u32 %x, 6; mov.u32 %y, 7; @%p bra L; mov.u32 %y, 7; L: mul.lo.u32 %z, %x, %y; st.global.u32 [%a], %z; ret;`, `
			mov.u32 %x, 6; mov.u32 %y, 7; @%p bra L; mov.u32 %y_0, 7; L: mov.u32 %z, 42; st.global.u32 [%a], 42; ret`},
		{"a guarded write leaves the old value", opt.Fold, false, `
			mov.u32 %x, 6; @%p mov.u32 %x, 7; st.global.u32 [%a], %x; ret;`, `
			mov.u32 %x, 6; @%p mov.u32 %x, 7; st.global.u32 [%a], %x; ret`},
		{"what was never written is not known", opt.Fold, false, `
			@%p bra L; mov.u32 %x, 6; L: st.global.u32 [%a], %x; ret;`, `
			@%p bra L; mov.u32 %x, 6; L: st.global.u32 [%a], %x; ret`},
		{"literals have the type of their operand", opt.Fold, false, `
			cvt.pack.sat.u8.s32.b32 %x, 300, -5, 0; st.global.u32 [%a], %x; ret;`, `
			mov.u32 %x, 65280; st.global.u32 [%a], 65280; ret`},
		{"approximations are left to the machine", opt.Fold, false, `
			mov.f32 %f, 0f40000000; rcp.approx.f32 %g, %f; rcp.rn.f32 %h, %f; st.global.f32 [%a], %g; st.global.f32 [%a], %h; ret;`, `
			mov.f32 %f, 0f40000000; rcp.approx.f32 %g, 0f40000000; mov.f32 %h, 0f3F000000; st.global.f32 [%a], %g;
			st.global.f32 [%a], 0f3F000000; ret`},
		{"guards that are constant", opt.Fold | opt.Branches | opt.Dead, false, `
			mov.u32 %x, 1; setp.eq.u32 %p, %x, 1; @!%p st.global.u32 [%a], %x; @%p st.global.u32 [%a+4], %x; @%p bra L;
			st.global.u32 [%a+8], %x; L: ret;`, `
			st.global.u32 [%a+4], 1; ret`},
		{"copies", opt.Copies, false, `
			ld.global.u32 %x, [%a]; mov.u32 %y, %x; add.u32 %z, %y, %y; st.global.u32 [%a], %z; ret;`, `
			ld.global.u32 %x, [%a]; add.u32 %z, %x, %x; st.global.u32 [%a], %z; ret`},
		{"a copy whose original changes in a loop", opt.Copies, false, `
			ld.global.u32 %x, [%a]; L: mov.u32 %y, %x; add.u32 %x, %x, 1; setp.lt.u32 %p, %x, 9; @%p bra L;
			st.global.u32 [%a], %y; ret;`, `
			ld.global.u32 %x, [%a]; L: mov.u32 %y, %x; add.u32 %x, %x, 1; setp.lt.u32 %p, %x, 9; @%p bra L;
			st.global.u32 [%a], %y; ret`},
		{"the same twice", opt.Common, false, `
			mov.u32 %x, %tid.x; mov.u32 %y, %tid.x; add.u32 %z, %x, %y; add.u32 %w, %y, %x; st.global.u32 [%a], %z;
			st.global.u32 [%a], %w; ret;`, `
			mov.u32 %x, %tid.x; add.u32 %z, %x, %x; st.global.u32 [%a], %z; st.global.u32 [%a], %z; ret`},
		{"clocks go on", opt.Common | opt.Copies, false, `
			mov.u32 %x, %clock; mov.u32 %y, %clock; sub.u32 %z, %y, %x; st.global.u32 [%a], %z; ret;`, `
			mov.u32 %x, %clock; mov.u32 %y, %clock; sub.u32 %z, %y, %x; st.global.u32 [%a], %z; ret`},
		{"one way does not dominate the other", opt.Common, false, `
			@%p bra L; add.u32 %x, %w, 1; st.global.u32 [%a], %x; L: add.u32 %y, %w, 1; st.global.u32 [%a], %y; ret;`, `
			@%p bra L; add.u32 %x, %w, 1; st.global.u32 [%a], %x; L: add.u32 %y, %w, 1; st.global.u32 [%a], %y; ret`},
		{"loads with nothing between", opt.Common, false, `
			ld.global.u32 %x, [%a]; st.shared.u32 [tile], %x; ld.global.u32 %y, [%a]; add.u32 %z, %x, %y;
			st.global.u32 [%a], %z; ret;`, `
			ld.global.u32 %x, [%a]; st.shared.u32 [tile], %x; add.u32 %z, %x, %x; st.global.u32 [%a], %z; ret`},
		{"loads after a store, a barrier, volatile ones", opt.Common, false, `
			ld.global.u32 %x, [%a]; st.global.u32 [%a+4], %x; ld.global.u32 %y, [%a]; bar.sync 0; ld.global.u32 %z, [%a];
			ld.volatile.global.u32 %w, [%a]; ld.volatile.global.u32 %w, [%a]; st.global.v4.u32 [%a], {%x, %y, %z, %w}; ret;`, `
			ld.global.u32 %x, [%a]; st.global.u32 [%a+4], %x; ld.global.u32 %y, [%a]; bar.sync 0; ld.global.u32 %z, [%a];
			ld.volatile.global.u32 %w, [%a]; ld.volatile.global.u32 %w_0, [%a]; st.global.v4.u32 [%a], {%x, %y, %z, %w_0}; ret`},
		{"cheaper integers", opt.Strength, false, `
			mul.lo.u32 %x, %w, 8; div.u32 %y, %w, 16; rem.u32 %z, %w, 32; mad.lo.u32 %w, %w, 1, %x; add.u32 %x, %w, 0; ret;`, `
			shl.b32 %x, %w, 3; shr.u32 %y, %w, 4; and.b32 %z, %w, 31; add.u32 %w, %w, %x; mov.u32 %x_0, %w; ret`},
		{"floats keep NaN, −0 and rounding", opt.Strength, false, `
			mul.rn.f32 %f, %g, 0f3F800000; add.rn.f32 %f, %g, 0f00000000; div.rn.f32 %h, %g, 0f41000000; div.rn.f32 %h, %g, 0f40400000;
			fma.rn.f32 %i, %f, %g, 0f80000000; fma.rn.f32 %i, %f, %g, 0f00000000; fma.rm.f32 %i, %f, %g, 0f80000000; ret;`, `
			mul.rn.f32 %f, %g, 0f3F800000; add.rn.f32 %f_0, %g, 0f00000000; mul.rn.f32 %h, %g, 0f3E000000;
			div.rn.f32 %h_0, %g, 0f40400000; mul.rn.f32 %i, %f_0, %g; fma.rn.f32 %i_0, %f_0, %g, 0f00000000;
			fma.rm.f32 %i_1, %f_0, %g, 0f80000000; ret`},
		{"a signed quotient is no shift", opt.Strength, false, `
			div.s32 %x, %w, 16; rem.s32 %y, %w, 16; st.global.v2.u32 [%a], {%x, %y}; ret;`, `
			div.s32 %x, %w, 16; rem.s32 %y, %w, 16; st.global.v2.u32 [%a], {%x, %y}; ret`},
		{"contraction", opt.Contraction, true, `
			mul.f32 %f, %g, %h; add.f32 %i, %f, %g; mul.rn.f32 %f, %g, %h; add.f32 %h, %f, %i; st.global.f32 [%a], %h; ret;`, `
			fma.rn.f32 %i, %g, %h, %g; mul.rn.f32 %f_0, %g, %h; add.f32 %h, %f_0, %i; st.global.f32 [%a], %h; ret`},
		{"no contraction unless allowed", opt.Contraction, false, `
			mul.f32 %f, %g, %h; add.f32 %i, %f, %g; ret;`, `
			mul.f32 %f, %g, %h; add.f32 %i, %f, %g; ret`},
		{"no contraction of a product that is needed besides, or with .ftz on one side", opt.Contraction, true, `
			mul.f32 %f, %g, %h; add.f32 %i, %f, %g; st.global.f32 [%a], %f; mul.ftz.f32 %f, %g, %h; add.f32 %i, %f, %g; ret;`, `
			mul.f32 %f, %g, %h; add.f32 %i, %f, %g; st.global.f32 [%a], %f; mul.ftz.f32 %f_0, %g, %h; add.f32 %i_0, %f_0, %g; ret`},
		{"addresses", opt.Addresses | opt.Dead, false, `
			add.u64 %b, %a, 16; add.s64 %c, %b, -4; ld.global.u32 %x, [%c+8]; st.global.u32 [%b], %x; ret;`, `
			ld.global.u32 %x, [%a+20]; st.global.u32 [%a+16], %x; ret`},
		{"offsets of more than 31 bits", opt.Addresses | opt.Dead, false, `
			add.u64 %b, %a, 2147483648; ld.global.u32 %x, [%b]; st.global.u32 [%a], %x; ret;`, `
			add.u64 %b, %a, 2147483648; ld.global.u32 %x, [%b]; st.global.u32 [%a], %x; ret`},
		{"branches", opt.Branches, false, `
			@%p bra L; bra M; L: st.global.u32 [%a], %x; bra N; M: st.global.u32 [%a], %y; N: bra O; O: ret;`, `
			@!%p bra M; st.global.u32 [%a], %x; bra O; M: st.global.u32 [%a], %y; O: ret`},
		{"a loop without end", opt.All, false, `L: bra M; M: bra L;`, `L: bra L`},
		{"dead circles, unreachable code, unread loads", opt.Dead, false, `
			mov.u32 %x, 0; L: add.u32 %x, %x, 1; ld.global.u32 %y, [%a]; @%p bra L; bar.sync 0; ret; st.global.u32 [%a], %y;`, `
			L: @%p bra L; bar.sync 0; ret`},
		{"what has an effect stays", opt.All, false, `
			atom.global.add.u32 %x, [%a], 1; ld.volatile.global.u32 %y, [%a]; ld.acquire.gpu.global.u32 %z, [%a]; add.cc.u32 %x, %x, 1;
			activemask.b32 %w; @%p exit; membar.gl; ret;`, `
			atom.global.add.u32 %x, [%a], 1; ld.volatile.global.u32 %y, [%a]; ld.acquire.gpu.global.u32 %z, [%a]; add.cc.u32 %x_0, %x, 1;
			activemask.b32 %w; @%p exit; membar.gl; ret`},
		{"carries", opt.All, false, `
			mov.u32 %x, -1; add.cc.u32 %y, %x, 1; addc.u32 %z, %y, %y; st.global.u32 [%a], %z; ret;`, `
			add.cc.u32 %y, 4294967295, 1; addc.u32 %z, %y, %y; st.global.u32 [%a], %z; ret`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := kernel(t, c.body)
			got, _, err := opt.Run(m, opt.Options{Passes: c.passes, Contract: c.contract})
			require.NoError(t, err)
			require.Equal(t, layout(c.want), code(got))
		})
	}
}

// layout puts the instructions of a body on lines of their own.
func layout(body string) string {
	body = strings.NewReplacer(";", "\n", ": ", ":\n").Replace(body)
	var lines []string
	for line := range strings.SplitSeq(body, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// TestUnroll looks at what became of requests.
func TestUnroll(t *testing.T) {
	loop := func(before, pragma, test string) string {
		return "mov.u32 %x, 0; mov.u32 %y, 0; " + before + "\nL: .pragma \"" + pragma + "\"; ld.global.u32 %z, [%a]; " +
			"add.u32 %y, %y, %z; add.u32 %x, %x, 1; setp." + test + "; @%p bra L; st.global.u32 [%a], %y; ret;"
	}
	for _, c := range []struct {
		name, body string
		want       opt.Unrolled
		loads      int
	}{
		{"full", loop("", "unroll", "lt.u32 %p, %x, 5"), opt.Unrolled{Copies: 5, Full: true}, 5},
		{"few enough iterations", loop("", "unroll 8", "lt.u32 %p, %x, 5"), opt.Unrolled{Copies: 5, Full: true}, 5},
		{"partial with a constant bound", loop("", "unroll 4", "lt.u32 %p, %x, 50"), opt.Unrolled{Copies: 4}, 5},
		{"partial", loop("ld.param.u32 %w, [n];", "unroll 4", "ne.u32 %p, %x, %w"), opt.Unrolled{Copies: 4}, 5},
		{"unknown", loop("ld.param.u32 %w, [n];", "unroll", "lt.u32 %p, %x, %w"),
			opt.Unrolled{Reason: "the number of iterations is not a constant"}, 1},
		{"too large", loop("", "unroll 5000", "lt.u32 %p, %x, 4000"), opt.Unrolled{Reason: "it would become too large"}, 1},
		{"no counter", loop("", "unroll 4", "lt.u32 %p, %z, 40"), opt.Unrolled{Reason: "no counter was found"}, 1},
		{"wraps", loop("ld.param.u32 %w, [n];", "unroll 4", "gt.u32 %p, %x, %w"),
			opt.Unrolled{Reason: "the counter may pass its bound by wrapping round"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, stats, err := opt.Run(kernel(t, c.body), opt.Options{Passes: opt.Unroll | opt.Branches | opt.Fold})
			require.NoError(t, err)
			require.Len(t, stats.Loops, 1)
			c.want.Function, c.want.Loop, c.want.Pos = "k", "L", stats.Loops[0].Pos
			require.Equal(t, c.want, stats.Loops[0])
			require.Equal(t, c.loads, strings.Count(code(got), "ld.global"), "%s", code(got))
			require.NotContains(t, code(got), `"unroll`)
		})
	}
}

// TestWgmma leaves registers alone that are read and written in the background.
func TestWgmma(t *testing.T) {
	body := `ld.global.f32 %f, [%a]; mov.f32 %g, %f; mov.f32 %h, 0f00000000; mov.f32 %i, %h; mov.u64 %b, 64;
		wgmma.fence.sync.aligned;
		wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f, %g, %h, %i}, %b, %b, 1, 1, 1, 0, 0;
		wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; st.global.v4.f32 [%a], {%f, %g, %h, %i}; ret;`
	got, _, err := opt.Run(kernel(t, body), opt.Options{Passes: opt.All})
	require.NoError(t, err)
	require.Equal(t, layout(strings.Replace(body, "mov.f32 %i, %h", "mov.f32 %i, 0f00000000", 1)), code(got))
}
