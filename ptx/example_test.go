package ptx_test

import (
	"fmt"

	"github.com/wavelane/wavelane/ptx"
)

// y = a·x + y, one thread per element.
func Example() {
	m := ptx.NewModule()
	k := m.Kernel("saxpy")
	k.MaxThreads(256, 1, 1)
	n := ptx.Param[uint32](k, "n")
	a := ptx.Param[float32](k, "a")
	x := ptx.PointerParam[float32](k, "x")
	y := ptx.PointerParam[float32](k, "y")
	i := k.GlobalID(ptx.X)
	k.If(i.Lt(n), func() {
		xi, yi := x.At(i), y.At(i)
		yi.Store(a.Fma(xi.Load(), yi.Load()))
	})
	module, err := m.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(module.Func("saxpy"))
	// Output:
	// .visible .entry saxpy(
	// 	.param .u32 n,
	// 	.param .f32 a,
	// 	.param .u64 .ptr .global .align 4 x,
	// 	.param .u64 .ptr .global .align 4 y
	// )
	// .maxntid 256, 1, 1
	// {
	// 	.reg .b32 %r<6>;
	// 	.reg .f32 %f<5>;
	// 	.reg .b64 %rd<7>;
	// 	.reg .pred %p<2>;
	// 	ld.param.u32 %r1, [n];
	// 	ld.param.f32 %f1, [a];
	// 	ld.param.u64 %rd1, [x];
	// 	cvta.to.global.u64 %rd2, %rd1;
	// 	ld.param.u64 %rd3, [y];
	// 	cvta.to.global.u64 %rd4, %rd3;
	// 	mov.u32 %r2, %ctaid.x;
	// 	mov.u32 %r3, %ntid.x;
	// 	mov.u32 %r4, %tid.x;
	// 	mad.lo.u32 %r5, %r2, %r3, %r4;
	// 	setp.lt.u32 %p1, %r5, %r1;
	// 	@!%p1 bra $if1_end;
	// 	mad.wide.u32 %rd5, %r5, 4, %rd2;
	// 	mad.wide.u32 %rd6, %r5, 4, %rd4;
	// 	ld.global.f32 %f2, [%rd5];
	// 	ld.global.f32 %f3, [%rd6];
	// 	fma.rn.f32 %f4, %f1, %f2, %f3;
	// 	st.global.f32 [%rd6], %f4;
	// $if1_end:
	// 	ret;
	// }
}
