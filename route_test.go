//go:build !js

package wavelane

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
)

// named is a CPU device under another name that knows what it was given.
type named struct {
	backend
	compiled int
	closed   int
	fail     error // of compiling
}

func (n *named) Compile(p *program.Program) (program.Executable, error) {
	n.compiled++
	if n.fail != nil {
		return nil, n.fail
	}
	return n.backend.Compile(p)
}

func (n *named) Close() error {
	n.closed++
	return n.backend.Close()
}

// pair is a router of two devices with given costs: "gpu", which tensors are on, and "cpu".
type pair struct {
	*router
	gpu, cpu *named
}

func newPair(t *testing.T, gpu, host Costs) pair {
	open := func() *named {
		d, err := cpu.Open()
		require.NoError(t, err)
		return &named{backend: d}
	}
	p := pair{gpu: open(), cpu: open()}
	c := &config{log: slog.New(slog.DiscardHandler), costsDir: t.TempDir()}
	p.router = newRouter(c, &routed{backend: p.gpu, info: Info{Kind: "gpu", identity: "one"}}, &routed{backend: p.cpu, info: Info{Kind: "cpu", identity: "two"}})
	p.limit = time.Minute // machines that run tests are busy
	p.measure = func(*router) { p.devices[0].costs, p.devices[1].costs = gpu, host }
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// The GPU of these costs takes 100 µs for nothing, and does everything else ten times as fast.
var (
	slowStart = Costs{Launch: 100 * time.Microsecond, Step: 5 * time.Microsecond, Transfer: 10, Memory: 100, Math: 100, Product: 1000}
	atHand    = Costs{Launch: time.Microsecond, Step: time.Microsecond, Memory: 10, Math: 10, Product: 100}
)

func unaryChain(e *program.Entry, n, steps int) *program.Program {
	return chain(e, program.Attr{}, steps, n)
}

func matmul(n int) *program.Program {
	return chain(catalogue.MatMul, program.Attr{Options: compute.MatMulOptions{}}, 1, n, n)
}

func TestRouting(t *testing.T) {
	r := newPair(t, slowStart, atHand)
	for _, c := range []struct {
		name string
		p    *program.Program
		want *named
	}{
		{"nothing", &program.Program{}, r.cpu},
		{"a hundred elements", unaryChain(catalogue.Neg, 100, 1), r.cpu},
		{"a hundred steps on a hundred elements", unaryChain(catalogue.Neg, 100, 100), r.cpu}, // 600 µs against 101 µs
		{"one step, held up by the transfer", unaryChain(catalogue.Neg, 1<<20, 1), r.cpu},     // 839 + 84 + 100 µs against 840 µs
		{"many steps by memory", unaryChain(catalogue.Neg, 1<<20, 8), r.gpu},
		{"one step by arithmetic", unaryChain(catalogue.Exp, 1<<22, 2), r.gpu},
		{"a small product", matmul(32), r.cpu},
		{"a large product", matmul(1024), r.gpu},
	} {
		require.Same(t, c.want, r.Place(c.p), c.name)
		require.Contains(t, r.ExplainPlace(c.p), map[*named]string{r.cpu: "cpu: the least", r.gpu: "gpu: the least"}[c.want])
	}
	require.Contains(t, r.ExplainPlace(unaryChain(catalogue.Neg, 1<<20, 1)), "of which transfer 839µs")
}

// Tensors decide whatever the costs.
func TestRoutingFollowsTensors(t *testing.T) {
	r := newPair(t, slowStart, atHand)
	uses := &program.Program{}
	uses.Add(program.F32(1), program.FromTensor)
	makes := &program.Program{}
	makes.Keep = []program.Slot{makes.Add(program.F32(1), program.FromHost)}
	own := unaryChain(catalogue.Neg, 1, 1)
	own.Steps[0].Kernel = (*cpu.Kernel)(nil)
	for _, p := range []*program.Program{uses, makes, own} {
		require.Same(t, r.gpu, r.Place(p))
		require.Contains(t, r.ExplainPlace(p), "gpu: ")
	}
}

func TestRoutedDevice(t *testing.T) {
	ctx := context.Background()
	r := newPair(t, slowStart, atHand)
	d := &Device{Ops: device.NewOps(r), backend: r.router, info: r.devices[0].info}
	y := make([]float32, 2)
	require.NoError(t, d.Neg(ctx, y, []float32{1, 2}))
	require.Equal(t, []float32{-1, -2}, y)
	require.Equal(t, [2]int{0, 1}, [2]int{r.gpu.compiled, r.cpu.compiled})
	require.Same(t, r.gpu, d.Unwrap())
	require.Equal(t, map[string]Costs{"gpu": slowStart, "cpu": atHand}, d.Costs())

	b := batch.New(d)
	out := b.Read(b.Neg(b.Upload([]float32{5})))
	plan, err := b.Compile(ctx)
	require.NoError(t, err)
	defer plan.Close()
	require.NoError(t, plan.Run(ctx))
	require.Equal(t, []float32{-5}, out.Float32s())
	require.Contains(t, plan.Explain(), "cpu: the least")
	require.Equal(t, [2]int{0, 2}, [2]int{r.gpu.compiled, r.cpu.compiled})

	require.Equal(t, program.Peaks{Memory: 10e9, Math: 10e9, Product: 100e9}, d.Peaks(r.cpu))
	require.Zero(t, d.Peaks(nil))

	x, err := d.Upload(ctx, []float32{3})
	require.NoError(t, err)
	defer x.Close()
	b = batch.New(d)
	out = b.Read(b.Neg(b.Import(x)))
	require.NoError(t, b.Run(ctx))
	require.Equal(t, []float32{-3}, out.Float32s())
	require.Equal(t, [2]int{2, 2}, [2]int{r.gpu.compiled, r.cpu.compiled})

	only, err := d.On("gpu")
	require.NoError(t, err)
	require.NoError(t, only.Neg(ctx, y, []float32{1, 2}))
	require.Same(t, r.gpu, only.Unwrap())
	require.Same(t, r.gpu, only.Place(unaryChain(catalogue.Neg, 1, 1)))
	require.NoError(t, only.Close())
	require.Equal(t, [2]int{3, 2}, [2]int{r.gpu.compiled, r.cpu.compiled})
	require.Zero(t, r.gpu.closed)
	_, err = d.On("cuda")
	require.ErrorIs(t, err, ErrUnavailable)
	_, err = only.On("cpu")
	require.ErrorIs(t, err, ErrUnavailable)

	require.NoError(t, d.Close())
	require.Equal(t, [2]int{1, 1}, [2]int{r.gpu.closed, r.cpu.closed})
	require.ErrorIs(t, d.Neg(ctx, y, y), ErrClosed)
}

func TestCostsAreMeasuredOnce(t *testing.T) {
	r := newPair(t, Costs{}, Costs{})
	r.measure = measureCosts
	start := time.Now()
	r.ready()
	t.Logf("measured in %v: %v", time.Since(start), r.devices[1].costs)
	require.Equal(t, "measured", r.source)
	for _, d := range r.devices {
		c := d.costs
		for _, v := range []float64{float64(c.Launch), c.Memory, c.Math, c.Product} {
			require.Positive(t, v)
		}
	}
	require.Zero(t, r.devices[1].costs.Transfer, "nothing is transferred to the CPU")
	require.Positive(t, r.devices[0].costs.Transfer)

	files, err := filepath.Glob(filepath.Join(r.dir, "costs-*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	again := func(change func(*router)) (*router, int) {
		q := newPair(t, Costs{}, Costs{})
		q.measure, q.dir = measureCosts, r.dir
		change(q.router)
		q.ready()
		return q.router, q.cpu.compiled
	}
	q, measured := again(func(*router) {})
	require.Zero(t, measured, "kept costs are measured again")
	require.Equal(t, r.devices[0].costs, q.devices[0].costs)
	require.Equal(t, r.devices[1].costs, q.devices[1].costs)

	_, measured = again(func(q *router) { q.devices[0].info.identity = "a new driver" })
	require.Positive(t, measured)
	require.NoError(t, os.WriteFile(files[0], []byte(`{"version":1}`), 0o600))
	q, measured = again(func(*router) {})
	require.Positive(t, measured, "a damaged file is used")
	require.Equal(t, "measured", q.source)
}

func TestCostsThatCannotBeMeasured(t *testing.T) {
	r := newPair(t, Costs{}, Costs{})
	r.measure = measureCosts
	r.gpu.fail = errors.New("no memory")
	r.ready()
	require.Equal(t, "measured and default", r.source)
	require.Equal(t, defaults["gpu"], r.devices[0].costs)
	files, err := filepath.Glob(filepath.Join(r.dir, "*"))
	require.NoError(t, err)
	require.Empty(t, files, "what is incomplete is kept")

	c := defaults["gpu"]
	require.ErrorIs(t, c.calibrate(r.cpu, false, time.Now()), errOutOfTime)
	require.Equal(t, defaults["gpu"], c)
}

func TestWhoIsRouted(t *testing.T) {
	t.Setenv(environment, "")
	withCandidates(t, present("gpu"), present("cpu"))
	for _, c := range []struct {
		opts []Option
		want bool
	}{{nil, true}, {[]Option{WithoutRouting()}, false}, {[]Option{WithDevice("gpu")}, false}, {[]Option{WithDevice("cpu")}, false}} {
		d, err := Open(context.Background(), c.opts...)
		require.NoError(t, err)
		_, routed := d.backend.(*router)
		require.Equal(t, c.want, routed)
		require.NoError(t, d.Close())
	}
}

func TestDefaultCosts(t *testing.T) {
	for _, c := range candidates {
		require.NotZero(t, defaultCosts(c.kind), c.kind)
	}
}

func BenchmarkPlace(b *testing.B) {
	r := &router{devices: []*routed{{info: Info{Kind: "gpu"}, costs: slowStart}, {info: Info{Kind: "cpu"}, costs: atHand}}, measure: func(*router) {}}
	p := unaryChain(catalogue.Neg, 100, 1)
	b.ReportAllocs()
	for b.Loop() {
		r.Place(p)
	}
}
