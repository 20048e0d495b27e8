package cuda

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/ptx/args"
)

const coreText = `.version 7.0
.target sm_80
.address_size 64

// scale: y[i] = x[i]·a + b for n numbers; y and x may be the same
.visible .entry scale(.param .u64 y, .param .u64 x, .param .f32 a, .param .f32 b, .param .u32 n)
{
	.reg .pred %p;
	.reg .b32 %r<5>;
	.reg .f32 %f<4>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [y];
	ld.param.u64 %rd2, [x];
	ld.param.f32 %f1, [a];
	ld.param.f32 %f2, [b];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.u32 %r2, %r2, %r3, %r4;
	setp.ge.u32 %p, %r2, %r1;
	@%p ret;
	mul.wide.u32 %rd3, %r2, 4;
	add.u64 %rd1, %rd1, %rd3;
	add.u64 %rd2, %rd2, %rd3;
	ld.global.f32 %f3, [%rd2];
	fma.rn.f32 %f3, %f3, %f1, %f2;
	st.global.f32 [%rd1], %f3;
	ret;
}

// poke: *(y+offset) = *x
.visible .entry poke(.param .u64 y, .param .u64 x, .param .u64 offset)
{
	.reg .b32 %r1;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [y];
	ld.param.u64 %rd2, [x];
	ld.param.u64 %rd3, [offset];
	add.u64 %rd1, %rd1, %rd3;
	ld.global.u32 %r1, [%rd2];
	st.global.u32 [%rd1], %r1;
	ret;
}

.visible .entry clustered(.param .u64 y)
{
	ret;
}
`

// astray is an offset at which no memory is.
const astray = 1 << 40

// core is a device with kernels and a buffer of numbers.
type core struct {
	*Device
	t           testing.TB
	m           *machine
	module      *Module
	scale, poke *Kernel
}

func newCore(t testing.TB, opts ...Option) *core {
	t.Helper()
	m := newMachine(t, softgpu.Config{})
	return coreOn(t, m, m.device(t, opts...))
}

func coreOn(t testing.TB, m *machine, d *Device) *core {
	t.Helper()
	c := &core{Device: d, t: t, m: m}
	var err error
	c.module, err = d.Load(coreText)
	require.NoError(t, err)
	c.scale, err = c.module.Kernel("scale")
	require.NoError(t, err)
	c.poke, err = c.module.Kernel("poke")
	require.NoError(t, err)
	return c
}

func (c *core) stream(o StreamOptions) *Stream {
	c.t.Helper()
	s, err := c.NewStream(o)
	require.NoError(c.t, err)
	return s
}

// numbers is a buffer.
func (c *core) numbers(x ...float32) *Buffer[float32] {
	c.t.Helper()
	b, err := Alloc[float32](c.Device, len(x))
	require.NoError(c.t, err)
	require.NoError(c.t, b.Upload(context.Background(), x))
	return b
}

func (c *core) read(b *Buffer[float32]) []float32 {
	c.t.Helper()
	x := make([]float32, b.Len())
	require.NoError(c.t, b.Download(context.Background(), x))
	return x
}

// times is the launch of b = a·b + add.
func (c *core) times(r *Recording, b *Buffer[float32], a, add float32) {
	c.t.Helper()
	require.NoError(c.t, r.Launch(c.scale, over(b.Len()), scaleArgs(b, b, a, add)...))
}

// over is a launch of at least n threads.
func over(n int) Launch { return Launch{Grid: xyz(uint32(n+63) / 64), Block: xyz(64)} }

func scaleArgs(y, x *Buffer[float32], a, add float32) []Arg {
	return []Arg{y.Arg(), x.Arg(), args.F32(a), args.F32(add), args.U32(uint32(x.Len()))}
}

func begun(t testing.TB, s *Stream) *Recording {
	t.Helper()
	r, err := s.Begin()
	require.NoError(t, err)
	return r
}

func submitted(t testing.TB, r *Recording) *Submitted {
	t.Helper()
	x, err := r.Submit()
	require.NoError(t, err)
	return x
}

func finished(t testing.TB, x *Submitted) *Finished {
	t.Helper()
	f, err := x.Wait(context.Background())
	require.NoError(t, err)
	return f
}

// pending asserts that work is not done.
func pending(t testing.TB, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
		require.Fail(t, "done too early")
	case <-time.After(2 * time.Millisecond):
	}
}

func randomFloats(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// with applies an operation of the catalogue to slots of a program.
func with(t testing.TB, p *program.Program, name string, a program.Attr, in ...program.Slot) program.Slot {
	t.Helper()
	s, err := p.Apply(catalogue.Lookup(name), a, in...)
	require.NoError(t, err)
	return s
}

func f32(shape ...int) program.Type { return program.Type{DType: compute.Float32, Shape: shape} }

func compile(t testing.TB, d *Device, p *program.Program) *executable {
	t.Helper()
	x, err := program.ExecutorOf(d).Compile(t.Context(), p)
	require.NoError(t, err)
	return x.(*executable)
}

func ran(t testing.TB, x *executable, io *program.IO) {
	t.Helper()
	require.NoError(t, x.Start(io).Await(context.Background()))
}

// scaleStep is the launch of the kernel scale as a step.
func scaleStep(n int, a, add float32) program.Attr {
	l := over(n)
	l.Args = []Arg{Result(), Operand(0), args.F32(a), args.F32(add), args.U32(uint32(n))}
	return program.Attr{Options: l}
}

func applied(t testing.TB, p *program.Program, k *Kernel, a program.Attr, out program.Type, in ...program.Slot) program.Slot {
	t.Helper()
	s, err := p.ApplyKernel(k, a, out, in...)
	require.NoError(t, err)
	return s
}
