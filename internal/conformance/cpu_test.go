package conformance

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func openCPU(t testing.TB, opts ...cpu.Option) (string, *cpu.Device) {
	d, err := cpu.Open(context.Background(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return fmt.Sprintf("cpu (%s, %d workers)", d.Info().Tier, d.Info().Workers), d
}

func TestCPU(t *testing.T) {
	name, d := openCPU(t)
	RunSampled(t, name, program.ExecutorOf(d))
}

// How work is split must not show, even where there are more workers than elements.
func TestCPUWorkers(t *testing.T) {
	for _, n := range []int{1, 13} {
		name, d := openCPU(t, cpu.WithWorkers(n))
		RunEntries(t, name, program.ExecutorOf(d), catalogue.All()...)
	}
}

func TestCPUParity(t *testing.T) {
	name, d := openCPU(t)
	RunParity(t, name+", batches and items", program.ExecutorOf(d))
}

func TestCPUMemory(t *testing.T) {
	name, d := openCPU(t)
	testMemory(t, name, d)
	testForks(t, name, d)
}

func TestCPUVariesFused(t *testing.T) {
	name, d := openCPU(t)
	testVaryFused(t, name, d)
}

func TestMisuseCPU(t *testing.T) {
	_, d := openCPU(t)
	testMisuse(t, d, (*cpu.Device)(nil), d.Ops)
}
