package ptxtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ptxtest"
	"github.com/wavelane/wavelane/ptx/sanitize"
	"github.com/wavelane/wavelane/ptx/sim"
)

// saxpy is as nvcc writes it: y[i] = a·x[i] + y[i] for i < n.
const saxpy = `.version 7.0
.target sm_80
.address_size 64
.visible .entry saxpy(.param .u32 saxpy_param_0, .param .f32 saxpy_param_1, .param .u64 saxpy_param_2, .param .u64 saxpy_param_3)
{
	.reg .pred %p<2>; .reg .f32 %f<5>; .reg .b32 %r<6>; .reg .b64 %rd<8>;
	ld.param.u32 %r2, [saxpy_param_0];
	ld.param.f32 %f1, [saxpy_param_1];
	ld.param.u64 %rd1, [saxpy_param_2];
	ld.param.u64 %rd2, [saxpy_param_3];
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %ctaid.x;
	mov.u32 %r5, %tid.x;
	mad.lo.s32 %r1, %r4, %r3, %r5;
	setp.ge.s32 %p1, %r1, %r2;
	@%p1 bra $L__BB0_2;
	cvta.to.global.u64 %rd3, %rd1;
	mul.wide.s32 %rd4, %r1, 4;
	add.s64 %rd5, %rd3, %rd4;
	cvta.to.global.u64 %rd6, %rd2;
	add.s64 %rd7, %rd6, %rd4;
	ld.global.f32 %f2, [%rd5];
	ld.global.f32 %f3, [%rd7];
	fma.rn.f32 %f4, %f2, %f1, %f3;
	st.global.f32 [%rd7], %f4;
$L__BB0_2:
	ret;
}
`

// add is as Triton writes it: blocks of 128 threads, guarded accesses, two pointers of scratch memory after the arguments.
const add = `.version 8.4
.target sm_80
.address_size 64
.visible .entry add_kernel(.param .u64 .ptr .global .align 1 p0, .param .u64 .ptr .global .align 1 p1, .param .u64 .ptr .global .align 1 p2,
	.param .u32 p3, .param .u64 .ptr .global .align 1 p4, .param .u64 .ptr .global .align 1 p5)
.reqntid 128
{
	.reg .pred %p<2>; .reg .b32 %r<10>; .reg .b64 %rd<8>;
	ld.param.b64 %rd1, [p0];
	ld.param.b64 %rd2, [p1];
	ld.param.b64 %rd3, [p2];
	ld.param.b32 %r1, [p3];
	mov.u32 %r2, %ctaid.x;
	shl.b32 %r3, %r2, 7;
	mov.u32 %r4, %tid.x;
	or.b32 %r5, %r3, %r4;
	setp.lt.s32 %p1, %r5, %r1;
	mad.wide.s32 %rd4, %r5, 4, %rd1;
	mov.u32 %r6, 0x0;
	@%p1 ld.global.b32 { %r6 }, [ %rd4 + 0 ];
	mad.wide.s32 %rd5, %r5, 4, %rd2;
	mov.u32 %r7, 0x0;
	@%p1 ld.global.b32 { %r7 }, [ %rd5 + 0 ];
	add.s32 %r8, %r6, %r7;
	mad.wide.s32 %rd6, %r5, 4, %rd3;
	@%p1 st.global.b32 [ %rd6 + 0 ], { %r8 };
	ret;
}
`

func Example_nvcc() {
	k, err := ptxtest.Parse("saxpy.ptx", []byte(saxpy), "saxpy")
	if err != nil {
		fmt.Println(err)
		return
	}
	x, y := []float32{1, 2, 3}, []float32{10, 20, 30}
	err = k.Check(context.Background(), ptxtest.Launch{Block: sim.Dim3{X: 32}}, int32(3), float32(2), x, y)
	fmt.Println(y, err)
	// Output: [12 24 36] <nil>
}

func Example_triton() {
	k, err := ptxtest.Parse("add_kernel.ptx", []byte(add), "add_kernel")
	if err != nil {
		fmt.Println(err)
		return
	}
	x, y, z := []int32{1, 2, 3}, []int32{10, 20, 30}, make([]int32, 3)
	// Triton's hidden parameters, scratch memory and profiling, are not used here.
	err = k.Check(context.Background(), ptxtest.Launch{Block: sim.Dim3{X: 128}}, x, y, ptxtest.Out{Slice: z}, int32(3), nil, nil)
	fmt.Println(z, err)
	// Output: [11 22 33] <nil>
}

func TestSaxpy(t *testing.T) {
	k, err := ptxtest.Parse("saxpy.ptx", []byte(saxpy), "saxpy")
	require.NoError(t, err)
	x, y, want := make([]float32, 1000), make([]float32, 1000), make([]float32, 1000)
	for i := range x {
		x[i], y[i] = float32(i), 1
		want[i] = 2.5*x[i] + y[i]
	}
	k.Run(t, ptxtest.Launch{Grid: sim.Dim3{X: 4}, Block: sim.Dim3{X: 256}}, int32(len(x)), float32(2.5), x, y)
	ptxtest.Near(t, y, want, 1e-6, 0)
}

// What a kernel does wrong is an error that says so, and leaves slices alone.
func TestWrong(t *testing.T) {
	k, err := ptxtest.Parse("saxpy.ptx", []byte(saxpy), "saxpy")
	require.NoError(t, err)
	block := ptxtest.Launch{Block: sim.Dim3{X: 32}}
	x, y := []float32{1, 2, 3}, []float32{10, 20, 30}
	err = k.Check(t.Context(), block, int32(4), float32(2), x, y)
	require.ErrorContains(t, err, "Invalid __global__ read of size 4 bytes")
	require.ErrorContains(t, err, "argument 2 of 12 bytes")
	require.Equal(t, []float32{10, 20, 30}, y)
	err = k.Check(t.Context(), block, int32(3), float32(2), x, ptxtest.Out{Slice: y})
	require.ErrorContains(t, err, "Uninitialized __global__ memory read")
	block.Skip = sanitize.Initcheck
	require.NoError(t, k.Check(t.Context(), block, int32(3), float32(2), x, ptxtest.Out{Slice: y}))
	for _, args := range [][]any{{}, {int32(3), float32(2), x, "y"}, {int64(3), float32(2), x, y}, {int32(3), float32(2), []int{1}, y}} {
		require.ErrorIs(t, k.Check(t.Context(), block, args...), compute.ErrArgument)
	}
	_, err = ptxtest.Parse("saxpy.ptx", []byte(saxpy), "sixpy")
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = ptxtest.Load("none.ptx", "k")
	require.Error(t, err)
}

// last stores the block's number: which one remains depends on their order.
const last = `.version 7.0
.target sm_80
.address_size 64
.visible .entry last(.param .u64 p)
{
	.reg .b32 %r<3>; .reg .b64 %rd<2>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %ctaid.x;
	atom.global.exch.b32 %r2, [%rd1], %r1;
	ret;
}
`

func TestVaries(t *testing.T) {
	k, err := ptxtest.Parse("last.ptx", []byte(last), "last")
	require.NoError(t, err)
	l := ptxtest.Launch{Grid: sim.Dim3{X: 64}}
	require.ErrorContains(t, k.Check(t.Context(), l, []uint32{0}), "order in which blocks and warps run")
	l.Varies = true
	k.Run(t, l, []uint32{0})
}
