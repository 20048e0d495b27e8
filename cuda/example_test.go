package cuda_test

import (
	"context"
	"fmt"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/ir"
)

// build is y = a·x + y.
func build() (*ir.Module, error) {
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
	return m.Build()
}

// A kernel written in Go, launched on a stream.
func Example() {
	ctx := context.Background()
	dev, err := cuda.Open(ctx, cuda.WithSoftware()) // without the option, on NVIDIA's driver
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	if err := readme(ctx, dev); err != nil {
		fmt.Println(err)
	}
	// Output: [12 24 36]
}

func readme(ctx context.Context, dev *cuda.Device) error {
	module, err := build()
	if err != nil {
		return err
	}
	stream, err := dev.NewStream(cuda.StreamOptions{})
	if err != nil {
		return err
	}
	const n = 3
	x, err := cuda.Alloc[float32](dev, n)
	if err != nil {
		return err
	}
	y, err := cuda.Alloc[float32](dev, n)
	if err != nil {
		return err
	}
	if err := x.Upload(ctx, []float32{1, 2, 3}); err != nil {
		return err
	}
	if err := y.Upload(ctx, []float32{10, 20, 30}); err != nil {
		return err
	}

	loaded, err := dev.LoadModule(module) // what the builder made; dev.Load(text) takes text
	if err != nil {
		return err
	}
	saxpy, err := loaded.Kernel("saxpy")
	if err != nil {
		return err
	}
	rec, err := stream.Begin()
	if err != nil {
		return err
	}
	launch := cuda.Launch{Grid: [3]uint32{(n + 255) / 256}, Block: [3]uint32{256}}
	if err := rec.Launch(saxpy, launch, args.U32(n), args.F32(2), x.Arg(), y.Arg()); err != nil {
		return err // of the wrong type for the kernel's declaration, for one
	}
	work, err := rec.Submit()
	if err != nil {
		return err
	}
	_, err = work.Wait(ctx)
	if err != nil {
		return err
	}

	out := make([]float32, n)
	if err := y.Download(ctx, out); err != nil {
		return err
	}
	fmt.Println(out)
	return nil
}

// A kernel of one's own as a step of a batch, among operations of the catalogue.
func ExampleLaunch() {
	ctx := context.Background()
	dev, err := cuda.Open(ctx, cuda.WithSoftware())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	m, err := dev.Load(`
.version 6.0
.target sm_50
.address_size 64
.visible .entry reverse(.param .u32 n, .param .u64 x, .param .u64 y)
{
	.reg .u32 %i, %n, %left;
	.reg .u64 %x, %y;
	.reg .f32 %v;
	.reg .pred %outside;
	ld.param.u32 %n, [n];
	mov.u32 %i, %tid.x;
	setp.ge.u32 %outside, %i, %n;
	@%outside ret;
	ld.param.u64 %x, [x];
	ld.param.u64 %y, [y];
	sub.u32 %left, %n, %i;
	sub.u32 %left, %left, 1;
	mad.wide.u32 %x, %left, 4, %x;
	mad.wide.u32 %y, %i, 4, %y;
	ld.f32 %v, [%x];
	st.f32 [%y], %v;
	ret;
}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	reverse, err := m.Kernel("reverse")
	if err != nil {
		fmt.Println(err)
		return
	}
	b := batch.New(dev)
	x := b.Upload([]float32{1, 2, 3, 4})
	y := b.Kernel(reverse, cuda.Launch{
		Block: [3]uint32{32},
		Args:  []cuda.Arg{args.U32(4), cuda.Operand(0), cuda.Result()},
	}, compute.Float32, []int{4}, b.Scale(x, 10))
	out := b.Read(y)
	if err := b.Start().Await(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.Float32s())
	// Output: [40 30 20 10]
}
