package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/args"
)

// A user's kernel is a step like any other, from text and from the builder.
func TestKernelSteps(t *testing.T) {
	c := newCore(t)
	rng := randomSource(t)
	m, err := c.LoadModule(built(t, "axpy", func(k *ptx.Kernel) {
		a := ptx.Param[float32](k, "a")
		y, x := ptx.PointerParam[float32](k, "y"), ptx.PointerParam[float32](k, "x")
		out := ptx.PointerParam[float32](k, "out")
		n := ptx.Param[uint32](k, "n")
		i := k.GlobalID(ptx.X)
		k.If(i.Lt(n), func() {
			out.At(i).Store(a.Fma(x.At(i).Load(), y.At(i).Load()))
		})
	}))
	require.NoError(t, err)
	axpy, err := m.Kernel("axpy")
	require.NoError(t, err)
	n := 1 + rng.IntN(500)
	data := randomFloats(rng, n)
	b := batch.New(c.Device)
	x := b.Upload(data)
	two := b.Kernel(c.scale, scaleStep(n, 2, 1).Options, compute.Float32, []int{n}, x)
	l := over(n)
	l.Args = []Arg{args.F32(3), Operand(0), Operand(1), Result(), args.U32(uint32(n))}
	sum := b.Kernel(axpy, l, compute.Float32, []int{n}, two, x)
	self := b.Kernel(axpy, l, compute.Float32, []int{n}, sum, sum)
	r := b.Read(b.Neg(self))
	require.NoError(t, b.Start().Await(t.Context()))
	want := make([]float32, n)
	for i, v := range data {
		s := float32(float64(v)*2 + 1)
		s = float32(float64(v)*3 + float64(s))
		want[i] = -float32(float64(s)*3 + float64(s))
	}
	require.Equal(t, want, r.Float32s())
}

// Whatever is wrong with a step's launch is an error that says so, when it is recorded or compiled.
func TestKernelStepsAreChecked(t *testing.T) {
	c, other := newCore(t), newCore(t)
	good := scaleStep(2, 1, 0).Options.(Launch)
	with := func(a ...Arg) Launch { l := good; l.Args = a; return l }
	f, n := args.F32(1), args.U32(2)
	for name, x := range map[string]struct {
		k       batch.Kernel
		options any
		err     error
		says    string
	}{
		"no options":       {c.scale, nil, compute.ErrArgument, "options are <nil>, must be cuda.Launch"},
		"a pointer":        {c.scale, &good, compute.ErrArgument, "must be cuda.Launch"},
		"no arguments":     {c.scale, with(), compute.ErrArgument, "5 parameters, Launch.Args has 0"},
		"too many":         {c.scale, with(Result(), Operand(0), f, f, n, n), compute.ErrArgument, "has 6"},
		"no operand":       {c.scale, with(Result(), args.Ptr(1), f, f, n), compute.ErrArgument, "no argument is operand 0"},
		"operand 1 of 1":   {c.scale, with(Result(), Operand(1), f, f, n), compute.ErrArgument, "operand 1 of 1"},
		"operand -1":       {c.scale, with(Result(), Operand(-1), f, f, n), compute.ErrArgument, "an operand below 0"},
		"no result":        {c.scale, with(Operand(0), Operand(0), f, f, n), compute.ErrArgument, "0 arguments are the result"},
		"two results":      {c.poke, with(Result(), Result(), args.U64(0)), compute.ErrArgument, ""},
		"not an address":   {c.scale, with(Result(), Operand(0), Operand(0), f, n), compute.ErrArgument, "the parameter a is a .f32"},
		"another type":     {c.scale, with(Result(), Operand(0), args.F64(1), f, n), compute.ErrArgument, "argument 2"},
		"nothing":          {c.scale, with(Result(), Operand(0), Arg{}, f, n), compute.ErrArgument, "argument 2"},
		"no block":         {c.scale, Launch{Args: good.Args}, compute.ErrArgument, "without a block"},
		"too large":        {c.scale, Launch{Block: xyz(2048), Args: good.Args}, compute.ErrTooLarge, "2048"},
		"another device's": {other.scale, good, compute.ErrForeignTensor, "kernel scale"},
		"no kernel":        {(*Kernel)(nil), good, compute.ErrArgument, "nil kernel"},
	} {
		b := batch.New(c.Device)
		b.Read(b.Kernel(x.k, x.options, compute.Float32, []int{2}, b.Upload([]float32{1, 2})))
		_, err := b.Compile(t.Context())
		require.ErrorIs(t, err, x.err, name)
		require.ErrorContains(t, err, x.says, name)
	}
	require.ErrorIs(t, c.scale.check([]program.Type{f32(2)}, f32(2), program.Attr{Options: good, Scalars: []float32{1}}), compute.ErrArgument)
	require.EqualValues(t, 1, c.module.holders.Load(), "what failed holds nothing")
	require.EqualValues(t, 1, other.module.holders.Load())
}
