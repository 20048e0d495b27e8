package ptx_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx"
)

// Loops: tested at the end, first test only where the bounds are not known, variables without moves, labels in order.
func TestGoldenLoop(t *testing.T) {
	m := ptx.NewModule()
	k := m.Kernel("sum")
	n := ptx.Param[uint32](k, "n")
	x := ptx.PointerParam[float32](k, "x")
	sum := ptx.VarOf(k, ptx.Imm[float32](0))
	ptx.For(k, 0, n, 1, func(i ptx.Reg[uint32]) {
		v := x.At(i).At(-1).Load()
		k.ContinueIf(v.Ne(v))
		sum.Set(sum.Get().Add(v))
	})
	x.Store(sum.Get())
	built, err := m.Build()
	require.NoError(t, err)
	require.Equal(t, `.version 4.0
.target sm_50
.address_size 64

.visible .entry sum(
	.param .u32 n,
	.param .u64 .ptr .global .align 4 x
)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<4>;
	.reg .f32 %f<3>;
	.reg .pred %p<4>;
	ld.param.u32 %r1, [n];
	ld.param.u64 %rd1, [x];
	cvta.to.global.u64 %rd2, %rd1;
	mov.f32 %f1, 0f00000000;
	mov.b32 %r2, 0;
	setp.ge.u32 %p1, %r2, %r1;
	@%p1 bra $for1_end;
$for1:
	mad.wide.u32 %rd3, %r2, 4, %rd2;
	ld.global.f32 %f2, [%rd3+-4];
	setp.neu.f32 %p2, %f2, %f2;
	@%p2 bra $for1_next;
	add.rn.f32 %f1, %f1, %f2;
$for1_next:
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p3, %r2, %r1;
	@%p3 bra $for1;
$for1_end:
	st.global.f32 [%rd2], %f1;
	ret;
}
`, built.String())
}

// Shared memory, predicates, both sides of an If, and a value that its variable did not take over.
func TestGoldenBranches(t *testing.T) {
	m := ptx.NewModule()
	k := m.Kernel("branches")
	k.MaxThreads(64, 2, 1)
	s := ptx.SharedArray[uint32](k, "cell", 2)
	tid := k.Tid(ptx.X)
	v := ptx.VarOf(k, tid)
	p := tid.Lt(2)
	k.If(p, func() { v.Set(7) }, func() { v.Set(tid.Mul(tid)) })
	ptx.StoreIf(p, s.At(tid), v.Get())
	k.Barrier()
	k.ReturnIf(p)
	s.At(1).Store(ptx.LoadIf(p, s, 0))
	built, err := m.Build()
	require.NoError(t, err)
	require.Equal(t, `.visible .entry branches()
.maxntid 64, 2, 1
{
	.reg .b32 %r<6>;
	.reg .pred %p<2>;
	.shared .align 4 .u32 cell[2];
	mov.u32 %r1, %tid.x;
	mov.b32 %r2, %r1;
	setp.lt.u32 %p1, %r1, 2;
	@!%p1 bra $if1_else;
	mov.b32 %r2, 7;
	bra $if1_end;
$if1_else:
	mul.lo.u32 %r2, %r1, %r1;
$if1_end:
	mov.u32 %r3, cell;
	mad.lo.u32 %r4, %r1, 4, %r3;
	@%p1 st.shared.u32 [%r4], %r2;
	bar.sync 0;
	@%p1 ret;
	mov.b32 %r5, 0;
	@%p1 ld.shared.u32 %r5, [cell];
	st.shared.u32 [cell+4], %r5;
	ret;
}
`, built.Func("branches").String())
}
