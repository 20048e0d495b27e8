package cpu_test

import (
	"context"
	"log/slog"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/simd"
)

func random(t testing.TB, n int) []float32 {
	r := testseed.Rand(t)
	x := make([]float32, n)
	for i := range x {
		x[i] = 2*r.Float32() - 1
	}
	return x
}

func TestOptions(t *testing.T) {
	for _, o := range []cpu.Option{nil, cpu.WithWorkers(0), cpu.WithWorkers(-1), cpu.WithWorkers(1 << 20), cpu.WithMemoryLimit(0),
		cpu.WithLogger(nil), cpu.WithLogger((*slog.Logger)(nil))} {
		_, err := cpu.Open(context.Background(), o)
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	d := open(t, cpu.WithWorkers(3))
	require.Equal(t, cpu.Info{Name: runtime.GOOS + "/" + runtime.GOARCH, Tier: simd.Tier(), Workers: 3, Cores: runtime.NumCPU()}, d.Info())
}

func TestClosed(t *testing.T) {
	ctx := context.Background()
	d := open(t)
	x, err := d.Upload(ctx, []float32{1, 2})
	require.NoError(t, err)
	y, err := d.Upload(ctx, []float32{1, 2})
	require.NoError(t, err)
	k, err := cpu.NewKernel(d, "nothing", func(compute.Operand, []compute.Operand, any) error { return nil })
	require.NoError(t, err)
	require.NotNil(t, k)

	require.NoError(t, y.Close())
	require.NoError(t, y.Close())
	require.ErrorIs(t, wait(y.ReadAsync(make([]float32, 2))), compute.ErrClosed)
	b := batch.New(d)
	b.Read(b.ReLU(b.Import(y)))
	require.ErrorIs(t, wait(b.Start()), compute.ErrClosed)

	b = batch.New(d)
	b.Read(b.ReLU(b.Import(x)))
	plan, err := b.Compile(ctx)
	require.NoError(t, err)
	require.NoError(t, wait(plan.Start()))

	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	require.Zero(t, d.Memory().InUse+d.Memory().Cached)
	require.ErrorIs(t, wait(plan.Start()), compute.ErrClosed)
	require.NoError(t, plan.Close())
	require.ErrorIs(t, wait(d.ReLUAsync(make([]float32, 2), []float32{1, 2})), compute.ErrClosed)
	require.ErrorIs(t, wait(x.ReadAsync(make([]float32, 2))), compute.ErrClosed)
	_, err = d.Upload(ctx, []float32{1})
	require.ErrorIs(t, err, compute.ErrClosed)
	_, err = cpu.NewKernel(d, "late", func(compute.Operand, []compute.Operand, any) error { return nil })
	require.ErrorIs(t, err, compute.ErrClosed)
}

// Wait awaits without a limit; blocking methods do not exist on every platform.
func wait(f *compute.Future) error { return f.Await(context.Background()) }

// foreign is a tensor of no device.
type foreign struct{ compute.Tensor }

func (foreign) Shape() []int         { return []int{2} }
func (foreign) DType() compute.DType { return compute.Float32 }

func TestForeignTensors(t *testing.T) {
	d, other := open(t), open(t)
	x, err := other.Upload(context.Background(), []float32{1, 2})
	require.NoError(t, err)
	for _, c := range []struct {
		tensor compute.Tensor
		want   error
	}{{x, compute.ErrForeignTensor}, {foreign{}, compute.ErrForeignTensor}, {nil, compute.ErrArgument}, {(*cpu.Tensor)(nil), compute.ErrArgument}} {
		p := &program.Program{}
		y, err := p.Apply(catalogue.ReLU, program.Attr{}, p.Add(program.F32(2), program.FromTensor))
		require.NoError(t, err)
		p.Read = []program.Slot{y}
		e, err := program.ExecutorOf(d).Compile(t.Context(), p)
		require.NoError(t, err)
		require.ErrorIs(t, wait(e.Start(&program.IO{Tensors: []compute.Tensor{c.tensor}, Read: []any{make([]float32, 2)}})), c.want)
	}
	require.NoError(t, wait(d.ReLUAsync(make([]float32, 2), []float32{1, 2})))
}

func TestUploadErrors(t *testing.T) {
	ctx := context.Background()
	d := open(t, cpu.WithMemoryLimit(1<<20))
	for _, c := range []struct {
		data  any
		shape []int
		want  error
	}{
		{nil, nil, compute.ErrArgument}, {[]float64{1}, nil, compute.ErrDType}, {[]float32{1, 2}, []int{3}, compute.ErrShape},
		{[]float32{}, []int{-1}, compute.ErrShape}, {make([]float32, 1<<19), nil, compute.ErrOutOfMemory},
	} {
		_, err := d.Upload(ctx, c.data, c.shape...)
		require.ErrorIs(t, err, c.want, "%T %v", c.data, c.shape)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	_, err := d.Upload(done, []float32{1})
	require.ErrorIs(t, err, context.Canceled)
	x, err := d.Upload(ctx, []float32{1, 2, 3, 4}, 2, 2)
	require.NoError(t, err)
	require.Equal(t, []int{2, 2}, x.Shape())
	require.ErrorIs(t, wait(x.ReadAsync(make([]float32, 3))), compute.ErrShape)
}

// A program that nobody built with Apply is refused, not executed.
func TestInvalidPrograms(t *testing.T) {
	d := open(t)
	f := program.F32(2)
	values := []program.Value{{Type: f, Source: program.FromHost}, {Type: f, Source: program.FromStep}}
	relu := func(in, out program.Slot) program.Step {
		return program.Step{Entry: catalogue.ReLU, In: []program.Slot{in}, Out: []program.Slot{out}}
	}
	for name, p := range map[string]*program.Program{
		"operand out of range":    {Values: values, Host: []program.Slot{0}, Steps: []program.Step{relu(7, 1)}},
		"operand before its step": {Values: values, Host: []program.Slot{0}, Steps: []program.Step{relu(1, 1)}},
		"result out of range":     {Values: values, Host: []program.Slot{0}, Steps: []program.Step{relu(0, -1)}},
		"result twice":            {Values: values, Host: []program.Slot{0}, Steps: []program.Step{relu(0, 1), relu(0, 1)}},
		"result never":            {Values: values, Host: []program.Slot{0}, Read: []program.Slot{1}},
		"input out of range":      {Values: values, Host: []program.Slot{9}},
		"no entry":                {Values: values, Host: []program.Slot{0}, Steps: []program.Step{{In: []program.Slot{0}, Out: []program.Slot{1}}}},
	} {
		_, err := program.ExecutorOf(d).Compile(t.Context(), p)
		require.ErrorIs(t, err, compute.ErrArgument, name)
	}
	wrong := []program.Value{{Type: f, Source: program.FromHost}, {Type: program.F32(3), Source: program.FromStep}}
	_, err := program.ExecutorOf(d).Compile(t.Context(), &program.Program{Values: wrong, Host: []program.Slot{0}, Steps: []program.Step{relu(0, 1)}})
	require.ErrorIs(t, err, compute.ErrShape)
}

// A program of every kind of kernel gives the same bits whatever the number of workers.
func TestWorkersDoNotShow(t *testing.T) {
	const m, k, n = 150, 3000, 170
	x, y, z := random(t, m*k), random(t, k*n), random(t, 40*3*3*16)
	var want []*batch.Result
	for _, workers := range []int{1, 2, 7} {
		b := batch.New(open(t, cpu.WithWorkers(workers)))
		a, w := b.Upload(x, m, k), b.Upload(y, k, n)
		product := b.MatMul(a, w, compute.MatMulOptions{Act: compute.GELU})
		long := b.Reshape(a, 1, m*k)
		images := b.Slice(b.Reshape(a, 1, 18, 100, 250), compute.SliceOptions{Start: []int{0, 0, 0, 0}, Size: []int{1, 16, 90, 250}})
		var got []*batch.Result
		for _, v := range []batch.Value{
			product, b.Softmax(product), b.Softmax(long), b.LogSoftmax(long), b.Sum(a, compute.AllAxes), b.Sum(a, compute.LastAxis),
			b.NormL2(long, compute.AllAxes), b.Dot(a, b.Tanh(a), compute.AllAxes), b.Add(a, b.Sum(w, compute.AllAxes)),
			b.MatVec(a, b.Reshape(b.Slice(w, compute.SliceOptions{Start: []int{0, 3}, Size: []int{k, 1}}), k)),
			b.Conv2D(images, b.Upload(z, 40, 16, 3, 3), compute.Conv2DOptions{Pad: [2]int{1, 1}}), b.Transpose(a, compute.TransposeOptions{}),
			b.MatMul(long, b.Transpose(long, compute.TransposeOptions{}), compute.MatMulOptions{}),
		} {
			got = append(got, b.Read(v))
		}
		require.NoError(t, wait(b.Start()))
		for i := range got {
			g := got[i].Float32s()
			require.NotEmpty(t, g)
			if want != nil {
				require.True(t, slices.Equal(want[i].Float32s(), g), "result %d with %d workers", i, workers)
			}
		}
		if want == nil {
			want = got
		}
	}
}

// Destinations that overlap operands in all sorts of ways give what copies would have given.
func TestOverlap(t *testing.T) {
	const n = 40_000
	d := open(t)
	source := random(t, 3*n)
	for _, shift := range []int{0, 1, -1, 7, n / 2, -n / 2, n} {
		memory := append([]float32{}, source...)
		x, y := memory[n:2*n], memory[n+shift:2*n+shift]
		require.NoError(t, wait(d.ScaleAsync(y, x, 3)))
		for i := range n {
			if want := 3 * source[n+i]; want != y[i] {
				require.Equal(t, want, y[i], "shift %d, element %d", shift, i)
			}
		}
	}
	// The result of the first step lies on the operand of the second.
	memory := append([]float32{}, source...)
	x, w := memory[:n], memory[n:2*n]
	b := batch.New(d)
	a, c := b.Upload(x), b.Upload(w)
	double := b.Scale(a, 2)
	b.ReadInto(double, w)
	b.ReadInto(b.Add(double, c), x)
	require.NoError(t, wait(b.Start()))
	twice, sum := make([]float32, n), make([]float32, n)
	for i := range n {
		twice[i], sum[i] = 2*source[i], 2*source[i]+source[n+i]
	}
	require.True(t, slices.Equal(twice, w) && slices.Equal(sum, x))
	// Two inputs change places.
	b = batch.New(d)
	a, c = b.Upload(x), b.Upload(w)
	b.ReadInto(a, w)
	b.ReadInto(c, x)
	require.NoError(t, wait(b.Start()))
	require.True(t, slices.Equal(twice, x) && slices.Equal(sum, w))
}

// slowProduct returns a size of square matrices whose product takes the device at least 100 ms.
func slowProduct(t *testing.T, d *cpu.Device) int {
	for n := 300; ; n += n / 2 {
		a, c := random(t, n*n), make([]float32, n*n)
		took := time.Hour
		for range 3 { // the best: the machine may be busy
			start := time.Now()
			require.NoError(t, wait(d.MatMulAsync(c, a, a, n, n, n)))
			took = min(took, time.Since(start))
		}
		if took >= 100*time.Millisecond {
			return n
		}
	}
}

// A call that its context ends returns soon, and from then on its slices are left alone.
func TestCancel(t *testing.T) {
	d := open(t)
	n := slowProduct(t, d)
	a, b := random(t, n*n), random(t, n*n)
	c := make([]float32, n*n)
	for _, after := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(context.Background(), after)
		f := d.MatMulAsync(c, a, b, n, n, n)
		err := f.AwaitOrAbandon(ctx)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		before := append([]float32{}, c...)
		for i := range a { // the race detector sees any later reading, too
			a[i] = -a[i]
		}
		time.Sleep(20 * time.Millisecond)
		require.True(t, slices.Equal(before, c))
	}
	require.NoError(t, wait(d.ReLUAsync(c, a)), "the device is still usable")
}

// a run that waits for another one is given up without waiting for it.
func TestCancelInQueue(t *testing.T) {
	d := open(t, cpu.WithWorkers(1))
	n := slowProduct(t, d)
	a := random(t, n*n)
	y := make([]float32, n*n)
	busy := d.MatMulAsync(make([]float32, n*n), a, a, n, n, n)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, d.ExpAsync(y, a).AwaitOrAbandon(ctx), context.Canceled)
	require.NoError(t, busy.Err(), "still running")
	select {
	case <-busy.Done():
		t.Fatal("the wait was for the run before")
	default:
	}
	require.NoError(t, wait(busy))
	require.Equal(t, make([]float32, n*n), y)
}

// Tensors that a program keeps are there even when nobody waits for the program.
func TestKeptTensorsSurviveCancel(t *testing.T) {
	d := open(t)
	n := slowProduct(t, d)
	x := random(t, n*n)
	b := batch.New(d)
	v := b.Upload(x, n, n)
	kept := b.Keep(b.MatMul(v, v, compute.MatMulOptions{}))
	result := make([]float32, len(x))
	b.ReadInto(v, result)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f := b.Start()
	require.ErrorIs(t, f.AwaitOrAbandon(ctx), context.Canceled)
	source := append([]float32{}, x...)
	clear(x)
	tensor := kept.Tensor()
	got, want := make([]float32, len(x)), make([]float32, len(x))
	require.NoError(t, wait(tensor.ReadAsync(got)))
	require.NoError(t, wait(d.MatMulAsync(want, source, source, n, n, n)))
	require.Equal(t, want, got)
	require.Equal(t, make([]float32, len(x)), result)
	require.NoError(t, tensor.Close())
}

func TestManyGoroutinesShareADevice(t *testing.T) {
	d := open(t, cpu.WithWorkers(4))
	x := random(t, 50_000)
	b := batch.New(d)
	v := b.Upload(x)
	b.Read(b.Sum(b.Mul(v, v), compute.AllAxes))
	p := &program.Program{}
	in := p.Add(program.F32(len(x)), program.FromHost)
	square, err := p.Apply(catalogue.Mul, program.Attr{}, in, in)
	require.NoError(t, err)
	sum, err := p.Apply(catalogue.Sum, program.Attr{Options: compute.AllAxes}, square)
	require.NoError(t, err)
	p.Read, p.Keep = []program.Slot{sum}, []program.Slot{square}
	e, err := program.ExecutorOf(d).Compile(t.Context(), p)
	require.NoError(t, err)
	want := 0.0
	for _, v := range x {
		want += float64(v * v)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			got, y := make([]float32, 1), make([]float32, len(x))
			for i := range 30 {
				io := &program.IO{Host: []any{x}, Read: []any{got}}
				f := e.Start(io)
				kept := io.Keep[0]
				if (g+i)%2 == 0 { // used before it is computed
					if !(wait(kept.ReadAsync(y)) == nil && y[i] == x[i]*x[i]) {
						t.Errorf("kept value of goroutine %d", g)
					}
				}
				if err := wait(f); err != nil || math.Abs(float64(got[0])-want) > 1e-6*want {
					t.Errorf("goroutine %d got %v, %v; want %v", g, got[0], err, want)
				}
				kept.Close()
				if err := wait(d.ExpAsync(y, x)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, e.Close())
	require.ErrorIs(t, wait(e.Start(&program.IO{Host: []any{x}, Read: []any{make([]float32, 1)}})), compute.ErrClosed)
	require.Eventually(t, func() bool { return d.Memory().InUse == 0 }, time.Minute, time.Millisecond)
}

// Forgotten tensors give their memory back.
func TestForgottenTensor(t *testing.T) {
	d := open(t)
	func() {
		x, err := d.Upload(context.Background(), make([]float32, 1000))
		require.NoError(t, err)
		require.NotZero(t, d.Memory().InUse)
		require.NotNil(t, x)
	}()
	require.Eventually(t, func() bool { runtime.GC(); return d.Memory().InUse == 0 }, time.Minute, time.Millisecond)
	d.Trim()
	require.Zero(t, d.Memory().Cached)
}

// Replay allocates the future and what belongs to it, and nothing for data.
func TestReplayAllocations(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection takes what pools keep, in emulation between two calls
	d := open(t)
	for _, n := range []int{100, 150_000} {
		p := &program.Program{}
		v := p.Add(program.F32(n), program.FromHost)
		for range 10 {
			var err error
			v, err = p.Apply(catalogue.Scale, program.Attr{Scalars: []float32{1.5}}, v)
			require.NoError(t, err)
		}
		s, err := p.Apply(catalogue.Softmax, program.Attr{}, v)
		require.NoError(t, err)
		p.Read = []program.Slot{s}
		e, err := program.ExecutorOf(d).Compile(t.Context(), p)
		require.NoError(t, err)
		io := &program.IO{Host: []any{make([]float32, n)}, Read: []any{make([]float32, n)}}
		run := func() { require.NoError(t, wait(e.Start(io))) }
		run()
		require.LessOrEqual(t, testing.AllocsPerRun(50, run), 8.0)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 50 {
			run()
		}
		runtime.ReadMemStats(&after)
		require.Less(t, (after.TotalAlloc-before.TotalAlloc)/50, uint64(4096), "bytes per run of %d elements", n)
	}
}
