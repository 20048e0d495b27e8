package sim_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
	"github.com/wavelane/wavelane/ptx/sim"
)

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		kind   sim.FaultKind
		code   string
		l      sim.Launch
		detail string
		line   int // of the body's first line of code, from 0
	}{
		"past the end":   {sim.OutOfBounds, "st.global.u32 [%mine], 1;", threads(65), "4 bytes at 0 bytes past the end of the allocation", 0},
		"straddling":     {sim.OutOfBounds, "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%out+248];", threads(1), "", 0},
		"before":         {sim.OutOfBounds, "ld.global.u32 %r1, [%out+-4];", threads(1), "4 bytes before the allocation", 0},
		"null":           {sim.OutOfBounds, "mov.u64 %rd1, 0;\nst.global.u32 [%rd1], 1;", threads(1), "null pointer", 1},
		"null generic":   {sim.OutOfBounds, "mov.u64 %rd1, 8;\nst.u32 [%rd1], 1;", threads(1), "null pointer", 1},
		"shared":         {sim.OutOfBounds, ".shared .b8 s[10];\nld.shared.u32 %r1, [s+8];", threads(1), "shared memory, which has 10 bytes", 1},
		"shared generic": {sim.OutOfBounds, ".shared .b8 s[8];\ncvta.shared.u64 %rd1, s;\nld.u32 %r1, [%rd1+8];", threads(1), "offset 8", 2},
		"shared of another block": {sim.OutOfBounds, ".shared .b8 s[8];\nmov.u32 %r1, 0x2000000;\nld.shared.u32 %r1, [%r1];", threads(1),
			"no block", 2},
		"local":      {sim.OutOfBounds, ".local .b8 s[16];\nst.local.u32 [s+16], 1;", threads(1), "offset 16", 1},
		"constant":   {sim.OutOfBounds, "mov.u64 %rd1, table;\nst.global.u32 [%rd1], 1;", threads(1), "only be read", 1},
		"const":      {sim.OutOfBounds, "ld.const.u32 %r1, [%out];", threads(1), "", 0},
		"parameters": {sim.OutOfBounds, "ld.param.u64 %rd1, [out+8];", threads(1), "parameters", 0},
		"misaligned": {sim.Misaligned, "ld.global.u32 %r1, [%out+2];", threads(1), "multiple of 4", 0},
		"vector":     {sim.Misaligned, "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%out+8];", threads(1), "multiple of 16", 0},
		"atomic":     {sim.Misaligned, "red.global.add.u64 [%out+4], 1;", threads(1), "multiple of 8", 0},
		"trap":       {sim.Trap, "setp.eq.u32 %p1, %t, 3;\n@%p1 trap;", threads(8), "", 1},
		"timeout":    {sim.Timeout, "LOOP:\nbra LOOP;", threads(1), "the limit is", 1},
		"call":       {sim.BadOperand, "mov.u64 %rd1, 16;\npr: .callprototype _ ();\ncall %rd1, pr;", threads(1), "no function", 2},
		"targets":    {sim.BadOperand, "ts: .branchtargets A;\nbrx.idx %t, ts;\nA:", threads(2), "index 1 of 1", 1},

		"divided barrier": {sim.BarrierDivergence, "setp.lt.u32 %p1, %t, 7;\n@%p1 bar.sync 0;\nbar.sync 1;", threads(32), "cannot come", 1},
		"barrier after exit": {sim.BarrierDivergence, "setp.lt.u32 %p1, %t, 7;\n@%p1 exit;\nbar.sync 0;", threads(32),
			"lanes 0x0000007f have exited", 2},
		"exit beside a barrier": {sim.BarrierDivergence, "setp.lt.u32 %p1, %t, 7;\n@%p1 bar.sync 0;", threads(32), "have exited", 1},
		"count beyond reach": {sim.BarrierDivergence, "setp.lt.u32 %p1, %t, 32;\n@%p1 bar.sync 0, 64;", threads(64),
			"32 threads have exited", 1},
		"two barriers": {sim.Deadlock, "setp.lt.u32 %p1, %t, 32;\n@%p1 bra A;\nbar.sync 1, 64;\nbra B;\nA:\nbar.sync 2, 64;\nB:", threads(64),
			"warp 1", 5},
		"barrier id":      {sim.BadOperand, "mov.u32 %r1, 16;\nbar.sync %r1;", threads(32), "0 to 15", 1},
		"barrier count":   {sim.BadOperand, "bar.sync 0, 33;", threads(64), "multiple of 32", 0},
		"barrier purpose": {sim.BadOperand, "setp.lt.u32 %p1, %t, 32;\n@%p1 bra A;\nbar.sync 1, 96;\nbra B;\nA:\nbar.sync 1, 64;\nB:", threads(96), "in use", -1},
		"cluster barrier": {sim.BadOperand, "barrier.cluster.wait;", threads(32), "not arrived", 0},

		"shuffle mask":         {sim.WarpSync, "setp.lt.u32 %p1, %t, 4;\n@%p1 bra A;\nshfl.sync.bfly.b32 %r1, %t, 1, 31, 0xff;\nA:", threads(32), "does not name", 2},
		"vote elsewhere":       {sim.WarpSync, "setp.lt.u32 %p1, %t, 4;\n@%p1 bra A;\nvote.sync.any.pred %p2, %p1, -1;\nbra B;\nA:\nvote.sync.all.pred %p2, %p1, -1;\nB:", threads(32), "cannot come", -1},
		"mask beyond the warp": {sim.WarpSync, "bar.warp.sync 0xffff;", threads(8), "does not have", 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := fault(t, sim.Config{MaxSteps: 1 << 20}, c.kind, ".const .u32 table[2] = {1, 2};\n"+body(c.code), c.l)
			require.Contains(t, f.Error(), c.detail)
			require.Equal(t, "k", f.Kernel)
			require.Equal(t, "test.ptx", f.Pos.File)
			const firstLine = 12
			if c.line >= 0 {
				require.Equal(t, firstLine+c.line, f.Pos.Line, "%v", f)
			}
			require.NotEmpty(t, f.Instr)
			require.ErrorIs(t, f, compute.ErrArgument)
			for range 3 { // under any schedule it is found, though perhaps at another place
				fault(t, sim.Config{MaxSteps: 1 << 16, Seed: ptxtest.Random(t).Uint64() | 1}, c.kind, ".const .u32 table[2] = {1, 2};\n"+body(c.code), c.l)
			}
		})
	}
}

func TestFaultFields(t *testing.T) {
	f := fault(t, sim.Config{}, sim.OutOfBounds, body("setp.ne.u32 %p1, %t, 37;\nmov.u32 %r1, %ctaid.y;\nsetp.ne.or.u32 %p1, %r1, 2, %p1;\n@%p1 exit;\n"+
		"ld.global.u32 %r1, [%out+1024];"), sim.Launch{Grid: sim.Dim3{X: 1, Y: 3}, Block: sim.Dim3{X: 64}})
	require.Equal(t, sim.Dim3{X: 0, Y: 2}, f.Block)
	require.Equal(t, sim.Dim3{X: 37}, f.Thread)
	require.Equal(t, ir.GlobalSpace, f.Space)
	require.Equal(t, "ld.global.u32 %r1, [%out+1024];", f.Instr)
	require.Contains(t, f.Detail, "768 bytes past the end of")
	require.Contains(t, f.Error(), "block (0, 2, 0), thread (37, 0, 0), at test.ptx:")
}

func TestUsableAfterFault(t *testing.T) {
	g := sim.New(sim.Config{Workers: 3})
	m, err := g.Load(module(t, body("mov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p1, %r1, 40;\n@%p1 bra OK;\ntrap;\nOK:\nmul.wide.u32 %rd1, %r1, 4;\nadd.u64 %rd1, %out, %rd1;\nst.global.u32 [%rd1], 3;")))
	require.NoError(t, err)
	k, err := m.Kernel("k")
	require.NoError(t, err)
	out := upload(t, g, make([]uint32, 50))
	p, err := k.Pack(out)
	require.NoError(t, err)
	var f *sim.Fault
	_, err = g.Run(context.Background(), k, sim.Launch{Grid: sim.Dim3{X: 50}, Block: sim.Dim3{X: 1}, Params: p})
	require.ErrorAs(t, err, &f)
	require.Equal(t, sim.Trap, f.Kind)
	_, err = g.Run(context.Background(), k, sim.Launch{Grid: sim.Dim3{X: 40}, Block: sim.Dim3{X: 1}, Params: p})
	require.NoError(t, err)
	require.EqualValues(t, 3, words(t, g, out, 50)[39])
}

func TestLaunchErrors(t *testing.T) {
	src := `.visible .entry k(.param .u64 p, .param .f32 x) .reqntid 64, 1, 1 { .shared .b8 s[1024]; st.shared.u8 [s], 1; ret; }
.visible .entry m() .maxntid 128, 1, 1 { ret; }
.visible .entry c() .reqnctapercluster 2, 1, 1 { ret; }
.visible .entry r() .maxclusterrank 4 { ret; }`
	g := sim.New(sim.Config{})
	mod, err := g.Load(module(t, src))
	require.NoError(t, err)
	params := make([]byte, 12)
	d := func(x, y, z int) sim.Dim3 { return sim.Dim3{X: x, Y: y, Z: z} }
	for name, c := range map[string]struct {
		kernel string
		l      sim.Launch
		is     error
		text   string
	}{
		"empty grid":      {"m", sim.Launch{Block: d(1, 1, 1)}, compute.ErrArgument, "empty"},
		"negative":        {"m", sim.Launch{Grid: d(-1, 1, 1), Block: d(1, 1, 1)}, compute.ErrArgument, "grid"},
		"grid y":          {"m", sim.Launch{Grid: d(1, 65536, 1), Block: d(1, 1, 1)}, compute.ErrArgument, "65535"},
		"block over 1024": {"r", sim.Launch{Grid: d(1, 1, 1), Block: d(32, 32, 2)}, compute.ErrArgument, "1024"},
		"block z":         {"r", sim.Launch{Grid: d(1, 1, 1), Block: d(1, 1, 65)}, compute.ErrArgument, "64"},
		"reqntid":         {"k", sim.Launch{Grid: d(1, 1, 1), Block: d(32, 1, 1), Params: params}, compute.ErrArgument, ".reqntid (64, 1, 1)"},
		"maxntid":         {"m", sim.Launch{Grid: d(1, 1, 1), Block: d(129, 1, 1)}, compute.ErrArgument, ".maxntid 128"},
		"parameters":      {"k", sim.Launch{Grid: d(1, 1, 1), Block: d(64, 1, 1), Params: params[:8]}, compute.ErrArgument, "8 bytes of parameters, the kernel's take 12"},
		"shared": {"k", sim.Launch{Grid: d(1, 1, 1), Block: d(64, 1, 1), Params: params, Shared: 227<<10 - 1023}, compute.ErrTooLarge,
			"1024 of static shared memory, the limit is 232448"},
		"negative shared": {"m", sim.Launch{Grid: d(1, 1, 1), Block: d(1, 1, 1), Shared: -1}, compute.ErrArgument, "-1 bytes"},
		"cluster shape":   {"c", sim.Launch{Grid: d(3, 1, 1), Block: d(1, 1, 1)}, compute.ErrArgument, "no multiple"},
		"cluster wanted":  {"c", sim.Launch{Grid: d(4, 1, 1), Block: d(1, 1, 1), Cluster: d(4, 1, 1)}, compute.ErrArgument, ".reqnctapercluster"},
		"cluster rank":    {"r", sim.Launch{Grid: d(8, 1, 1), Block: d(1, 1, 1), Cluster: d(8, 1, 1)}, compute.ErrArgument, ".maxclusterrank 4"},
		"cluster size":    {"m", sim.Launch{Grid: d(32, 1, 1), Block: d(1, 1, 1), Cluster: d(32, 1, 1)}, compute.ErrArgument, "16"},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := mod.Kernel(c.kernel)
			require.NoError(t, err)
			_, err = g.Run(context.Background(), k, c.l)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.text)
			require.ErrorContains(t, err, "launch of "+c.kernel)
		})
	}
	k, err := mod.Kernel("k")
	require.NoError(t, err)
	require.Len(t, k.Params(), 2)
	for _, args := range [][]any{{}, {uint64(1)}, {uint32(1), float32(1)}, {uint64(1), uint32(1)}, {uint64(1), 1.0}, {nil, float32(1)},
		{"x", float32(1)}, {float64(1), float32(1)}, {[]byte{1}, float32(1)}} {
		_, err := k.Pack(args...)
		require.ErrorIs(t, err, compute.ErrArgument, "%v", args)
	}
	p, err := k.Pack(int64(-1), float32(1))
	require.NoError(t, err)
	require.Equal(t, []byte{255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0x80, 0x3f}, p)
	_, err = mod.Kernel("absent")
	require.ErrorContains(t, err, "c, k, m, r")
	_, err = sim.New(sim.Config{}).Run(context.Background(), k, threads(1))
	require.ErrorIs(t, err, compute.ErrArgument)
}

func TestLoadErrors(t *testing.T) {
	g := sim.New(sim.Config{})
	_, err := g.Load(nil)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = g.Load(module(t, ".extern .global .u32 x;"))
	require.ErrorIs(t, err, compute.ErrUnsupported)
	_, err = g.Load(&ir.Module{AddressSize: 32})
	require.ErrorIs(t, err, compute.ErrUnsupported)
	m, err := g.Load(module(t, ".extern .func f(.param .b32 x);\n"+body("call f, (5);")))
	require.NoError(t, err)
	_, err = m.Kernel("k")
	require.ErrorIs(t, err, compute.ErrUnsupported)
	require.ErrorContains(t, err, "function f is declared")
	// An instruction that is not executed is an error that names it, wherever the module came from.
	_, err = g.Load(&ir.Module{AddressSize: 64, Funcs: []*ir.Func{{Name: "k", Entry: true, Regs: make([]ir.RegDecl, 1),
		Body: []ir.Instr{{Op: "tcgen05.shift", Pos: ir.Pos{File: "x", Line: 7}}}}}})
	require.ErrorIs(t, err, compute.ErrUnsupported)
	require.ErrorContains(t, err, "x:7: tcgen05.shift:")
	_, _, err = m.Global("y")
	require.ErrorIs(t, err, compute.ErrArgument)
	// So are operands that no text has.
	_, err = g.Load(&ir.Module{AddressSize: 64, Funcs: []*ir.Func{{Name: "k", Entry: true, Regs: []ir.RegDecl{{}, {Name: "%r", Type: ir.B32}},
		Body: []ir.Instr{{Op: "shfl", Mods: []ir.Mod{"idx", "b32"}, Args: []ir.Operand{
			{Kind: ir.PairOperand, Elems: []ir.Operand{ir.R(1)}}, ir.R(1), ir.Int(0), ir.Int(31)}}}}}})
	require.ErrorIs(t, err, compute.ErrArgument)
}

// A thread's variables have a limit on every GPU.
func TestLocalMemory(t *testing.T) {
	for n, want := range map[int]error{512 << 10: nil, 512<<10 + 1: compute.ErrTooLarge, 1 << 40: compute.ErrTooLarge} {
		m, err := parse.Module("local", fmt.Appendf(nil, ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n"+
			".local .b8 x[%d];\n.reg .b64 %%rd<2>;\nmov.u64 %%rd1, x;\nret;\n}\n", n))
		require.NoError(t, err)
		loaded, err := sim.New(sim.Config{}).Load(m)
		require.NoError(t, err)
		_, err = loaded.Kernel("k")
		require.ErrorIs(t, err, want)
	}
}

func TestHostMemory(t *testing.T) {
	g := sim.New(sim.Config{})
	_, err := g.Alloc(-1)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = g.Alloc(1 << 40)
	require.ErrorIs(t, err, compute.ErrTooLarge)
	_, err = g.Load(&ir.Module{AddressSize: 64, Vars: []ir.Var{{Name: "x", Space: ir.GlobalSpace, Type: ir.B8, Dims: []int{1 << 40}}}})
	require.ErrorIs(t, err, compute.ErrTooLarge)
	a, err := g.Alloc(100)
	require.NoError(t, err)
	require.Zero(t, a%256)
	empty, err := g.Alloc(0)
	require.NoError(t, err)
	b, err := g.Alloc(1)
	require.NoError(t, err)
	require.Greater(t, b, empty)
	require.NoError(t, g.Write(a+10, []byte{1, 2, 3}))
	require.NoError(t, g.Fill(a+11, 1, 9))
	got := make([]byte, 3)
	require.NoError(t, g.Read(got, a+10))
	require.Equal(t, []byte{1, 9, 3}, got)
	var f *sim.Fault
	require.ErrorAs(t, g.Write(a+98, got), &f)
	require.Equal(t, sim.OutOfBounds, f.Kind)
	require.ErrorAs(t, g.Read(got, a-1), &f)
	require.ErrorAs(t, g.Fill(empty, 1, 0), &f)
	require.ErrorIs(t, g.Fill(a, -1, 0), compute.ErrArgument)
	require.ErrorIs(t, g.Free(a+1), compute.ErrArgument)
	require.NoError(t, g.Free(a))
	require.NoError(t, g.Free(0))
	require.ErrorContains(t, g.Free(a), "freed")
	require.ErrorAs(t, g.Read(got, a), &f)
	require.Contains(t, f.Detail, "has been freed")
	m, err := g.Load(module(t, ".visible .global .align 4 .u16 v[3] = {1, 2};"))
	require.NoError(t, err)
	at, n, err := m.Global("v")
	require.NoError(t, err)
	require.Equal(t, 6, n)
	six := make([]byte, 6)
	require.NoError(t, g.Read(six, at))
	require.Equal(t, []byte{1, 0, 2, 0, 0, 0}, six)
	require.ErrorIs(t, g.Free(at), compute.ErrArgument)
}
