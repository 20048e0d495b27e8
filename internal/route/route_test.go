//go:build !js

package route

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/monotime"
	"github.com/wavelane/wavelane/internal/program"
)

// named is a CPU device under another name that counts its programs.
type named struct {
	program.Executor
	device   *cpu.Device
	compiled int
	fail     error         // of compiling
	block    chan struct{} // until when compiling waits; nil if it does not
}

func (n *named) Compile(ctx context.Context, p *program.Program) (program.Executable, error) {
	n.compiled++
	if n.block != nil {
		<-n.block
	}
	if n.fail != nil {
		return nil, n.fail
	}
	return n.Executor.Compile(ctx, p)
}

// pair is a router between "gpu", which has the tensors, and "cpu".
type pair struct {
	*Router
	gpu, cpu *named
}

// newPair returns a router with these costs, or one that measures them in this directory.
func newPair(t *testing.T, c Config, identity string) pair {
	open := func() *named {
		d, err := cpu.Open(context.Background())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		return &named{Executor: program.ExecutorOf(d), device: d}
	}
	p := pair{gpu: open(), cpu: open()}
	c.Log = slog.New(slog.DiscardHandler)
	p.Router = New(c, Device{p.gpu, "gpu", identity}, Device{p.cpu, "cpu", "two"})
	p.limit = time.Minute // machines that run tests are busy
	return p
}

// fixed are given costs.
func fixed(gpu, cpu Costs) Config { return Config{Costs: map[string]Costs{"gpu": gpu, "cpu": cpu}} }

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
	r := newPair(t, fixed(slowStart, atHand), "one")
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
		at, err := r.Place(t.Context(), c.p)
		require.NoError(t, err)
		require.True(t, program.Executor(c.want) == at, c.name)
		require.Contains(t, r.ExplainPlace(c.p), map[*named]string{r.cpu: "cpu: the least", r.gpu: "gpu: the least"}[c.want])
	}
	require.Contains(t, r.ExplainPlace(unaryChain(catalogue.Neg, 1<<20, 1)), "of which transfer 839µs")
}

// Tensors decide whatever the costs.
func TestRoutingFollowsTensors(t *testing.T) {
	r := newPair(t, fixed(slowStart, atHand), "one")
	uses := &program.Program{}
	uses.Add(program.F32(1), program.FromTensor)
	makes := &program.Program{}
	makes.Keep = []program.Slot{makes.Add(program.F32(1), program.FromHost)}
	own := unaryChain(catalogue.Neg, 1, 1)
	own.Steps[0].Kernel = (*cpu.Kernel)(nil)
	for _, p := range []*program.Program{uses, makes, own} {
		at, err := r.Place(t.Context(), p)
		require.NoError(t, err)
		require.True(t, program.Executor(r.gpu) == at)
		require.Contains(t, r.ExplainPlace(p), "gpu: ")
	}
}

func TestCostsAreMeasuredOnce(t *testing.T) {
	r := newPair(t, Config{Dir: t.TempDir()}, "one")
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

	files, err := filepath.Glob(filepath.Join(r.config.Dir, "costs-*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	again := func(identity string) (*Router, int) {
		q := newPair(t, r.config, identity)
		q.ready()
		return q.Router, q.cpu.compiled
	}
	q, measured := again("one")
	require.Zero(t, measured, "kept costs are measured again")
	require.Equal(t, r.devices[0].costs, q.devices[0].costs)
	require.Equal(t, r.devices[1].costs, q.devices[1].costs)

	_, measured = again("a new driver")
	require.Positive(t, measured)
	require.NoError(t, os.WriteFile(files[0], []byte(`{"version":1}`), 0o600))
	q, measured = again("one")
	require.Positive(t, measured, "a damaged file is used")
	require.Equal(t, "measured", q.source)
}

// Who must not wait does not wait for measurements, nor does anybody beyond a deadline.
func TestMeasuringKeepsDeadlines(t *testing.T) {
	r := newPair(t, Config{Dir: t.TempDir()}, "one")
	blocked := make(chan struct{})
	r.gpu.block = blocked
	p := unaryChain(catalogue.Neg, 100, 1)
	_, err := r.Compile(program.Now, p)
	require.ErrorIs(t, err, program.ErrLater)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = r.Compile(ctx, p)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(blocked)
	_, err = r.Compile(t.Context(), p)
	require.NoError(t, err)
	require.Equal(t, "measured", r.source)
	_, err = r.Compile(program.Now, p)
	require.NoError(t, err, "costs are known")
}

func TestCostsThatCannotBeMeasured(t *testing.T) {
	r := newPair(t, Config{Dir: t.TempDir()}, "one")
	r.gpu.fail = errors.New("no memory")
	r.ready()
	require.Equal(t, "measured and default", r.source)
	require.Equal(t, defaults["gpu"], r.devices[0].costs)
	files, err := filepath.Glob(filepath.Join(r.config.Dir, "*"))
	require.NoError(t, err)
	require.Empty(t, files, "what is incomplete is kept")

	c := defaults["gpu"]
	require.ErrorIs(t, c.calibrate(r.cpu, false, monotime.Now()), errOutOfTime)
	require.Equal(t, defaults["gpu"], c)
}

func TestDefaultCosts(t *testing.T) {
	for _, kind := range []string{"cuda", "gpu", "cpu"} {
		require.NotZero(t, defaultCosts(kind), kind)
	}
}

func BenchmarkPlace(b *testing.B) {
	r := New(fixed(slowStart, atHand), Device{Kind: "gpu"}, Device{Kind: "cpu"})
	p := unaryChain(catalogue.Neg, 100, 1)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = r.Place(b.Context(), p)
	}
}
