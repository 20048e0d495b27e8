package cpu_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/internal/testseed"
)

func TestMain(m *testing.M) {
	code := m.Run()
	fmt.Print(conformance.Summary())
	os.Exit(code)
}

func open(t testing.TB, opts ...cpu.Option) *cpu.Device {
	d, err := cpu.Open(context.Background(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func TestConformance(t *testing.T) {
	d := open(t)
	conformance.RunSampled(t, fmt.Sprintf("cpu (%s, %d workers)", d.Info().Tier, d.Info().Workers), program.ExecutorOf(d))
}

// The whole catalogue on the instruction sets that TestConformance leaves out.
func TestConformanceOfEveryTier(t *testing.T) {
	was := kernels.Active()
	defer func() { require.NoError(t, kernels.SetTier(was)) }()
	for _, tier := range kernels.Available() {
		if tier == was {
			continue
		}
		t.Run(tier.String(), func(t *testing.T) {
			require.NoError(t, kernels.SetTier(tier))
			d := open(t)
			require.Equal(t, tier.String(), d.Info().Tier)
			conformance.RunEntries(t, fmt.Sprintf("cpu (%s, %d workers)", tier, d.Info().Workers), program.ExecutorOf(d), catalogue.All()...)
		})
	}
}

// newRand draws by the seed of the run.
func newRand(t testing.TB) *rand.Rand {
	return testseed.Rand(t)
}
