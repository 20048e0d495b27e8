package batch_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// tunable counts what is tuned and compiled.
type tunable struct {
	program.Executor
	tuned, compiled int
	err             error
}

func (d *tunable) Compile(ctx context.Context, p *program.Program) (program.Executable, error) {
	d.compiled++
	return d.Executor.Compile(ctx, p)
}

func (d *tunable) Tune(_ context.Context, p *program.Program) ([]program.Measurement, error) {
	d.tuned++
	return []program.Measurement{{Class: p.Steps[0].Name(), Winner: "quick", Variants: []string{"plain", "quick"},
		Median: []time.Duration{2, 1}}}, d.err
}

func TestTune(t *testing.T) {
	dev := &tunable{Executor: program.ExecutorOf(open(t))}
	b := batch.New(program.Seal(dev))
	y := b.Read(b.Neg(b.Upload([]float32{1, 2})))
	p, err := b.Compile(t.Context())
	require.NoError(t, err)
	tuning, f := p.TuneAsync(t.Context())
	require.NoError(t, f.Await(t.Context()))
	want := []batch.Measurement{{Class: "neg", Winner: "quick", Variants: []string{"plain", "quick"}, Median: []time.Duration{2, 1}}}
	require.Equal(t, want, tuning.Measurements())
	require.Equal(t, 1, dev.tuned)
	require.Equal(t, 2, dev.compiled, "anew, with what was chosen")
	require.NoError(t, p.Start().Await(t.Context()))
	require.Equal(t, []float32{-1, -2}, y.Float32s())

	dev.err = compute.ErrDeviceLost
	tuning, f = p.TuneAsync(t.Context())
	require.ErrorIs(t, f.Await(t.Context()), compute.ErrDeviceLost)
	require.Equal(t, want, tuning.Measurements(), "those taken so far")
	require.Equal(t, 2, dev.compiled)
	require.NoError(t, p.Start().Await(t.Context()), "it has stayed what it was")

	require.NoError(t, p.Close())
	_, f = p.TuneAsync(t.Context())
	require.ErrorIs(t, f.Await(t.Context()), compute.ErrClosed)
}

// The kernels of the CPU device have no variants.
func TestTuneWithoutVariants(t *testing.T) {
	b := batch.New(open(t))
	b.Read(b.Neg(b.Upload([]float32{1, 2})))
	p, err := b.Compile(t.Context())
	require.NoError(t, err)
	defer p.Close()
	tuning, f := p.TuneAsync(t.Context())
	require.NoError(t, f.Await(t.Context()))
	require.Empty(t, tuning.Measurements())
}
