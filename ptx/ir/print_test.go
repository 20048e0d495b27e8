package ir_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/ir"
)

func TestPrint(t *testing.T) {
	m := &ir.Module{
		Version: ir.Version{Major: 7, Minor: 0}, Target: ir.Target{SM: 80}, AddressSize: 64,
		Vars: []ir.Var{
			{Name: "table", Space: ir.ConstSpace, Linkage: ir.Visible, Type: ir.S16, Align: 4, Dims: []int{3},
				Init: []ir.Init{{Bits: 1}, {Bits: 0xfffe}}},
			{Name: "where", Space: ir.GlobalSpace, Type: ir.U64, Init: []ir.Init{{Sym: "table", Bits: 4, Generic: true}}},
			{Name: "dynamic", Space: ir.SharedSpace, Linkage: ir.Extern, Type: ir.B8, Align: 16, Dims: []int{0}},
		},
		Funcs: []*ir.Func{{
			Name: "k", Entry: true, Linkage: ir.Visible,
			Params: []ir.Var{{Name: "x", Space: ir.ParamSpace, Type: ir.U64, Ptr: true, PtrSpace: ir.GlobalSpace, PtrAlign: 4}},
			Bounds: ir.Bounds{MaxThreads: [3]int{128}},
			Regs: []ir.RegDecl{{}, {Name: "%rd0", Type: ir.U64}, {Name: "%p", Type: ir.Pred}, {Name: "%f2", Type: ir.F32},
				{Name: "%f7", Type: ir.F32}},
			Body: []ir.Instr{
				{Op: "ld", Mods: []ir.Mod{ir.Param, "u64"}, Args: []ir.Operand{ir.R(1), ir.AddrOf("x", 0)}},
				{Op: ir.OpLabel, Args: []ir.Operand{ir.LabelOf("L")}},
				{Op: "ld", Mods: []ir.Mod{ir.Global, ir.V2, "f32"}, Args: []ir.Operand{ir.Vec(ir.R(3), ir.R(4)), ir.Addr(1, -8)}},
				{Op: "setp", Mods: []ir.Mod{"lt", "f32"}, Args: []ir.Operand{ir.R(2), ir.R(3),
					{Kind: ir.F32Operand, Bits: 0x3f800000}}},
				{Guard: ir.Guard{Reg: 2, Not: true}, Op: "bra", Mods: []ir.Mod{ir.Uni}, Args: []ir.Operand{ir.LabelOf("L")}},
				{Op: "ret"},
			},
		}},
	}
	require.Equal(t, `.version 7.0
.target sm_80
.address_size 64

.visible .const .align 4 .s16 table[3] = {1, -2};
.global .u64 where = generic(table)+4;
.extern .shared .align 16 .b8 dynamic[];

.visible .entry k(
	.param .u64 .ptr .global .align 4 x
)
.maxntid 128, 1, 1
{
	.reg .pred %p;
	.reg .u64 %rd<1>;
	.reg .f32 %f<8>;
	ld.param.u64 %rd0, [x];
L:
	ld.global.v2.f32 {%f2, %f7}, [%rd0+-8];
	setp.lt.f32 %p, %f2, 0f3F800000;
	@!%p bra.uni L;
	ret;
}
`, m.String())
	require.True(t, ir.Equal(m, m.Clone()))
	c := m.Clone()
	c.Funcs[0].Body[2].Args[0].Elems[1].Reg = 3
	require.False(t, ir.Equal(m, c))
}

func TestSplitOpcode(t *testing.T) {
	op, mods, ok := ir.SplitOpcode("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes")
	require.True(t, ok)
	require.Equal(t, ir.Op("cp.async.bulk.tensor"), op)
	require.Equal(t, []ir.Mod{"2d", "shared::cluster", "global", "tile", "mbarrier::complete_tx::bytes"}, mods)
	op, mods, ok = ir.SplitOpcode("mul.wide.u32")
	require.True(t, ok)
	require.Equal(t, ir.Op("mul"), op)
	require.Equal(t, []ir.Mod{ir.Wide, "u32"}, mods)
	_, _, ok = ir.SplitOpcode("muull.f32")
	require.False(t, ok)
}

func TestRegs(t *testing.T) {
	in := ir.Instr{Op: "ld", Mods: []ir.Mod{ir.Global, ir.V2, "f32"}, Guard: ir.Guard{Reg: 9},
		Args: []ir.Operand{ir.Vec(ir.R(3), ir.R(4)), ir.Addr(1, -8)}}
	var read, written []ir.Reg
	in.Regs(func(r ir.Reg, role ir.Role) {
		if role == ir.Read {
			read = append(read, r)
		} else {
			written = append(written, r)
		}
	})
	require.Equal(t, []ir.Reg{9, 1}, read)
	require.Equal(t, []ir.Reg{3, 4}, written)
}
