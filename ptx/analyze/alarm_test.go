package analyze_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/analyze"
	"github.com/wavelane/wavelane/ptx/parse"
)

// findings are the bugs in a kernel of 64 threads with the parameters out and n. %t is the thread, %n is n, %out points.
func findings(t *testing.T, code string) string {
	t.Helper()
	src := `.version 8.0
.target sm_90
.address_size 64
.global .align 16 .b8 constants[128];
.entry k(.param .u64 out, .param .u32 n) .reqntid 64, 1, 1 {
	.reg .pred %p<20>; .reg .b32 %r<40>; .reg .b64 %rd<10>; .reg .f32 %f<10>; .reg .b32 %t, %n; .reg .b64 %out, %mine;
	.shared .align 16 .b32 s[256];
	ld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out; ld.param.u32 %n, [n]; mov.u32 %t, %tid.x;
	mad.wide.u32 %mine, %t, 4, %out; mov.u32 %r0, s; mad.lo.u32 %r1, %t, 4, %r0;
` + code + "\n\tret;\n}\n"
	m, err := parse.Module("test.ptx", []byte(src))
	require.NoError(t, err)
	r, err := analyze.Module(m, analyze.Options{BugsOnly: true})
	require.NoError(t, err)
	var all []string
	for _, f := range r.Findings {
		all = append(all, string(f.Class)+": "+f.Message)
	}
	return strings.Join(all, "\n")
}

// What is right has no bugs; with one thing wrong, of the class given, it has.
func TestFalseAlarms(t *testing.T) {
	for _, c := range []struct{ name, right, from, to, class string }{
		{"loop that may be skipped", `
			st.shared.u32 [%r1], %t; xor.b32 %r2, %r1, 4; setp.eq.u32 %p1, %n, 0; @%p1 bra after; mov.u32 %r3, %n;
			again: bar.sync 0; ld.shared.u32 %r4, [%r2]; bar.sync 0; st.shared.u32 [%r1], %r4;
			shr.u32 %r3, %r3, 1; setp.ne.u32 %p2, %r3, 0; @%p2 bra again;
			after: bar.sync 0; ld.shared.u32 %r5, [%r2]; st.global.u32 [%mine], %r5;`,
			"again: bar.sync 0;", "again:", "MissingBarrierSync"},
		{"read in a loop that may be skipped, more after it", `
			st.shared.u32 [%r1], %t; xor.b32 %r2, %r1, 4; mov.u32 %r6, 0; setp.eq.u32 %p1, %n, 0; @%p1 bra after;
			mov.u32 %r3, %n; bar.sync 0;
			again: ld.shared.u32 %r4, [%r2]; add.u32 %r6, %r6, %r4; sub.u32 %r3, %r3, 1; setp.ne.u32 %p2, %r3, 0; @%p2 bra again;
			after: st.global.u32 [%mine], %r6; ld.shared.u32 %r7, [%r1]; st.global.u32 [%mine+256], %r7;`,
			"bar.sync 0;", "", "MissingBarrierSync"},
		{"the same value from several lanes", `
			and.b32 %r2, %t, 15; mad.lo.u32 %r3, %r2, 4, %r0; mad.wide.u32 %rd1, %r2, 4, %out; ld.global.u32 %r4, [%rd1];
			mul.lo.u32 %r5, %r4, 3; st.shared.u32 [%r3], %r5; bar.sync 0; ld.shared.u32 %r6, [%r3]; st.global.u32 [%mine+256], %r6;`,
			"mul.lo.u32 %r5, %r4, 3;", "add.u32 %r5, %r4, %t;", "Race"},
		{"rows that stmatrix stores twice", `
			and.b32 %r2, %t, 35; mad.lo.u32 %r3, %r2, 16, %r0; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%n};
			bar.sync 0; ld.shared.u32 %r6, [%r3]; st.global.u32 [%mine], %r6;`,
			"and.b32 %r2, %t, 35;", "and.b32 %r2, %t, 3;", "Race"},
		{"a sum over a warp, from all its lanes", `
			ld.global.u32 %r2, [%mine]; shfl.sync.bfly.b32 %r3, %r2, 16, 31, -1; add.s32 %r2, %r2, %r3;
			shfl.sync.bfly.b32 %r3, %r2, 8, 31, -1; add.s32 %r2, %r2, %r3; shfl.sync.bfly.b32 %r3, %r2, 4, 31, -1; add.s32 %r2, %r2, %r3;
			shfl.sync.bfly.b32 %r3, %r2, 2, 31, -1; add.s32 %r2, %r2, %r3; shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1; add.s32 %r2, %r2, %r3;
			shr.u32 %r4, %t, 5; mad.lo.u32 %r5, %r4, 4, %r0; st.shared.u32 [%r5], %r2; bar.sync 0; ld.shared.u32 %r6, [%r0+4];
			st.global.u32 [%mine+256], %r6;`,
			"shfl.sync.bfly.b32 %r3, %r2, 2, 31, -1; add.s32 %r2, %r2, %r3;", "", "Race"},
		{"the largest of a warp and its place, from all its lanes", `
			ld.global.f32 %f1, [%mine]; mov.u32 %r2, %t; mov.u32 %r7, 16;
			shfl.sync.bfly.b32 %f2, %f1, 16, 31, -1; shfl.sync.bfly.b32 %r3, %r2, 16, 31, -1;
			setp.eq.f32 %p1, %f1, %f2; setp.lt.s32 %p2, %r2, %r3; and.pred %p3, %p1, %p2; setp.gt.f32 %p4, %f1, %f2; or.pred %p5, %p4, %p3;
			selp.f32 %f1, %f1, %f2, %p5; selp.b32 %r2, %r2, %r3, %p5; shfl.sync.bfly.b32 %f2, %f1, 8, 31, -1; shfl.sync.bfly.b32 %r3, %r2, 8, 31, -1;
			setp.eq.f32 %p1, %f1, %f2; setp.lt.s32 %p2, %r2, %r3; and.pred %p3, %p1, %p2; setp.gt.f32 %p4, %f1, %f2; or.pred %p5, %p4, %p3;
			selp.f32 %f1, %f1, %f2, %p5; selp.b32 %r2, %r2, %r3, %p5; shfl.sync.bfly.b32 %f2, %f1, 4, 31, -1; shfl.sync.bfly.b32 %r3, %r2, 4, 31, -1;
			setp.eq.f32 %p1, %f1, %f2; setp.lt.s32 %p2, %r2, %r3; and.pred %p3, %p1, %p2; setp.gt.f32 %p4, %f1, %f2; or.pred %p5, %p4, %p3;
			selp.f32 %f1, %f1, %f2, %p5; selp.b32 %r2, %r2, %r3, %p5; shfl.sync.bfly.b32 %f2, %f1, 2, 31, -1; shfl.sync.bfly.b32 %r3, %r2, 2, 31, -1;
			setp.eq.f32 %p1, %f1, %f2; setp.lt.s32 %p2, %r2, %r3; and.pred %p3, %p1, %p2; setp.gt.f32 %p4, %f1, %f2; or.pred %p5, %p4, %p3;
			selp.f32 %f1, %f1, %f2, %p5; selp.b32 %r2, %r2, %r3, %p5; shfl.sync.bfly.b32 %f2, %f1, 1, 31, -1; shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;
			setp.eq.f32 %p1, %f1, %f2; setp.lt.s32 %p2, %r2, %r3; selp.b32 %r4, %r2, %r3, %p2; selp.b32 %r4, %r4, %r3, %p1;
			setp.gt.f32 %p4, %f1, %f2; selp.b32 %r2, %r2, %r4, %p4; // the last step as LLVM simplifies it
			shr.u32 %r4, %t, 5; mad.lo.u32 %r5, %r4, 4, %r0; st.shared.u32 [%r5], %r2; bar.sync 0; ld.shared.u32 %r6, [%r0+4];
			st.global.u32 [%mine+256], %r6;`,
			"selp.b32 %r2, %r2, %r4, %p4;", "setp.lt.u32 %p6, %t, 16; xor.pred %p4, %p4, %p6; selp.b32 %r2, %r2, %r4, %p4;", "Race"},
		{"nothing to copy beyond the end", `
			setp.lt.u32 %p1, %t, 8; selp.b32 %r2, 16, 0, %p1; mov.u64 %rd2, constants;
			mad.wide.u32 %rd1, %t, 16, %rd2; and.b32 %r4, %t, 15; mad.lo.u32 %r3, %r4, 16, %r0; setp.lt.u32 %p2, %t, 16;
			@%p2 cp.async.cg.shared.global [%r3], [%rd1], 16, %r2; cp.async.wait_all; bar.sync 0; ld.shared.u32 %r5, [%r1]; st.global.u32 [%mine], %r5;`,
			"setp.lt.u32 %p1, %t, 8;", "setp.lt.u32 %p1, %t, 9;", "OutOfBounds"},
		{"warps that another one tells what to do", `
			setp.lt.u32 %p1, %t, 32; @%p1 bra first; again: barrier.sync 1; ld.shared.u32 %r2, [%r0]; setp.eq.u32 %p2, %r2, 0; @%p2 bra done;
			st.global.u32 [%mine], %r2; barrier.sync 1; bra again;
			first: st.shared.u32 [%r0], %n; barrier.sync 1; barrier.sync 1; st.shared.u32 [%r0], 0; barrier.sync 1; done:`,
			"st.shared.u32 [%r0], 0; barrier.sync 1;", "st.shared.u32 [%r0], 0; bar.sync 0;", "BarrierUnderDivergence"},
		{"an elected lane", `
			elect.sync _|%p1, -1; setp.lt.u32 %p2, %t, 32; and.pred %p3, %p1, %p2; selp.b32 %r2, 1, 0, %p3; setp.ne.u32 %p4, %r2, 0;
			@%p4 st.shared.u32 [%r0], %t; @!%p4 bra on; st.shared.u32 [%r0+4], %t;
			on: bar.sync 0; ld.shared.v2.u32 {%r3, %r4}, [%r0]; add.u32 %r3, %r3, %r4; st.global.u32 [%mine], %r3;`,
			"elect.sync _|%p1, -1;", "setp.lt.u32 %p1, %t, 2;", "Race"},
		{"a constant that a loop writes again", `
			mov.u32 %r3, %n; mov.u32 %r2, 16;
			again: mov.u32 %r2, 16; sub.u32 %r3, %r3, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra again;
			mad.lo.u32 %r4, %t, %r2, %r0; setp.ge.u32 %p3, %t, 16; st.shared.u32 [%r1], %t; bar.sync 0; @%p3 bra on;
			ld.shared.u32 %r5, [%r4]; st.global.u32 [%mine], %r5; on:`,
			"bar.sync 0;", "", "MissingBarrierSync"},
		{"lanes that have left", `
			setp.ge.u32 %p1, %t, %n; @%p1 exit; vote.sync.ballot.b32 %r2, 1, -1; bar.warp.sync -1; st.global.u32 [%mine], %r2;`,
			"@%p1 exit; vote.sync.ballot.b32 %r2, 1, -1;", "@%p1 bra on; vote.sync.ballot.b32 %r2, 1, -1; on: mov.u32 %r2, 0;",
			"FullMaskAfterExit"},
		{"the number of a warp in the grid", `
			mov.u32 %r2, %ctaid.x; mad.lo.u32 %r2, %r2, 64, %t; shr.u32 %r2, %r2, 1; and.b32 %r2, %r2, 2147483632; // i / 32 * 16
			setp.ge.s32 %p1, %r2, %n; @%p1 bra on; shfl.sync.idx.b32 %r3, %t, 0, 31, -1; st.global.u32 [%mine], %r3; on:`,
			"2147483632", "2147483640", "FullMaskAfterExit"},
		{"a stack's pointer that data move", `
			mov.u32 %r3, %r0; mov.u32 %r4, 0; add.u64 %rd1, %out, 1024; st.shared.u32 [%r0], %n; bar.sync 0;
			again: ld.global.u32 %r5, [%rd1]; setp.eq.u32 %p1, %r5, 0; @%p1 bra push; setp.eq.u32 %p2, %r5, 1; @%p2 bra pop; bra behind;
			push: add.u32 %r3, %r3, 4; st.shared.u32 [%r3], %r4; bra behind;
			pop: ld.shared.u32 %r6, [%r3+-4]; add.u32 %r3, %r3, -4; bra behind;
			behind: add.u32 %r4, %r4, 1; add.u64 %rd1, %rd1, 4; setp.lt.u32 %p3, %r4, %n; @%p3 bra again; st.global.u32 [%mine], %r4;`,
			"pop: ld.shared.u32 %r6, [%r3+-4]; add.u32 %r3, %r3, -4;", "pop: ld.shared.u32 %r6, [%r0+-4];", "OutOfBounds"},
		{"a shared variable by name", `
			setp.eq.u32 %p1, %t, 0; @%p1 st.u32 [s], 5; bar.sync 0; ld.u32 %r2, [s]; st.global.u32 [%mine], %r2;`,
			"bar.sync 0;", "", "MissingBarrierSync"},
	} {
		require.Empty(t, findings(t, c.right), c.name)
		require.Contains(t, c.right, c.from)
		require.Contains(t, findings(t, strings.Replace(c.right, c.from, c.to, 1)), c.class, c.name)
	}
}

// What the oldest version that the table of forms knows has, older ones may have too.
func TestOldVersions(t *testing.T) {
	for code, want := range map[string]int{
		"ld.global.u32 r, [a]; st.global.u32 [a], r;": 0, "ld.relaxed.gpu.global.u32 r, [a];": 2,
	} {
		m, err := parse.Module("test.ptx", []byte(".version 3.1\n.target sm_30\n.address_size 64\n.entry k() { .reg .b32 r; .reg .b64 a;"+
			code+" ret; }"))
		require.NoError(t, err)
		r, err := analyze.Module(m, analyze.Options{})
		require.NoError(t, err)
		n := 0
		for _, f := range r.Findings {
			if f.Class == "VersionMismatch" {
				n++
			}
		}
		require.Equal(t, want, n, code)
	}
}

// TestLocalAcrossCalls: a function that has no address in local memory leaves a loop's counter there as it is; one that has may write the
// number of the thread into it, so that not all come to the barrier.
func TestLocalAcrossCalls(t *testing.T) {
	const src = `.version 8.0
.target sm_80
.address_size 64
.func write(.param .b64 to) {
	.reg .b64 %rd<2>; .reg .b32 %r<2>;
	ld.param.u64 %rd1, [to]; mov.u32 %r1, %tid.x; st.u32 [%rd1], %r1; ret;
}
.entry k(.param .u64 out, .param .u32 n) .reqntid 64, 1, 1 {
	.reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<5>;
	.local .align 8 .b8 depot[16];
	mov.u64 %rd1, depot; cvta.local.u64 %rd1, %rd1;
	ld.param.u64 %rd2, [out]; st.u64 [%rd1], %rd2; ld.param.u32 %r1, [n]; st.u32 [%rd1+8], %r1;
again:
	ld.u32 %r2, [%rd1+8]; setp.eq.u32 %p1, %r2, 0; @%p1 bra done;
	bar.sync 0;
	mov.u32 %r3, %tid.x; mad.wide.u32 %rd3, %r3, 4, %rd2; add.u64 %rd4, %rd1, 8;
	{ .param .b64 to; st.param.b64 [to], POINTER; call.uni write, (to); }
	ld.u32 %r2, [%rd1+8]; shr.u32 %r2, %r2, 1; st.u32 [%rd1+8], %r2; bra again;
done:
	ret;
}
`
	for pointer, want := range map[string]string{"%rd3": "", "%rd4": "BarrierUnderDivergence"} {
		m, err := parse.Module("test.ptx", []byte(strings.Replace(src, "POINTER", pointer, 1)))
		require.NoError(t, err)
		r, err := analyze.Module(m, analyze.Options{BugsOnly: true})
		require.NoError(t, err)
		classes := ""
		for _, f := range r.Findings {
			classes += string(f.Class)
		}
		require.Equal(t, want, classes, pointer)
	}
}
