package parse_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
)

// accepted are kernels' bodies, and modules with the word BODY where a kernel's head is to be, that ptxas takes, with lines of what is
// printed of them.
var accepted = []struct {
	name, text string
	printed    []string
}{
	{"order of parts", `.reg .b32 r<20>; .reg .f32 f<4>; .reg .b64 a;
		atom.add.release.gpu.u32 r0, [a], 1; atom.or.acq_rel.cta.b32 r1, [a], 1; red.and.release.cta.global.b32 [a], 1;
		div.ftz.rn.f32 f0, f1, f2; ldmatrix.sync.aligned.x4.trans.m8n8.shared.b16 {r2, r3, r4, r5}, [a];
		wmma.load.a.sync.aligned.m16n16k16.row.f16 {r6, r7, r8, r9, r10, r11, r12, r13}, [a]; cvt.f32.rn.u32 f3, r1;
		ld.global.gpu.relaxed.u32 r14, [a]; fence.gpu.acq_rel;`,
		[]string{"atom.release.gpu.add.u32 ", "atom.acq_rel.cta.or.b32 ", "red.release.cta.global.and.b32 ", "div.rn.ftz.f32 ",
			"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 ", "wmma.load.a.sync.aligned.row.m16n16k16.f16 ", "cvt.rn.f32.u32 ",
			"ld.relaxed.gpu.global.u32 ", "fence.acq_rel.gpu;"}},
	{"vectors as parameters", `.func f(.reg .v4 .b32 a, .reg .f32 b)
		{ .reg .b32 s; add.u32 s, a.x, a.w; ret; }
		BODY .reg .v4 .b32 v; .reg .f32 c; call f, (v, c);`,
		[]string{".func f(.reg .b32 a_x, .reg .b32 a_y, .reg .b32 a_z, .reg .b32 a_w, .reg .f32 b)", "add.u32 s, a_x, a_w;",
			"call f, (v_x, v_y, v_z, v_w, c);"}},
	{"ranges of vectors", `.reg .v2 .f32 v<3>; .reg .b64 a; ld.v2.f32 v2, [a]; st.v2.f32 [a], {v2.y, v0.x};`,
		[]string{"ld.v2.f32 {v2_x, v2_y}, [a];", "st.v2.f32 [a], {v2_y, v0_x};"}},
	{"mov of vectors", `.reg .v4 .u16 v, w; .reg .b16 a, b; .reg .pred p; @p mov.v4.u16 v, w; mov.v2.b16 {a, b}, {b, a};`,
		[]string{"@p mov.u16 v_w, w_w;", "mov.b16 %temporary, a;\n\tmov.b16 a, b;\n\tmov.b16 b, %temporary;"}},
	{"sum as operand", `.reg .b32 r; .reg .s64 s; .reg .b64 a; .reg .pred p; st.u32 [a], r + 1; @!p st.s64 [a], s - 2 + 1;`,
		[]string{"add.u32 %temporary, r, 1;\n\tst.u32 [a], %temporary;",
			"@!p add.u64 %temporary_1, s, -1;\n\t@!p st.s64 [a], %temporary_1;"}},
	{"mov.b128", `.reg .b128 q, s; .reg .b64 a, b; mov.b128 q, {a, b}; mov.b128 s, q; mov.b128 {a, b}, s;`,
		[]string{"mov.b128 q, {a, b};", "mov.b128 s, q;", "mov.b128 {a, b}, s;"}},
	{"%gridid", `.reg .b32 r; .reg .b64 a; mov.u32 r, %gridid; mov.u64 a, %gridid;`,
		[]string{"mov.u32 r, %gridid;", "mov.u64 a, %gridid;"}},
	{"managed", `.visible .global .attribute(.managed) .align 8 .u32 g[2] = {1}; BODY`,
		[]string{".visible .global .attribute(.managed) .align 8 .u32 g[2] = {1};"}},
	{"bytes of an address", `.global .u32 p; .global .u8 a[5] = {0xFF(generic(p)), 0xFF00(p), 0xFF0000(generic(p)+4), 255(p-4), 7}; BODY`,
		[]string{"a[5] = {0xFF(generic(p)), 0xFF00(p), 0xFF0000(generic(p)+4), 0xFF(p+-4), 7};"}},
	{"max of three", `.reg .f32 f<4>; max.f32 f0, f1, f2, f3; min.ftz.NaN.abs.f32 f0, f1, f2, f3;`,
		[]string{"max.f32 f0, f1, f2, f3;", "min.ftz.NaN.abs.f32 f0, f1, f2, f3;"}},
	{"targets of calls", `.func a() { ret; } .func b() { ret; } .global .u64 table[2] = {a, b};
		BODY .reg .b64 f; ld.global.u64 f, [table+8]; to: .calltargets a, b; call f, (), to;`,
		[]string{"table[2] = {a, b};", ".calltargets a, b;", "call f, (), to;"}},
	{"textures", `.global .texref t; .global .surfref u; .tex .u32 old;
		BODY .reg .f32 f<5>; .reg .b32 r; .reg .b64 h; tex.2d.v4.f32.f32 {f0, f1, f2, f3}, [t, {f0, f1}];
		tex.3d.v4.f32.f32 {f0, _, _, f3}, [h, {f0, f1, f2, f2}]; txq.width.b32 r, [t]; suld.b.2d.b32.trap {r}, [u, {r, r}];
		sust.b.2d.b32.zero [h, {r, 0}], r; tld4.g.2d.v4.f32.f32 {f0, f1, f2, f3}, [old, {f0, f1}];`,
		[]string{".global .texref t;", ".global .surfref u;", ".global .texref old;",
			"[t, {f0, f1}];", "{f0, _, _, f3}, [h, {f0, f1, f2, f2}];", "suld.b.2d.b32.trap {r}, [u, {r, r}];"}},
	{"parts", `.reg .b32 r<5>; vadd.u32.s32.u32.sat r0.b1, r1.h1, r2, r3; vsub.s32.s32.s32.min r0, r1.b3, -7, r3;
		vshl.u32.u32.u32.clamp r0, r1, r2.b0; vshr.s32.s32.u32.sat.wrap r0.h1, r1.h0, 3, r3; vset.u32.s32.ge.max r0, r1, r2.b2, r3;
		vmad.s32.u32.s32.sat.shr7 r0, -r1.b0, r2.h1, r3; vmad.u32.u32.u32.po.shr15 r0, r1, r2, r3; vmad.u32.u32.u32 r0, r1, r2, -r3;
		vadd2.u32.u32.u32 r0.h1, r1.h32, r2.h00, r3; vavrg4.s32.u32.s32.add r0.b310, r1.b7654, r2, r3; vset4.u32.u32.lt r0, r1, r2, r3;
		{ .reg .v2 .b32 b; vmin.u32.u32.u32 b.x, b.y, r1; }`,
		[]string{"vadd.u32.s32.u32.sat r0.b1, r1.h1, r2, r3;", "vsub.s32.s32.s32.min r0, r1.b3, -7, r3;",
			"vshr.s32.s32.u32.sat.wrap r0.h1, r1.h0, 3, r3;", "vmad.s32.u32.s32.sat.shr7 r0, -r1.b0, r2.h1, r3;",
			"vmad.u32.u32.u32 r0, r1, r2, -r3;", "vadd2.u32.u32.u32 r0.h1, r1.h32, r2.h00, r3;",
			"vavrg4.s32.u32.s32.add r0.b310, r1.b7654, r2, r3;", "vmin.u32.u32.u32 b_x, b_y, r1;"}},
	{"alias", `.func b() { ret; } .visible .func a(); .alias a, b; BODY call a, ();`,
		[]string{".visible .func a();", "call b, ();", ".alias a, b;"}},
}

func acceptedModules(t *testing.T) map[string]*ir.Module {
	all := map[string]*ir.Module{}
	for _, c := range accepted {
		head, code, module := strings.Cut(c.text, "BODY")
		if !module {
			head, code = "", c.text
		}
		m, err := parse.Module(c.name, []byte(".version 8.8\n.target sm_100\n.address_size 64\n"+head+"\n.entry k()\n{\n"+code+"\n}\n"))
		require.NoError(t, err, c.name)
		all[c.name] = m
	}
	return all
}

func TestAccepted(t *testing.T) {
	all := acceptedModules(t)
	for _, c := range accepted {
		m := all[c.name]
		for _, want := range c.printed {
			require.Contains(t, m.String(), want, c.name)
		}
		roundTrip(t, m)
		_, _, err := ir.Requires(m)
		require.NoError(t, err, c.name)
	}
}

// TestPtxasAccepted: what is printed of them is PTX to ptxas too.
func TestPtxasAccepted(t *testing.T) {
	tool := ptxtest.Ptxas(t)
	for _, m := range acceptedModules(t) {
		assemble(t, tool, m)
	}
}
