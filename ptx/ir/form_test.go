package ir_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

// TestOpsHaveForms: every root has a form, or a reason why not.
func TestOpsHaveForms(t *testing.T) {
	ir.Ops(func(op ir.Op, info ir.OpInfo) {
		if info.Kind == ir.Directive {
			return
		}
		if ir.Unsupported(op) != "" {
			require.Empty(t, ir.FormsOf(op), op)
			in := ir.Instr{Op: op}
			_, err := ir.FormOf(&in)
			require.ErrorIs(t, err, compute.ErrUnsupported)
			return
		}
		require.NotEmpty(t, ir.FormsOf(op), op)
	})
}

// TestVariantsMatch: what the table generates, it recognises, and no variant needs less than its form.
func TestVariantsMatch(t *testing.T) {
	n := 0
	for f := range ir.Forms() {
		for mods := range f.Cover() {
			for _, in := range f.Samples(mods, func(ir.Type) ir.Reg { return 1 }) {
				if f.Op == "call" {
					in.Args = []ir.Operand{{Kind: ir.SymOperand, Sym: "f"}}
				}
				got, err := ir.FormOf(&in)
				require.NoError(t, err, f.Syntax)
				require.False(t, got.PTX.Less(ir.OldestVersion))
				require.GreaterOrEqual(t, got.SM.SM, ir.OldestTarget.SM)
				require.NotEmpty(t, got.Usage())
				n++
			}
		}
	}
	require.Greater(t, n, 2000)
}

func instr(code string, args ...ir.Operand) *ir.Instr {
	op, mods, _ := ir.SplitOpcode(code)
	return &ir.Instr{Op: op, Mods: mods, Args: args}
}

func TestFormOf(t *testing.T) {
	r, negated := ir.R(1), ir.Operand{Kind: ir.RegOperand, Reg: 1, Neg: true}
	part := func(name string) ir.Operand { return ir.Operand{Kind: ir.RegOperand, Reg: 1, Part: name} }
	for _, c := range []struct {
		in   *ir.Instr
		sm   string
		ptx  string
		want string // of the error
	}{
		{in: instr("add.u32", r, r, ir.Int(1)), sm: "sm_50", ptx: "4.0"},
		{in: instr("fma.rn.bf16x2", r, r, r, r), sm: "sm_80", ptx: "7.0"},
		{in: instr("max.NaN.xorsign.abs.f32", r, r, r), sm: "sm_86", ptx: "7.2"},
		{in: instr("ld.global.nc.L1::no_allocate.L2::128B.v4.f32", ir.Vec(r, r, r, r), ir.Addr(1, 0)), sm: "sm_75", ptx: "7.4"},
		{in: instr("wgmma.fence.sync.aligned"), sm: "sm_90a", ptx: "8.0"},
		{in: instr("atom.global.gpu.acq_rel.add.u32", r, ir.Addr(1, 0), r), sm: "sm_70", ptx: "6.0"}, // as Triton orders it
		{in: instr("ad.u32", r, r, r), want: "there is no such instruction"},
		{in: instr("add.approx.f32", r, r, r), want: "add has no part .approx at this place"},
		{in: instr("add", r, r, r), want: "a part of the opcode, such as its type, is missing"},
		{in: instr("add.u32", r, r), want: "2 operands are too few"},
		{in: instr("add.u32", r, r, r, r), want: "4 operands are too many"},
		{in: instr("add.u32", ir.Int(1), r, r), want: "operand 1 has to be a register of type .u32"},
		{in: instr("add.f32", r, r, ir.Int(1)), want: "operand 3 is an integer"},
		{in: instr("ld.global.v2.f32", r, ir.Addr(1, 0)), want: "operand 1 has to be a vector of 2 in braces"},
		{in: instr("ld.global.f32", r, r), want: "operand 2 has to be an address in brackets"},
		{in: instr("cp.async.cg.shared.global", ir.Addr(1, 0), ir.Addr(1, 0), ir.Int(8)), want: "operand 3 has to be one of [16]"},
		{in: instr("vmad.u32.u32.u32", r, part("b3"), ir.Operand{Kind: ir.RegOperand, Reg: 1, Neg: true}, r), sm: "sm_50", ptx: "4.0"},
		{in: instr("vadd.u32.u32.u32", part("h1"), part("b3"), ir.Int(3), r), sm: "sm_50", ptx: "4.0"},
		{in: instr("vadd4.u32.u32.u32", part("b310"), part("b7654"), r, r), sm: "sm_50", ptx: "4.0"},
		{in: instr("vadd.u32.u32.u32.add", part("h1"), r, r, r), want: "operand 1 has no parts to select"},
		{in: instr("vadd.u32.u32.u32", part("h1"), r, r), want: "3 operands are too few"},
		{in: instr("vadd.u32.u32.u32", r, part("h10"), r), want: "operand 2 has no part .h10; it may have b0, b1, b2, b3, h0, h1"},
		{in: instr("vadd2.u32.u32.u32", r, part("h34"), r, r), want: "operand 2 has no part .h34"},
		{in: instr("vadd4.u32.u32.u32", part("b01"), r, r, r), want: "operand 1 has no part .b01"},
		{in: instr("vadd4.u32.u32.u32", r, r, ir.Int(1), r), want: "operand 3 has to be a register"},
		{in: instr("vadd.u32.u32.u32", r, negated, r), want: "operand 2 cannot be negated with -"},
		{in: instr("vmad.s32.s32.s32.po", r, negated, r, r), want: "operand 2 cannot be negated with -"},
		{in: instr("vmad.s32.s32.s32", r, negated, r, negated), want: "operand 4 cannot be negated beside a negated product"},
		{in: instr("vmad.s32.s32.s32.shr7", r, negated, negated, negated), sm: "sm_50", ptx: "4.0"},
		{in: instr("add.u32", r, part("b0"), r), want: "operand 2 has no parts to select"},
	} {
		f, err := ir.FormOf(c.in)
		if c.want != "" {
			require.ErrorContains(t, err, c.want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.sm, f.SM.String(), c.in.Opcode())
		require.Equal(t, c.ptx, f.PTX.String(), c.in.Opcode())
	}
}

func TestUsage(t *testing.T) {
	require.Equal(t, "add.sat.s32 d, s, s", ir.FormsOf("add")[1].Usage())
	require.Equal(t, "shfl.sync.(up down bfly idx).b32 d|p, s, s, s, s", ir.FormsOf("shfl.sync")[0].Usage())
	require.Equal(t, "ret{.uni}", ir.FormsOf("ret")[0].Usage())
}

func TestRequires(t *testing.T) {
	f := &ir.Func{Name: "k", Entry: true, Body: []ir.Instr{*instr("ret")}, Regs: []ir.RegDecl{{},
		{Name: "r", Type: ir.U32}, {Name: "p", Type: ir.Pred}, {Name: "f", Type: ir.F32}}}
	m := &ir.Module{Funcs: []*ir.Func{f}}
	ask := func(extra ...*ir.Instr) string {
		f.Body = nil
		for _, in := range extra {
			f.Body = append(f.Body, *in)
		}
		v, target, err := ir.Requires(m)
		require.NoError(t, err)
		return v.String() + " " + target.String()
	}
	special := func(name string) *ir.Instr {
		return instr("mov.u32", ir.R(1), ir.Operand{Kind: ir.SpecialOperand, Sym: name})
	}
	require.Equal(t, "4.0 sm_50", ask(instr("ret")))
	require.Equal(t, "7.8 sm_90", ask(special("%clusterid.x")))
	require.Equal(t, "7.0 sm_80", ask(instr("cp.async.wait_all"), special("%tid.x")))
	require.Equal(t, "8.0 sm_90a", ask(instr("wgmma.fence.sync.aligned"), instr("elect.sync", ir.Operand{Kind: ir.PairOperand,
		Elems: []ir.Operand{ir.R(1), ir.R(2)}}, ir.R(1))))
	more := ir.Operand{Kind: ir.IntOperand, Bits: 120}
	require.Equal(t, "8.0 sm_90a", ask(instr("setmaxnreg.inc.sync.aligned.u32", more)))
	m.Target = ir.Target{SM: 120, Suffix: "a"}
	require.Equal(t, "8.7 sm_120a", ask(instr("setmaxnreg.inc.sync.aligned.u32", more)))
	require.Equal(t, "8.0 sm_90a", ask(instr("wgmma.fence.sync.aligned")))
	m.Target = ir.Target{}
	f.Bounds.ReqCluster = [3]int{2, 1, 1}
	require.Equal(t, "7.8 sm_90", ask(instr("ret")))
	f.Body = []ir.Instr{*instr("wgmma.fence.sync.aligned"), *instr("activemask.b32", ir.R(1)),
		*instr("redux.sync.min.f32", ir.R(3), ir.R(3), ir.R(1))}
	_, _, err := ir.Requires(m)
	require.ErrorContains(t, err, "no GPU has both")
}
