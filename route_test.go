//go:build !js

package wavelane

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/route"
)

// named is a CPU device under another name that counts its programs.
type named struct {
	program.Sealed
	*cpu.Device
	compiled int
	closed   int
}

type counted struct {
	program.Executor
	n *named
}

func (c counted) Compile(ctx context.Context, p *program.Program) (program.Executable, error) {
	c.n.compiled++
	return c.Executor.Compile(ctx, p)
}

func (n *named) Close() error {
	n.closed++
	return n.Device.Close()
}

// The GPU of these costs takes 100 µs for nothing, and does everything else ten times as fast.
var (
	slowStart = Costs{Launch: 100 * time.Microsecond, Step: 5 * time.Microsecond, Transfer: 10, Memory: 100, Math: 100, Product: 1000}
	atHand    = Costs{Launch: time.Microsecond, Step: time.Microsecond, Memory: 10, Math: 10, Product: 100}
)

func TestRoutedDevice(t *testing.T) {
	ctx := context.Background()
	open := func(kind string) (*opened, *named) {
		d, err := cpu.Open(context.Background())
		require.NoError(t, err)
		n := &named{Device: d}
		n.Sealed = program.Seal(counted{program.ExecutorOf(d), n})
		return &opened{backend: n, info: Info{Kind: kind}}, n
	}
	first, gpu := open("gpu")
	second, cpu := open("cpu")
	costs := map[string]route.Costs{"gpu": route.Costs(slowStart), "cpu": route.Costs(atHand)}
	d := newDevice(route.New(route.Config{Costs: costs}, routes(first, second)...), first, second)
	y := make([]float32, 2)
	require.NoError(t, d.Neg(ctx, y, []float32{1, 2}))
	require.Equal(t, []float32{-1, -2}, y)
	require.Equal(t, [2]int{0, 1}, [2]int{gpu.compiled, cpu.compiled})
	require.Same(t, gpu, d.Unwrap())
	require.Equal(t, map[string]Costs{"gpu": slowStart, "cpu": atHand}, d.Costs())

	b := batch.New(d)
	out := b.Read(b.Neg(b.Upload([]float32{5})))
	plan, err := b.Compile(ctx)
	require.NoError(t, err)
	defer plan.Close()
	require.NoError(t, plan.Run(ctx))
	require.Equal(t, []float32{-5}, out.Float32s())
	require.Contains(t, plan.Explain(), "cpu: the least")
	require.Equal(t, [2]int{0, 2}, [2]int{gpu.compiled, cpu.compiled})

	rated := program.ExecutorOf(d).(program.Placer)
	require.Equal(t, program.Peaks{Memory: 10e9, Math: 10e9, Product: 100e9}, rated.Peaks(program.ExecutorOf(cpu)))
	require.Zero(t, rated.Peaks(nil))

	x, err := d.Upload(ctx, []float32{3})
	require.NoError(t, err)
	defer x.Close()
	b = batch.New(d)
	out = b.Read(b.Neg(b.Import(x)))
	require.NoError(t, b.Run(ctx))
	require.Equal(t, []float32{-3}, out.Float32s())
	require.Equal(t, [2]int{2, 2}, [2]int{gpu.compiled, cpu.compiled})

	only, err := d.On("gpu")
	require.NoError(t, err)
	require.NoError(t, only.Neg(ctx, y, []float32{1, 2}))
	require.Same(t, gpu, only.Unwrap())
	at, err := program.ExecutorOf(only).(program.Placer).Place(ctx, &program.Program{})
	require.NoError(t, err)
	require.True(t, program.ExecutorOf(gpu) == at)
	require.NoError(t, only.Close())
	require.Equal(t, [2]int{3, 2}, [2]int{gpu.compiled, cpu.compiled})
	require.Zero(t, gpu.closed)
	_, err = d.On("cuda")
	require.ErrorIs(t, err, ErrUnavailable)
	_, err = only.On("cpu")
	require.ErrorIs(t, err, ErrUnavailable)

	require.NoError(t, d.Close())
	require.Equal(t, [2]int{1, 1}, [2]int{gpu.closed, cpu.closed})
	require.ErrorIs(t, d.Neg(ctx, y, y), ErrClosed)
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
		require.Equal(t, c.want, d.router != nil)
		require.Equal(t, c.want, d.Info().Routed)
		require.NoError(t, d.Close())
	}
}
