package ptxtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
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

// sampled is y[i] = s·(x[i] + the texture between texels i and i + 1), and so into the surface.
const sampled = `.version 7.0
.target sm_80
.address_size 64
.const .f32 s;
.global .surfref copy;
.visible .entry sampled(.param .u64 t, .param .u64 x, .param .u64 y)
{
	.reg .b32 %r<3>; .reg .f32 %f<8>; .reg .b64 %rd<5>;
	ld.param.u64 %rd1, [t];
	ld.param.u64 %rd2, [x];
	ld.param.u64 %rd3, [y];
	mov.u32 %r1, %tid.x;
	cvt.rn.f32.u32 %f1, %r1;
	add.rn.f32 %f1, %f1, 0f3F800000;
	tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1}];
	mul.wide.u32 %rd4, %r1, 4;
	add.u64 %rd2, %rd2, %rd4;
	add.u64 %rd3, %rd3, %rd4;
	ld.global.f32 %f5, [%rd2];
	add.rn.f32 %f5, %f5, %f1;
	ld.const.f32 %f6, [s];
	mul.rn.f32 %f5, %f5, %f6;
	st.global.f32 [%rd2], %f5;
	st.global.f32 [%rd3], %f5;
	shl.b32 %r2, %r1, 2;
	sust.b.1d.b32.trap [copy, {%r2}], %f5;
	ret;
}
`

// Textures, surfaces, variables of the module, and several launches.
func TestImages(t *testing.T) {
	k, err := ptxtest.Parse("sampled.ptx", []byte(sampled), "sampled")
	require.NoError(t, err)
	row := sim.Image{Width: 3, Type: ir.F32, Channels: 1}
	texture := ptxtest.Texture{Slice: []float32{2, 4, 8}, Image: row, Sampler: sim.Sampler{Linear: true, Address: [3]sim.AddressMode{sim.Clamp}}}
	l := ptxtest.Launch{Block: sim.Dim3{X: 3}, Repeat: 2, Symbols: map[string]any{"s": float32(2), "copy": ptxtest.Surface{Slice: make([]float32, 3), Image: row}}}
	x, y := []float32{1, 1, 1}, make([]float32, 3)
	k.Run(t, l, texture, x, ptxtest.Out{Slice: y})
	require.Equal(t, []float32{2 * (2*(1+3) + 3), 2 * (2*(1+6) + 6), 2 * (2*(1+8) + 8)}, y)
	require.Equal(t, y, x)

	short := texture
	short.Slice = []float32{1, 2}
	require.ErrorIs(t, k.Check(t.Context(), l, short, x, y), compute.ErrArgument)
	for name, v := range map[string]any{"s": float64(2), "none": float32(1), "copy": texture} {
		wrong := l
		wrong.Symbols = map[string]any{"s": float32(2), name: v}
		require.ErrorIs(t, k.Check(t.Context(), wrong, texture, x, y), compute.ErrArgument, name)
	}
}
