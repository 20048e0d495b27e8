package rewrite_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// idle compiles programs to nothing and agrees to every fusion but those that it refuses.
type idle struct {
	executor           // nil: nobody calls the other methods
	program.Executable // nil
	refuses            func(s *program.Step) bool
	latest             *program.Program // that was compiled
}

func (d *idle) Fuses(s *program.Step, _, _ []program.Type) bool {
	return d.refuses == nil || !d.refuses(s)
}

func (d *idle) Compile(_ context.Context, p *program.Program) (program.Executable, error) {
	d.latest = p
	return d, nil
}

func (d *idle) compiled() *program.Program        { return d.latest }
func (d *idle) Start(*program.IO) *compute.Future { return compute.Failed(nil) }
func (d *idle) Close() error                      { return nil }

type executor = program.Executor

// ignorant knows no expressions.
type ignorant struct{ *idle }

func (ignorant) Fuses(*program.Step, []program.Type, []program.Type) bool { return false }

// device is idle or ignorant.
type device interface {
	program.Executor
	compiled() *program.Program
}

// compiled returns the program that a batch gives its device.
func compiled(t *testing.T, b *batch.Batch, dev device) *program.Program {
	p, err := b.Compile(t.Context())
	require.NoError(t, err)
	require.NoError(t, p.Close())
	return dev.compiled()
}

// names records on a device and returns the names of the steps that it would be given.
func names(t *testing.T, dev device, record func(b *batch.Batch), options ...batch.Option) []string {
	t.Helper()
	b := batch.New(program.Seal(dev), options...)
	record(b)
	p := compiled(t, b, dev)
	for i := range p.Steps {
		s := &p.Steps[i]
		types, err := s.Entry.Check(p.Types(s.In), s.Attr)
		require.NoError(t, err)
		require.Equal(t, p.Types(s.Out), types, "step %d, %s", i, s.Name())
	}
	require.Equal(t, len(p.Steps), len(compiled(t, b, dev).Steps), "rewriting has changed what was recorded")
	return stepNames(p)
}

func stepNames(p *program.Program) []string {
	list := []string{}
	for i := range p.Steps {
		list = append(list, p.Steps[i].Name())
	}
	return list
}

func vector(b *batch.Batch, shape ...int) batch.Value {
	return b.Upload(make([]float32, program.Len(shape)), shape...)
}

// rewriting is a batch and what becomes of it on a device that agrees to everything.
type rewriting struct {
	name   string
	record func(b *batch.Batch)
	want   []string
}

func (r rewriting) test(t *testing.T, dev device, options ...batch.Option) {
	t.Run(r.name, func(t *testing.T) { require.Equal(t, r.want, names(t, dev, r.record, options...)) })
}

func TestSimplify(t *testing.T) {
	for _, c := range []rewriting{
		{"equal steps", func(b *batch.Batch) {
			x := vector(b, 4)
			b.Read(b.Sum(b.Exp(x)))
			b.Read(b.Max(b.Exp(x)))
		}, []string{"exp", "sum", "max"}},
		{"equal results read twice", func(b *batch.Batch) {
			x := vector(b, 4)
			b.Read(b.Exp(x))
			b.Read(b.Exp(x))
		}, []string{"exp"}},
		{"what is kept has memory of its own", func(b *batch.Batch) {
			x := vector(b, 4)
			b.Keep(b.Exp(x))
			b.Keep(b.Exp(x))
		}, []string{"exp", "exp"}},
		{"other scalars, other options", func(b *batch.Batch) {
			x := vector(b, 4, 4)
			b.Read(b.Scale(x, 2))
			b.Read(b.Scale(x, 3))
			b.Read(b.Sum(x))
			b.Read(b.Sum(x, compute.LastAxis))
		}, []string{"scale", "scale", "sum", "sum"}},
		{"scalars that vary are no constants", func(b *batch.Batch) {
			x := vector(b, 4)
			b.Read(b.Vary(b.Scale(x, 2)))
			b.Read(b.Vary(b.Scale(x, 2)))
			b.Read(b.Mul(x, b.Vary(b.Scalar(2))))
		}, []string{"scale", "scale", "fill", "mul"}},
		{"copies, casts and reshapes that do nothing", func(b *batch.Batch) {
			x := vector(b, 4, 4)
			y := b.Cast(b.Copy(b.Reshape(b.Exp(x), 4, 4)), compute.Float32)
			b.Read(b.Sum(b.Reshape(b.Reshape(y, 16), 4, 4), compute.LastAxis))
		}, []string{"exp", "sum"}},
		{"reshapes of reshapes", func(b *batch.Batch) {
			b.Read(b.Sum(b.Reshape(b.Reshape(vector(b, 4, 4), 16), 2, 8), compute.LastAxis))
		}, []string{"reshape", "sum"}},
		{"to more bits and back", func(b *batch.Batch) {
			h := b.Upload(make([]compute.F16, 4))
			b.Read(b.Cast(b.Cast(h, compute.Float32), compute.Float16))
			b.Read(b.Cast(b.Cast(b.Cast(h, compute.Float32), compute.BFloat16), compute.Float32))
		}, []string{"cast", "cast", "cast", "cast"}}, // an input that is read is copied; to fewer bits rounds
		{"twice is once or not at all", func(b *batch.Batch) {
			x := b.Exp(vector(b, 4))
			b.Read(b.Sum(b.Neg(b.Neg(x))))
			b.Read(b.Sum(b.ReLU(b.ReLU(b.ReLU(x)))))
		}, []string{"exp", "sum", "relu", "sum"}},
		{"factors that round alike", func(b *batch.Batch) {
			x := vector(b, 4)
			b.Read(b.Scale(b.Scale(x, 2), -4))
			b.Read(b.Scale(b.Scale(x, 3), -1))
			b.Read(b.Scale(b.Scale(x, 3), 5))    // rounds twice
			b.Read(b.Scale(b.Scale(x, 4), 0.25)) // may overflow in between
		}, []string{"scale", "scale", "scale", "scale", "scale", "scale"}},
		{"clips", func(b *batch.Batch) {
			b.Read(b.Clip(b.Clip(vector(b, 4), 0, 5), -1, 3))
		}, []string{"clip"}},
		{"constants", func(b *batch.Batch) {
			x := vector(b, 4)
			two := b.Scalar(2)
			b.Read(b.Mul(x, two))
			b.Read(b.Div(x, b.Fill(4, 4)))
			b.Read(b.Div(x, b.Scalar(3)))
			b.Read(b.Pow(x, two))
			b.Read(b.Add(x, b.Exp(b.Mul(two, b.Scalar(3)))))
			b.Read(b.Mul(b.Scalar(1), x))
			b.Read(b.Mul(b.Scalar(1), b.Exp(x)))
		}, []string{"scale", "scale", "fill", "div", "pow_scalar", "fill", "add", "scale", "exp"}},
		{"constants grow", func(b *batch.Batch) {
			b.Read(b.Mul(vector(b, 4), b.Fill(1, 3, 4)))
		}, []string{"fill", "mul"}},
	} {
		c.test(t, &idle{}, batch.WithoutFusion())
	}
}

func TestSimplifiedConstants(t *testing.T) {
	dev := &idle{}
	b := batch.New(program.Seal(dev))
	x := vector(b, 2)
	b.Read(b.Clip(b.Clip(x, 0, 5), -1, 3))
	b.Read(b.Add(x, b.Exp(b.Mul(b.Scalar(2), b.Scalar(0)))))
	b.Read(b.Scale(b.Scale(x, 2), -4))
	p := compiled(t, b, dev)
	scalars := map[string][]float32{}
	for _, s := range p.Steps {
		scalars[s.Entry.Name] = append(scalars[s.Entry.Name], s.Attr.Scalars...)
		if x, ok := s.Attr.Options.(program.Expression); ok {
			scalars[x.Nodes[0].Entry.Name] = s.Attr.Scalars
		}
	}
	require.Equal(t, []float32{1}, scalars["fill"])
	require.Equal(t, []float32{0, 3, -8}, slices.Concat(scalars["clip"]))
}

// An operand that a step updates is nobody else's: neither equal values nor copies stand for it.
func TestSimplifyUpdates(t *testing.T) {
	adam := compute.AdamOptions{LR: 0.1, Step: 1}
	for _, c := range []rewriting{
		{"equal values of which one changes", func(b *batch.Batch) {
			x := vector(b, 4)
			p, q := b.Exp(x), b.Exp(x)
			next, _, _ := b.Adam(p, vector(b, 4), vector(b, 4), x, adam)
			b.Read(b.Sum(q))
			b.Read(next)
		}, []string{"exp", "exp", "adam", "sum"}},
	} {
		c.test(t, &idle{}, batch.WithoutFusion())
	}
	for _, c := range []rewriting{
		{"a copy from before", func(b *batch.Batch) {
			x := b.Import(tensor{shape: []int{4}})
			before := b.Copy(x)
			next, _, _ := b.Adam(x, vector(b, 4), vector(b, 4), vector(b, 4), adam)
			b.Read(b.Sub(next, before))
		}, []string{"copy", "adam", "sub"}},
		{"a copy that changes", func(b *batch.Batch) {
			x := vector(b, 4)
			next, _, _ := b.Adam(b.Copy(x), vector(b, 4), vector(b, 4), vector(b, 4), adam)
			b.Read(b.Sub(next, x))
		}, []string{"copy", "adam", "sub"}},
	} {
		c.test(t, &idle{}, batch.WithoutFusion())
		c.test(t, &idle{})
	}
}

// tensor is resident on idle.
type tensor struct {
	compute.Tensor
	shape []int
}

func (t tensor) Shape() []int       { return t.shape }
func (tensor) DType() compute.DType { return compute.Float32 }
