//go:build hardware && !js

package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/gpu"
	"github.com/wavelane/wavelane/internal/program"
)

// TestHardwareWebGPU is the whole suite through Vulkan on the card that CUDA has.
func TestHardwareWebGPU(t *testing.T) {
	adapters, err := gpu.Adapters(context.Background())
	require.NoError(t, err)
	want := func(a gpu.AdapterInfo) bool { return a.Type == gpu.Software }
	if !onSoftware {
		cards, err := cuda.Devices(context.Background())
		require.NoError(t, err)
		want = func(a gpu.AdapterInfo) bool {
			return a.Type != gpu.Software && strings.EqualFold(a.Backend, "vulkan") && strings.Contains(a.Name, cards[0].Name)
		}
	}
	at := slices.IndexFunc(adapters, want)
	require.GreaterOrEqual(t, at, 0, "no such adapter among %v", adapters)
	opts := []gpu.Option{gpu.WithAdapter(adapters[at].Index), gpu.WithAutotune(compute.TuneOff)}
	if onSoftware {
		opts = append(opts, gpu.WithSoftware())
	}
	d, err := gpu.Open(context.Background(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	Run(t, fmt.Sprintf("webgpu (%s, %s, %s)", d.Info().Name, d.Info().Backend, d.Info().DriverInfo), program.ExecutorOf(d))
}
